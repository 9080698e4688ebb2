"""The audit of dependencies looks at both locks and calls nothing sound that it could not look up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_audit_covers_both_locks_and_is_strict() -> None:
    done = subprocess.run(["make", "-n", "audit"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "requirements.lock requirements-gpu.lock" in done.stdout
    assert "pip-audit --strict" in done.stdout
    assert "make audit" in (ROOT / "Makefile").read_text().partition("SHELL")[0]


@pytest.mark.parametrize("service", ["pypi", "osv"])
def test_an_audit_that_cannot_ask_fails(tmp_path: Path, service: str) -> None:
    pytest.importorskip("pip_audit", reason="the audit comes with the extra `dev`")
    (tmp_path / "lock").write_text("certifi==2020.4.5.1\n")
    dead = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    words = ["--strict", "--no-deps", "--disable-pip", "--timeout", "5", "-s", service, "-r", str(tmp_path / "lock")]
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", *words],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **dead},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "No known vulnerabilities" not in done.stdout + done.stderr
