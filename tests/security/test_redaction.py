"""Passwords in URLs of a configuration are refused, and those of the environment are never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from canaries import forms
from command import run_command

from skillarena.conf.errors import ConfigError
from skillarena.conf.redaction import body_without_key, holds_credentials, without_credentials, without_key
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.tracking_store import first_line, redacted
from skillarena.selectors.vllm_pooling import _checked_url

WORD = "hunter2hunter2"
URLS = [
    f"http://me:{WORD}@host/v1",
    f"https://{WORD}@host/v1",
    f"http://me:{WORD}/x@host/v1",
    f"http://me:a@{WORD}@host:8000/v1",
    f"https://host/v1?api_key={WORD}",
    f"https://host/v1?x=1&token={WORD}",
    f"postgresql://me:{WORD}@host/db",
]
HARMLESS = [
    "http://127.0.0.1:8000/v1",
    "http://host:5000/@me",
    "sqlite:////home/me@work/mlflow.db",
    "file:///home/me@work:1/skills@2",
    "/data//skills@home",
    "write to me@host, or see https://host/a",
    "https://host/v1?max_tokens=3",
]
KEYS = ["backbone.base_url", "llm.base_url", "parser.model.base_url", "reranker.base_url", "tracking.uri"]


@pytest.mark.parametrize("url", URLS)
def test_a_password_in_a_url_is_seen_and_taken_out(url: str) -> None:
    assert holds_credentials(url) and holds_credentials(f"it said '{url}' and more")
    for shown in (without_credentials(f"see {url} there"), redacted(url), first_line(RuntimeError(f"no {url}"))):
        assert WORD not in shown and "host" in shown


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert not holds_credentials(text)
    assert without_credentials(text) == text


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("key", KEYS)
def test_a_configuration_with_a_password_is_refused_and_the_safe_way_is_named(key: str, url: str) -> None:
    choice = {"backbone": "openai_compatible", "llm": "openai_compatible", "reranker": "vllm_pooling", "parser": "llm"}
    chosen = [f"{group}={name}" for group, name in choice.items()]
    with pytest.raises(ConfigError, match=r"api_key_env|MLFLOW_TRACKING_PASSWORD") as caught:
        compose([*chosen, f"{key}='{url}'"])
    assert key in str(caught.value)
    assert WORD not in str(caught.value)


def test_a_password_in_a_configuration_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "backbone").mkdir()
    (tmp_path / "backbone" / "mine.yaml").write_text(f"defaults: [openai_compatible]\nmodel: m\nbase_url: {URLS[0]}\n")
    with pytest.raises(ConfigError, match=r"backbone\.base_url") as caught:
        compose(["backbone=mine"], tmp_path)
    assert WORD not in str(caught.value)


@pytest.mark.parametrize(
    "url", [f"me:{WORD}@host/v1", f"http://me:{WORD}/x@host", f"//me:{WORD}@host", f"ftp://me:{WORD}@host"]
)
def test_what_is_no_url_is_refused_without_being_repeated(url: str) -> None:
    for check in (lambda: OpenAICompatible(base_url=url, model="m"), lambda: _checked_url(url)):
        with pytest.raises(ConfigError) as caught:
            check()
        assert WORD not in str(caught.value)


@pytest.mark.parametrize("proxy", [f"ftp://me:{WORD}@proxy:1", f"http://me:{WORD}@proxy:{WORD}"])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as caught:
        OpenAICompatible(base_url="https://host/v1", model="m", trust_env=True)
    assert WORD not in str(caught.value)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "-m", "seed=0,1"],
        ["run", "--cfg", "job"],
        ["plan"],
        ["select", "put a hot mug in cabinet"],
        ["retrieve-eval"],
    ],
)
def test_no_command_repeats_or_keeps_a_password(tmp_path: Path, words: list[str]) -> None:
    chosen = ["backbone=openai_compatible", "backbone.model=m", f"backbone.base_url={URLS[0]}"]
    done = run_command(*words, *chosen, cache=tmp_path / "cache", cwd=tmp_path)
    assert done.returncode == 2
    assert "api_key_env" in done.stderr and "Traceback" not in done.stderr
    assert WORD not in done.stdout + done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_a_proxy_of_the_environment_that_fails_is_told_without_its_password(tmp_path: Path) -> None:
    proxy = f"http://me:{WORD}@127.0.0.1:9"
    done = run_command(
        *("run", "backbone=openai_compatible", "backbone.model=m", "backbone.base_url=http://host.invalid/v1"),
        *("backbone.trust_env=true", "backbone.max_retries=0", "backbone.api_key_env=null"),
        cache=tmp_path / "cache",
        cwd=tmp_path,
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"), proxy),
    )
    assert done.returncode == 2, done.stderr
    assert WORD not in done.stdout + done.stderr


@pytest.mark.parametrize("form", forms("x"))
@pytest.mark.parametrize("around", [("", ""), ("a", "b"), ("say ", " twice"), ("===", "===")])
def test_a_key_is_taken_out_in_every_form(form: str, around: tuple[str, str]) -> None:
    key = "sk-test/of+all=forms~0123:x"
    before, after = around
    said = f"{before}{forms(key)[form]}{after}"
    for shown in (without_key(said, key), body_without_key(said.encode(), key).decode()):
        assert "***" in shown
        assert forms(key)[form] not in shown


@pytest.mark.parametrize("key", ["EMPTY", "x", ""])
def test_words_that_happen_to_be_a_short_key_stay_in_replies(key: str) -> None:
    assert body_without_key(b'{"text": "the drawer is EMPTY, x"}', key) == b'{"text": "the drawer is EMPTY, x"}'


@pytest.mark.parametrize("said", ["the key is \\\\u0073\\\\u006b-0123456789", "%2573%256b-0123456789"])
def test_a_key_that_was_escaped_twice_is_taken_out(said: str) -> None:
    assert "0123456789" not in without_key(said, "sk-0123456789")


def test_what_a_tracking_server_repeats_of_its_credentials_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", WORD)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", f"{WORD}-token")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://you:p%2Fword-of-the-url@host/")
    sent = [f"me:{WORD}", f"{WORD}-token", "you:p/word-of-the-url"]
    for secret in sent:
        for form, text in forms(secret).items():
            shown = first_line(RuntimeError(f"somebody sent {text} to the message board"))
            assert text not in shown, form
            assert shown.endswith(" to the message board") and shown.startswith("somebody sent "), shown
