"""Where MLflow keeps its records, and how to reach it without ever showing a password."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from skillarena.conf.errors import ConfigError, TrackingError
from skillarena.conf.redaction import without_credentials, without_key
from skillarena.orchestration.settings import TrackingSettings

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

SQLITE = "sqlite:///"
_PAGE = 500  # runs
_LONGEST_LINE = 300
_SECRET_USER = 8  # characters; a shorter name may be a part of any word

_AWAY = "check tracking.uri, or set tracking.enabled=false and run `skillarena sync` later"
_OUTDATED = "save a copy of the database, run `mlflow db upgrade` with its address, then `skillarena sync`"


def tracking_uri(settings: TrackingSettings, output_dir: str) -> str:
    """The configured URI, else MLflow's own variable, else the SQLite file in the output folder."""
    return (
        settings.uri or os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}{Path(output_dir).absolute() / 'mlflow.db'}"
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
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    from mlflow import MlflowClient

    levels = {"mlflow": logging.WARNING, "alembic": logging.WARNING, "urllib3": logging.ERROR}
    levels["mlflow.store.db.utils"] = logging.CRITICAL  # it prints whole tracebacks of errors that are told in a line
    for noisy, level in levels.items():
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
            make_sqlite_store(uri)
        client = make_client(uri)
        experiment = client.get_experiment_by_name(settings.experiment)
        if experiment is not None:
            return client, str(experiment.experiment_id)
        artifacts = (Path(output_dir).absolute() / "mlartifacts").as_uri() if local else None
        return client, str(client.create_experiment(settings.experiment, artifact_location=artifacts))
    except (MlflowException, OSError) as error:
        raise no_answer(uri, error) from error


def no_answer(uri: str, error: BaseException) -> TrackingError:
    """What to tell of a store that cannot be reached or opened."""
    return TrackingError(
        f"tracking store {redacted(uri)} does not answer: {first_line(error)}",
        _OUTDATED if "database schema" in str(error) else _AWAY,
    )


def make_sqlite_store(uri: str) -> None:
    """Make the file of a new SQLite store in one stroke; one that is there stays as it is.

    Its tables take seconds, and MLflow refuses a file in which some are missing. A process that dies meanwhile must
    not leave such a file behind, nor may another one see it.

    Raises:
        MlflowException: MLflow cannot make it.
        OSError: the folder cannot be written.
    """
    path = Path(uri.removeprefix(SQLITE))
    if not uri.startswith(SQLITE) or "?" in uri or path.exists() or not path.parent.is_dir():
        return
    with _only_one_in(path.parent), TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        if not path.exists():
            whole = Path(folder) / path.name
            make_client(f"{SQLITE}{whole}").search_experiments(max_results=1)
            whole.rename(path)


@contextmanager
def _only_one_in(folder: Path) -> Iterator[None]:
    """Holds the folder's lock."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
    return without_credentials(uri).partition("?")[0]


def first_line(error: BaseException) -> str:
    """What an error of the store says, short and without credentials."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    for secret in _sent_secrets():  # a server may repeat what it was sent
        line = without_key(line, secret)
    return without_credentials(line)[:_LONGEST_LINE]  # client libraries quote URLs with the credentials in them


def _sent_secrets() -> list[str]:
    """What MLflow takes from the environment; user and password together first, as they are sent."""
    pairs = [(os.environ.get("MLFLOW_TRACKING_USERNAME", ""), os.environ.get("MLFLOW_TRACKING_PASSWORD", ""))]
    with suppress(ValueError):  # no URL
        url = urlsplit(os.environ.get("MLFLOW_TRACKING_URI", ""))
        pairs.append((unquote(url.username or ""), unquote(url.password or "")))
    together = [f"{user}:{password}" for user, password in pairs if password]
    alone = [password for _, password in pairs] + [user for user, _ in pairs if len(user) >= _SECRET_USER]
    return [*together, *alone, os.environ.get("MLFLOW_TRACKING_TOKEN", "")]
