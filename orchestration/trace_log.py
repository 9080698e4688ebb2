"""Traces of episodes in MLflow, written once each.

A trace's id is made from its run and its episode, so writing it again changes nothing. Its spans go before its head,
which carries the episode's id: a trace found by that id is whole.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from skillarena.orchestration.backbones.prices import read_price
from skillarena.orchestration.ledger import EpisodeRow, read_config
from skillarena.orchestration.report.episode import Episode
from skillarena.orchestration.traces import EpisodeSpan, episode_spans
from skillarena.orchestration.trajectory import Trajectory

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Span, TraceInfo

_PAGE = 500  # traces a page of a search; more is refused
_ID_DIGITS = 32  # of an episode's id; a client's own id of a trace may have 50 characters
_BATCH_SPANS = 1000  # about as many a request; a few megabytes


@dataclass
class TraceLog:
    """Traces of one cell's episodes."""

    client: MlflowClient
    experiment_id: str
    run_id: str
    cell_dir: Path
    _logged: set[str] | None = field(default=None, init=False)
    """The beginnings of the ids of episodes whose traces are whole; None before the store was asked."""

    def log(self, rows: Iterable[EpisodeRow]) -> None:
        """Write the traces of all episodes with a trajectory that have none yet.

        Raises:
            DataError: a trajectory is damaged or cannot be read.
            MlflowException: the store refuses.
            NotImplementedError: it takes no spans.
        """
        from mlflow.tracing.client import TracingClient  # takes finished traces; MlflowClient times living ones itself

        if self._logged is None:
            self._logged = set(self._find())
        fresh = [row for row in rows if row.trajectory_offset >= 0 and _short_id(row) not in self._logged]
        if not fresh:
            return
        tracing = TracingClient(self.client.tracking_uri)
        for batch in self._batches(fresh):
            tracing.log_spans(self.experiment_id, [span for trace in batch for span in trace.spans])
            for trace in batch:
                tracing.start_trace(trace.info)
                self._logged.add(trace.short_id)

    def _find(self) -> Iterator[str]:
        token: str | None = None
        while True:
            page = self.client.search_traces(
                locations=[self.experiment_id],
                run_id=self.run_id,
                max_results=_PAGE,
                page_token=token,
                include_spans=False,
            )
            yield from (trace.info.client_request_id for trace in page if trace.info.client_request_id)
            token = page.token
            if not token:
                return

    def _batches(self, rows: Iterable[EpisodeRow]) -> Iterator[list[_Trace]]:
        batch: list[_Trace] = []
        for trace in self._traces(rows):
            batch.append(trace)
            if sum(len(made.spans) for made in batch) >= _BATCH_SPANS:
                yield batch
                batch = []
        if batch:
            yield batch

    def _traces(self, rows: Iterable[EpisodeRow]) -> Iterator[_Trace]:
        price = read_price(read_config(self.cell_dir)["settings"].get("backbone", {}).get("price"))
        for row in rows:
            trajectory = Episode(self.cell_dir, row).trajectory()
            if trajectory is None:
                continue
            spans = episode_spans(trajectory, row, price)
            digest = hashlib.sha256(f"{self.run_id}\n{row.episode_id}".encode()).digest()[:16]
            trace_id = f"tr-{digest.hex()}"
            info = self._info(trace_id, spans[0], trajectory, row)
            made = [_span(span, place, trace_id, digest) for place, span in enumerate(spans)]
            yield _Trace(_short_id(row), info, made)

    def _info(self, trace_id: str, whole: EpisodeSpan, trajectory: Trajectory, row: EpisodeRow) -> TraceInfo:
        from mlflow.entities import TraceInfo, TraceLocation, TraceState

        return TraceInfo(
            trace_id=trace_id,
            trace_location=TraceLocation.from_experiment_id(self.experiment_id),
            request_time=whole.start_ns // 1_000_000,
            execution_duration=(whole.end_ns - whole.start_ns) // 1_000_000,
            state=TraceState.OK,
            request_preview=trajectory.goal[:1000],
            response_preview=f"{row.outcome}, reward {trajectory.reward:g}, {row.env_steps} steps",
            client_request_id=_short_id(row),
            trace_metadata={"mlflow.sourceRun": self.run_id},
            tags={
                "mlflow.traceName": row.task_name,
                "outcome": row.outcome,
                "task_type": row.task_type,
                "simulated": str(trajectory.simulated).lower(),
            },
        )


@dataclass(frozen=True)
class _Trace:
    short_id: str
    info: TraceInfo
    spans: list[Span]


def _short_id(row: EpisodeRow) -> str:
    return row.episode_id[:_ID_DIGITS]


def _span(span: EpisodeSpan, place: int, trace_id: str, digest: bytes) -> Span:
    """A span in MLflow's form; the first of a trace is the parent of all others."""
    from mlflow.entities import Span

    attributes = {
        "mlflow.traceRequestId": trace_id,
        "mlflow.spanType": span.kind,
        "mlflow.spanInputs": span.inputs,
        "mlflow.spanOutputs": span.outputs,
        **span.attributes,
    }
    return Span.from_dict(
        {
            "trace_id": base64.b64encode(digest).decode(),
            "span_id": _span_id(place),
            "parent_span_id": _span_id(0) if place else None,
            "name": span.name,
            "start_time_unix_nano": span.start_ns,
            "end_time_unix_nano": span.end_ns,
            "status": {
                "code": "STATUS_CODE_ERROR" if span.refused else "STATUS_CODE_OK",
                "message": "refused" if span.refused else "",
            },
            "attributes": {key: json.dumps(value) for key, value in attributes.items()},
        }
    )


def _span_id(place: int) -> str:
    """Eight bytes that are unique within a trace; zero stands for none."""
    return base64.b64encode((place + 1).to_bytes(8)).decode()
