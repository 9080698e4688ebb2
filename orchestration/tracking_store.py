"""Where MLflow keeps its records, and how to reach it without ever showing a password."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from skillarena.conf.errors import ConfigError, TrackingError
from skillarena.orchestration.settings import TrackingSettings

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_PAGE = 500  # runs


def tracking_uri(settings: TrackingSettings, output_dir: str) -> str:
    """The configured URI, else MLflow's own variable, else the SQLite file in the output folder."""
    return (
        settings.uri
        or os.environ.get("MLFLOW_TRACKING_URI")
        or f"sqlite:///{Path(output_dir).absolute() / 'mlflow.db'}"
    )


def with_uri(settings: TrackingSettings, uri: str | None) -> TrackingSettings:
    """The settings with another address, if one is given. Raises ``ConfigError`` for an address with a password."""
    if uri is None:
        return settings
    try:
        return TrackingSettings.model_validate(settings.model_dump() | {"uri": uri})
    except ValidationError as error:
        raise ConfigError(
            "the tracking URI holds a password, which others could see",
            "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_URI",
        ) from error


def make_client(uri: str) -> MlflowClient:
    """A client that gives up soon and logs little.

    Raises:
        MlflowException: the store cannot be opened.
        OSError: as above.
    """
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    for noisy, level in {"mlflow": logging.WARNING, "alembic": logging.WARNING, "urllib3": logging.ERROR}.items():
        logging.getLogger(noisy).setLevel(level)  # after the import, which sets its own levels
    return MlflowClient(tracking_uri=uri)


def connect(settings: TrackingSettings, output_dir: str) -> tuple[MlflowClient, str]:
    """A client and the id of the experiment, created on first use.

    Raises:
        TrackingError: the store cannot be reached or opened.
    """
    from mlflow.exceptions import MlflowException

    uri = tracking_uri(settings, output_dir)
    local = uri.startswith("sqlite:")
    try:
        if local:
            Path(output_dir).mkdir(parents=True, exist_ok=True)
        client = make_client(uri)
        experiment = client.get_experiment_by_name(settings.experiment)
        if experiment is not None:
            return client, str(experiment.experiment_id)
        artifacts = (Path(output_dir).absolute() / "mlartifacts").as_uri() if local else None
        return client, str(client.create_experiment(settings.experiment, artifact_location=artifacts))
    except (MlflowException, OSError) as error:
        raise TrackingError(
            f"tracking store {redacted(uri)} does not answer: {first_line(error)}",
            "check tracking.uri, or set tracking.enabled=false and run `skillarena sync` later",
        ) from error


def search_runs(client: MlflowClient, experiment_ids: list[str], filter_string: str) -> Iterator[Run]:
    """All runs that a filter finds, page by page."""
    token: str | None = None
    while True:
        page = client.search_runs(experiment_ids, filter_string, max_results=_PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def redacted(uri: str) -> str:
    """A URI without user name, password and query."""
    uri = uri.partition("?")[0]
    scheme, separator, rest = uri.partition("://")
    host = rest.rpartition("@")[2] if "@" in rest.partition("/")[0] else rest
    return f"{scheme}{separator}{host}"


def first_line(error: BaseException) -> str:
    """What an error of the store says, short and without credentials."""
    line = (str(error).splitlines() or [type(error).__name__])[0][:300]
    return re.sub(r"//[^/@\s]*@", "//", line)  # client libraries quote URLs with the credentials in them
