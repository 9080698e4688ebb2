"""Whether the MLflow store that runs would write to can be used."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import httpx

from skillarena.orchestration.doctor.finding import Finding, ok
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.tracking_store import SQLITE, make_client, no_answer, redacted, tracking_uri

_TIMEOUT_S = 5.0


def tracking(settings: TrackingSettings, output_dir: str) -> Finding:
    """Ask the store for one experiment; nothing is made in it.

    Args:
        settings: of the run.
        output_dir: folder of the default store.

    Raises:
        TrackingError: it does not answer.
    """
    uri = tracking_uri(settings, output_dir)
    client_version = metadata.version("mlflow")
    facts = {"uri": redacted(uri), "mlflow": client_version}
    if uri.startswith(SQLITE) and not Path(uri.removeprefix(SQLITE).partition("?")[0]).exists():
        return ok(f"{redacted(uri)}: made by the first run (mlflow {client_version})", **facts)
    server = ""
    if is_server(uri):
        server = _server_version(uri)
        facts["server"] = server
    _ask(uri)
    said = f"mlflow {client_version} here" + (f", {server} there" if server else "")
    return ok(f"{redacted(uri)} answers ({said})", **facts)


def is_server(uri: str) -> bool:
    """Whether the store is reached by HTTP."""
    return uri.startswith(("http://", "https://"))


def _server_version(uri: str) -> str:
    """What the server says; empty for one that does not. Raises ``TrackingError`` when nothing answers."""
    try:
        answer = httpx.get(f"{uri.rstrip('/')}/version", timeout=_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise no_answer(uri, error) from error
    version = answer.text.strip()
    return version if answer.status_code == httpx.codes.OK and re.fullmatch(r"\d[\w.+-]{0,30}", version) else ""


def _ask(uri: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        make_client(uri).search_experiments(max_results=1)
    except (MlflowException, OSError) as error:
        raise no_answer(uri, error) from error
