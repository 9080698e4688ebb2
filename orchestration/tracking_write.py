"""Finding, opening and filling runs so that doing it again changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from skillarena.orchestration.tracking_points import Point
from skillarena.orchestration.tracking_tags import VERSION_TAG, own_version

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_POINTS = 1000  # a batch; more is refused
_PARAMS = 100  # a batch; more is refused


def find_run(client: MlflowClient, experiment_id: str, key: tuple[str, str]) -> Run | None:
    """The run with a tag's name and value."""
    name, value = key
    found = client.search_runs([experiment_id], filter_string=f"tags.`{name}` = '{value}'", max_results=1)
    return found[0] if found else None


def open_run(
    client: MlflowClient, experiment_id: str, key: tuple[str, str], tags: Mapping[str, str], params: Mapping[str, str]
) -> str:
    """Find a run by one of its tags or create it, and let it be running. Returns its id.

    Tags follow the newest call; parameters, which never change in MLflow, are added where they are missing.
    """
    from mlflow.entities import Param, RunTag

    found = find_run(client, experiment_id, key)
    if found is None:
        first = {**tags, VERSION_TAG: own_version()}
        run_id = str(client.create_run(experiment_id, tags=first).info.run_id)
    else:
        run_id = str(found.info.run_id)
        client.update_run(run_id, status="RUNNING")
        client.log_batch(run_id, tags=[RunTag(name, value) for name, value in tags.items()])
    known = found.data.params if found is not None else {}
    missing = [Param(name, value) for name, value in params.items() if name not in known]
    for start in range(0, len(missing), _PARAMS):
        client.log_batch(run_id, params=missing[start : start + _PARAMS])
    return run_id


def write_points(client: MlflowClient, run_id: str, points: Iterable[Point]) -> None:
    """Log points; those that are there already stay as they are."""
    from mlflow.entities import Metric

    metrics = [Metric(*point) for point in points]
    for start in range(0, len(metrics), _POINTS):
        client.log_batch(run_id, metrics=metrics[start : start + _POINTS])
