"""The notebook runs on a sweep that was just played, draws its figures, and agrees with the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_command

NOTEBOOK = Path(__file__).parents[2] / "examples" / "analyse_sweep.ipynb"


def test_the_notebook_is_kept_without_outputs() -> None:
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_notebook_draws_two_figures_of_a_sweep_and_agrees_with_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat
    from nbclient import NotebookClient

    sweep = ("run", "-m", "selector=none,vector", "seed=0,1", "benchmark.limit=2", "tracking.enabled=false")
    played = run_command(*sweep, cache=tmp_path / "cache", cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    written = run_command("report", "outputs", cache=tmp_path / "cache", cwd=tmp_path)
    assert written.returncode == 0, written.stderr

    monkeypatch.setenv("SKILLARENA_OUTPUTS", str(tmp_path / "outputs"))
    check = (
        "for setting, method, mean in report[['setting', 'method', 'mean']].itertuples(index=False):\n"
        "    ours = means.loc[(setting.replace('/', ' '), method), 'reward']\n"
        "    assert abs(ours - mean) < 1e-9, (setting, method, ours, mean)\n"
        "assert len(report) == 2 and len(frame) == 8"
    )
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(check))
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
