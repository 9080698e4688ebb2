"""Points of charts: the same rows give the same points, and later rows change no earlier point."""

from __future__ import annotations

from row_factory import lost, make_row

from skillarena.orchestration.tracking_points import CellEnd, Point, episode_points, running_points, sweep_points


def _values(points: list[list[Point]], key: str) -> list[float]:
    return [point.value for means in points for point in means if point.key == key]


def test_running_means_are_over_all_scored_episodes_so_far() -> None:
    rows = [make_row(n, reward=reward, finished_at=100.0 + n) for n, reward in enumerate((100.0, 0.0, 50.0))]
    points = running_points(rows)
    assert _values(points, "running/reward") == [100.0, 50.0, 50.0]
    assert [means[0].step for means in points] == [0, 1, 2]
    assert [means[0].timestamp for means in points] == [100_000, 101_000, 102_000]


def test_a_mended_episode_changes_no_earlier_point() -> None:
    before = [make_row(0, finished_at=1.0), lost(1), make_row(2, reward=0.0, finished_at=3.0)]
    mended = [before[0], make_row(1, reward=40.0, finished_at=9.0), before[2]]
    earlier, later = running_points(before), running_points(mended)
    assert later[: len(earlier)] == earlier
    assert _values(later, "running/reward") == [100.0, 50.0, 140.0 / 3]


def test_an_infrastructure_error_has_no_measures() -> None:
    assert [point.key for point in episode_points(0, lost(0))] == ["episode/infra_error"]
    scored = {point.key: point.value for point in episode_points(3, make_row(3))}
    assert scored["episode/infra_error"] == 0.0
    assert scored["episode/reward"] == 100.0
    assert scored["episode/total_tokens"] == 1050.0


def test_a_sweep_sums_up_its_cells() -> None:
    cells = [
        CellEnd(2, [make_row(0, finished_at=5.0), make_row(1, finished_at=6.0)], "FINISHED"),
        CellEnd(2, [make_row(0, wasted_tokens=7, finished_at=4.0), lost(1)], "KILLED"),
    ]
    values = {point.key: point.value for point in sweep_points(cells)}
    assert values["sweep/cells"] == 2
    assert values["sweep/cells_finished"] == 1
    assert values["sweep/episodes"] == 3
    assert values["sweep/coverage"] == 0.75
    assert values["sweep/infra_errors"] == 1
    assert values["sweep/total_tokens"] == 3 * 1050
    assert values["sweep/wasted_tokens"] == 7


def test_money_is_summed_up_only_where_every_episode_knows_it() -> None:
    priced, unpriced = make_row(0, cost=0.5), make_row(1)
    assert {p.key: p.value for p in sweep_points([CellEnd(1, [priced], "FINISHED")])}["sweep/cost"] == 0.5
    assert "sweep/cost" not in {p.key for p in sweep_points([CellEnd(2, [priced, unpriced], "FINISHED")])}
