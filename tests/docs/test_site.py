"""The site builds without a warning, works from disk and offline, and every link of every text leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from documented import PAGES, ROOT
from steered_browser import Browser, chromium

TEXTS = [page for page in PAGES if page.exists()]
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class Html(HTMLParser):
    """Ids, links and loaded resources of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADS and LOADS[tag] in given and given.get("rel") != "canonical":
            self.loaded.append(given[LOADS[tag]])


@pytest.fixture(scope="module")
def cloned() -> set[Path]:
    """Files and folders of the repository, without those that git ignores: what is only built here leads nowhere."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone of the repository")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    files = {ROOT / name for name in listed.split("\0") if name}
    return files | {folder for file in files for folder in file.parents}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    return {path: Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_page_of_the_menu_is_there_once(site: Path, pages: dict[Path, Html]) -> None:
    wanted = re.findall(r"([\w/-]+)\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(wanted) > 20
    assert len(set(wanted)) == len(wanted)
    for name in wanted:
        assert site / f"{name.replace('README', 'index')}.html" in pages


def test_links_and_anchors_of_the_site_lead_somewhere(site: Path, pages: dict[Path, Html]) -> None:
    dead = []
    for page, html in pages.items():
        for link in html.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith(("#__", "mailto:")):
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (parts.fragment and target in pages and parts.fragment not in pages[target].ids):
                dead.append((str(page.relative_to(site)), link))
    assert dead == []


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("index", {"add_selector", "add_environment", "add_backbone", "config_reference"}),
        ("start", {"add_selector", "config_reference"}),
        ("cluster", {"ray_up", "kuberay"}),
        ("contributing", {"changelog", "decisions/index", "decisions/selectors-without-init"}),
    ],
)
def test_links_to_files_that_have_a_page_lead_to_it(
    site: Path, pages: dict[Path, Html], page: str, wanted: set[str]
) -> None:
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    article = Html(text[text.index("<article") : text.index("</article>")])
    assert {f"{name}.html" for name in wanted} <= set(article.links)


def test_a_page_loads_nothing_from_elsewhere(site: Path, pages: dict[Path, Html]) -> None:
    for page, html in pages.items():
        for resource in html.loaded:
            assert not urlsplit(resource).netloc, (page, resource)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")), style


@pytest.mark.slow
def test_the_search_works_on_a_page_that_is_opened_from_disk(site: Path, tmp_path: Path) -> None:
    chromium()
    with Browser(tmp_path / "profile") as browser:
        browser.open((site / "decisions" / "one-queue.html").as_uri())
        browser.evaluate("document.querySelector('[data-md-toggle=search]').click()")
        browser.evaluate(
            "(field => { field.focus(); field.value = 'sigmoid'; field.dispatchEvent(new Event('keyup'));"
            " field.dispatchEvent(new Event('input')); })(document.querySelector('.md-search__input'))"
        )
        found = browser.wait("document.querySelector('.md-search-result__link')?.href")
        assert "traps.html" in found
        assert browser.errors == []
        assert all(address.startswith(("file:", "data:", "about:")) for address in browser.requests)


def test_the_reference_has_every_key_of_every_file(pages: dict[Path, Html], site: Path) -> None:
    text = (site / "config_reference.html").read_text(encoding="utf-8")
    for path in (ROOT / "conf").glob("*/*.yaml"):
        assert f"{path.parent.name}={path.stem}" in text
    for key in ("selector.stage_candidates", "run.max_cost", "benchmark.jvm_heap_mb", "backbone.price", "seed"):
        assert f"<code>{key}</code>" in text


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_text_in_the_repository_lead_somewhere(page: Path, cloned: set[Path]) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme in ("https", "http") and re.fullmatch(r"[\w.-]+\.\w+(:\d+)?", parts.netloc), link
        elif parts.path:
            target = (page.parent / unquote(parts.path)).resolve()
            assert target in cloned and target.exists(), link


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_of_the_repository_that_a_text_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:conf|docs|envs|examples|orchestration|selectors|tests)/[\w./-]+\.\w+)`", page.read_text())
    missing = [name for name in named if not (ROOT / name).exists() and not (page.parent / name).exists()]
    assert missing == []
