"""A cell with a million finished episodes goes on within half a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_resume import resume, write_ledger

from skillarena.orchestration.ledger import read_rows


def test_the_ledger_that_is_measured_is_one_that_reads_well(tmp_path: Path) -> None:
    write_ledger(tmp_path / "cell", 30)
    content = read_rows(tmp_path / "cell")
    assert (len(content.rows), content.damaged_lines) == (30, 0)
    assert len({row.task_id for row in content.rows}) == 30


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_million_finished_episodes_are_known_within_half_a_minute(tmp_path: Path) -> None:
    write_ledger(tmp_path / "cell", 1_000_000)
    cpu_s, rows = resume(tmp_path / "cell")
    (tmp_path / "cell" / "episodes.jsonl").unlink()  # almost a gigabyte
    assert rows == 1_000_000
    assert cpu_s < 30, f"{cpu_s:.1f} s of CPU time"
