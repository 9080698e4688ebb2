"""Whether the installed packages are those that the project was made for."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from skillarena.orchestration.doctor.finding import Finding, Status, ok
from skillarena.orchestration.hydra_run import CONF_DIR

LOCK = CONF_DIR.parent / "requirements.lock"
"""Beside the sources; wheels have none."""

_MAIN = ("ray", "hydra-core", "mlflow", "torch", "sentence-transformers", "alfworld", "scienceworld")
_FIX = "pip install -c requirements.lock -e '.[alfworld,scienceworld,models]'"


def packages(lock: Path = LOCK) -> Finding:
    """Compare what is installed with what pyproject.toml allows and with what the lock pins.

    Args:
        lock: file with pins; it may be missing.
    """
    installed = {name: version for name in _MAIN if (version := _version(name))}
    facts = {"installed": installed}
    for extras, status in ((False, Status.FAIL), (True, Status.WARN)):
        if wrong := _not_allowed(metadata.requires("skillarena") or [], extras=extras):
            return Finding(status, "; ".join(wrong), _FIX, facts)
    listed = ", ".join(f"{name} {version}" for name, version in installed.items())
    if not lock.is_file():
        return ok(listed, **facts)
    pinned = _pins(lock)
    plain = {name: version.partition("+")[0] for name, version in installed.items()}  # without the build's label
    other = [f"{name} {pinned[name]}" for name in plain if pinned.get(name, plain[name]) != plain[name]]
    note = f"tested with {', '.join(other)}" if other else "as in requirements.lock"
    return ok(f"{listed}; {note}", **facts)


def _not_allowed(requirements: list[str], *, extras: bool) -> list[str]:
    """Direct requirements that are not met; those of extras only where they are installed in another version."""
    wrong = []
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if ("extra" in str(marker)) != extras or (marker is not None and not extras and not marker.evaluate()):
            continue
        version = _version(requirement.name)
        if version is None and not extras:
            wrong.append(f"{requirement.name} is not installed")
        elif version is not None and not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version} is installed, {requirement.specifier} is needed")
    return wrong


def _pins(lock: Path) -> dict[str, str]:
    lines = (line.partition("#")[0].strip() for line in lock.read_text(encoding="utf-8").splitlines())
    pins = [Requirement(line) for line in lines if line and not line.startswith("-")]
    fitting = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    return {pin.name: str(pin.specifier).removeprefix("==") for pin in fitting}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
