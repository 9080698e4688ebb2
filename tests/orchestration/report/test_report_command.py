"""`skillarena report`: what it writes, prints and returns."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from command import run_command
from report_cells import LOST, make_cell

from skillarena.conf.errors import ConfigError, DataError
from skillarena.orchestration.console import EXIT_INCOMPLETE, EXIT_MISTAKE, EXIT_OK
from skillarena.orchestration.report.report_command import default_folder, report

TABLES = ("table1", "table2", "table3", "by_task_type", "k_curve", "selection_costs", "cells")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder in which every table has rows."""
    root = tmp_path_factory.mktemp("work") / "outputs"
    for selector in ("vector", "vector_top2", "skillreranker", "without_split", "none"):
        rewards = [100.0, 0.0, 30.0, 100.0] if selector == "vector" else [0.0, 0.0, 100.0, 100.0]
        make_cell(root, selector=selector, rewards=rewards, benchmark="scienceworld")
    make_cell(root, k=5, rewards=[0.0, 30.0, 0.0, 0.0], benchmark="scienceworld")
    return root


def files_below(folder: Path) -> dict[str, bytes]:
    """Contents by relative path."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_writes_every_format_beside_the_cells(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([output], out=None, baseline=None, as_json=False) == EXIT_OK
    written = files_below(output / "report")
    expected = {"index.html", "report.md", "report.json", "tables/comparisons.csv"}
    expected |= {f"tables/{name}.{kind}" for name in TABLES for kind in ("tex", "csv")}
    assert expected <= set(written)
    figures = [name for name in written if name.startswith("figures/")]
    assert figures and {name.rpartition(".")[2] for name in figures} == {"svg", "png"}
    assert all(written.values())
    printed = capsys.readouterr().out
    assert "Table 1: reward and environment steps (SIMULATED: no language model)" in printed
    assert "vector top_k=1,2" in printed and "index.html" in printed


def test_the_same_ledgers_make_the_same_bytes_wherever_they_lie(output: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "other_name"
    shutil.copytree(output / "cells", moved / "cells")
    for cell in sorted((moved / "cells").iterdir()):
        path = cell / "episodes.jsonl"
        rows = path.read_bytes().splitlines(keepends=True)
        random.Random(cell.name).shuffle(rows)
        path.write_bytes(b"".join(rows))
    for root in (output, moved):
        report([root], out=tmp_path / root.name, baseline=None, as_json=False)
    first, second = files_below(tmp_path / "outputs"), files_below(tmp_path / "other_name")
    assert list(first) == list(second)
    assert [name for name in first if first[name] != second[name]] == []
    assert not any(str(tmp_path).encode() in content for content in first.values())


def test_json_is_all_that_is_printed_and_nothing_is_written(output: Path, tmp_path: Path) -> None:
    root = tmp_path / "outputs"
    shutil.copytree(output / "cells", root / "cells")
    done = run_command("report", str(root), "--json", cache=tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (EXIT_OK, "")
    plain = orjson.loads(done.stdout)
    assert set(plain["tables"]) == set(TABLES)
    assert not (root / "report").exists()
    done = run_command("report", str(root), "--json", "--out", "here", cache=tmp_path, cwd=tmp_path)
    assert done.stdout.encode() == (tmp_path / "here" / "report.json").read_bytes()


def test_what_is_missing_is_named_and_told_by_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_cell(tmp_path, selector="none", rewards=[100.0, LOST])
    broken = make_cell(tmp_path, selector="vector")
    (broken / "config.json").write_text("{}")
    assert report([tmp_path], out=None, baseline=None, as_json=False) == EXIT_INCOMPLETE
    printed = capsys.readouterr().out
    assert "incomplete: alfworld/valid_seen none simulated: 1 of 2 tasks scored" in printed
    assert f"problem: {broken.name}/config.json" in printed


def test_cells_without_an_episode_are_left_out_and_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_cell(tmp_path, selector="none")
    make_cell(tmp_path, selector="vector", rewards=[100.0, LOST])
    make_cell(tmp_path, selector="vector", rewards=[None] * 4)
    assert report([tmp_path], out=None, baseline=None, as_json=False) == EXIT_INCOMPLETE
    printed = capsys.readouterr().out
    assert printed.count("problem: ") == 1
    assert "problem: 1 of 3 cells has no episode and is left out of tables and comparisons" in printed
    plain = orjson.loads((tmp_path / "report" / "report.json").read_bytes())
    assert [line["method"] for line in plain["lines"]] == ["none", "vector top_k=1"]
    assert (plain["sweep"]["cells"], plain["sweep"]["tasks"]) == (2, 4)


def test_where_no_cell_has_an_episode_all_are_said_to_be_incomplete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for selector in ("none", "vector"):
        make_cell(tmp_path, selector=selector, rewards=[None, None])
    assert report([tmp_path], out=None, baseline=None, as_json=False) == EXIT_INCOMPLETE
    printed = capsys.readouterr().out
    for method in ("none", "vector top_k=1"):
        assert f"incomplete: alfworld/valid_seen {method} simulated: 0 of 2 tasks scored" in printed
    assert "left out" not in printed


def test_the_baseline_can_be_chosen_and_a_wrong_one_is_told(output: Path, tmp_path: Path) -> None:
    report([output], out=tmp_path, baseline="none", as_json=False)
    plain = orjson.loads((tmp_path / "report.json").read_bytes())
    assert {comparison["first"] for comparison in plain["comparisons"]} == {"none"}
    with pytest.raises(ConfigError, match="vectr"):
        report([output], out=tmp_path, baseline="vectr", as_json=False)


def test_mistakes_are_one_message_with_the_fix(tmp_path: Path) -> None:
    for arguments in ((), ("nowhere",), ("nowhere", "--json")):
        done = run_command("report", *arguments, cache=tmp_path, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (EXIT_MISTAKE, "")
        assert done.stderr.startswith("error: ") and "fix: " in done.stderr and "Traceback" not in done.stderr


def test_a_folder_holds_nothing_of_an_earlier_report(output: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    report([output], out=folder, baseline=None, as_json=False)
    own = folder / "tables" / "notes.txt"
    own.write_text("of somebody else")
    make_cell(tmp_path, selector="none")
    report([tmp_path], out=folder, baseline=None, as_json=False)
    report([tmp_path], out=tmp_path / "fresh", baseline=None, as_json=False)
    assert own.exists()
    own.unlink()
    assert files_below(folder) == files_below(tmp_path / "fresh")
    assert not (folder / "tables" / "table2.csv").exists()


def test_an_address_of_no_use_is_a_mistake(output: Path) -> None:
    with pytest.raises(ConfigError, match="--uri"):
        report([output], out=None, baseline=None, as_json=True, uri="http://localhost:5000")


def test_a_folder_that_cannot_be_written_is_told(output: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(DataError, match="cannot be written") as caught:
        report([output], out=blocked, baseline=None, as_json=False)
    assert "--out" in caught.value.fix


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("outputs", "outputs/report"),
        ("outputs/cells", "outputs/report"),
        ("outputs/cells/one", "outputs/report"),
        ("outputs/sweeps/0123.json", "outputs/report"),
        ("elsewhere/one", "elsewhere/one/report"),
    ],
)
def test_the_report_goes_into_the_output_folder(path: str, folder: str) -> None:
    assert default_folder(Path(path)) == Path(folder)


def test_hostile_names_reach_no_format_as_more_than_text(tmp_path: Path) -> None:
    hostile = "=cmd|'</script><img src=x onerror=alert(1)>\\end{document}\x1b[2J"
    for number in range(2):
        options = {"selector.name": hostile, "selector.top_k": number + 1, "backbone.name": f"</td>{hostile}"}
        make_cell(tmp_path, selector="vector", options=options, texts={"observation": hostile, "goal": hostile})
    done = run_command("report", str(tmp_path), cache=tmp_path, cwd=tmp_path)
    assert done.returncode == EXIT_OK, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    written = files_below(tmp_path / "report")
    for name in ("index.html", "report.md"):
        assert b"<img src=x" not in written[name] and b"\x1b" not in written[name]
    assert b"\\end{document}" not in written["tables/table1.tex"]
    assert b"\n=cmd" not in written["tables/table1.csv"] and b",=cmd" not in written["tables/table1.csv"]


@pytest.mark.slow
def test_a_real_run_is_reported(tmp_path: Path) -> None:
    arguments = (
        "benchmark=alfworld",
        "benchmark.limit=6",
        "tracking.enabled=false",
        "selector=vector,vector_top2,none",
    )
    done = run_command("run", "-m", *arguments, cache=tmp_path / "cache", cwd=tmp_path)
    assert done.returncode == EXIT_OK, done.stderr
    done = run_command("report", "outputs", cache=tmp_path / "cache", cwd=tmp_path)
    assert done.returncode == EXIT_OK, done.stderr
    plain = orjson.loads((tmp_path / "outputs" / "report" / "report.json").read_bytes())
    assert plain["sweep"]["episodes"] == plain["sweep"]["tasks"] == 18
    assert [row["labels"][1] for row in plain["tables"]["table1"]["rows"]] == ["none", "vector top_k=1,2"]
    own = {line["method"]: line["estimates"]["reward"]["mean"] for line in plain["lines"]}
    for cell in (tmp_path / "outputs" / "cells").iterdir():
        summary = orjson.loads((cell / "summary.json").read_bytes())
        config = orjson.loads((cell / "config.json").read_bytes())
        assert config["cell"]["library_size"] > 30
        label = "none" if "none" in cell.name else f"vector top_k={config['identity']['selector']['top_k']}"
        assert own[label] == summary["estimates"]["reward"]["mean"]
    sweep = next((tmp_path / "outputs" / "sweeps").iterdir())
    done = run_command("report", str(sweep), "--json", cache=tmp_path / "cache", cwd=tmp_path)
    assert orjson.loads(done.stdout)["tables"] == plain["tables"]


@pytest.mark.slow
def test_a_report_of_many_rows_is_quick_and_small(tmp_path: Path) -> None:
    script = Path(__file__).parents[3] / "benchmarks" / "report_size.py"
    command = [sys.executable, str(script), "--cells", "70", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "70 cells, 10,010 episodes" in done.stdout
