"""A hook of MkDocs: pages that are written when the site is built, and links to files that are not part of it."""

from __future__ import annotations

import importlib.util
import posixpath
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
BUILT = {
    "add_selector.md": "examples/add_selector/README.md",
    "add_environment.md": "examples/add_environment/README.md",
    "add_backbone.md": "examples/add_backbone/README.md",
    "ray_up.md": "examples/ray-up/README.md",
    "kuberay.md": "examples/kuberay/README.md",
    "config_reference.md": "conf",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}
"""Pages that lie elsewhere in the repository: the file or folder that each is made from, to which texts link."""
_SHIM = "https://unpkg.com/iframe-worker/shim"
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".md": "markdown"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add guides of the examples, the two cluster recipes with a guide, the reference, and pages of the top level."""
    for name, source in BUILT.items():
        files.append(File.generated(config, name, content=_content(name, ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the repository to the pages made from them, and name the files that have no page.

    Texts link to what is there in a clone; the site is read without the repository beside it.
    """
    pages = {f"docs/{file.src_uri}": file.src_uri for file in files} | {source: name for name, source in BUILT.items()}
    here = page.file.src_uri
    folder = posixpath.dirname(BUILT.get(here, f"docs/{here}"))

    def led(link: re.Match[str]) -> str:
        parts = urlsplit(link[2])
        if parts.scheme or not parts.path:
            return link[0]
        target = posixpath.normpath(posixpath.join(folder, parts.path))
        if target not in pages:
            return f"{link[1]} (`{target}`)"
        address = posixpath.relpath(pages[target], posixpath.dirname(here) or ".")
        return f"[{link[1]}]({parts._replace(path=address).geturl()})"

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", led, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The theme would load its stand-in for workers from another host."""
    return output.replace(_SHIM, f"{page.url.count('/') * '../'}scripts/worker.js")


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Likewise of the page for addresses that are not there."""
    return output_content.replace(_SHIM, "/scripts/worker.js")


def _content(name: str, source: Path) -> str:
    if name == "config_reference.md":
        return _reference()
    return _guide(source.parent) if name.startswith("add_") else source.read_text(encoding="utf-8")


def _guide(folder: Path) -> str:
    """An example's guide and, below it, all of its files."""
    parts = [(folder / "README.md").read_text(encoding="utf-8"), "## All of its files\n"]
    for path in sorted(folder.rglob("*")):
        if path.suffix in _LANGUAGES and path.name != "README.md" and "outputs" not in path.parts:
            code = path.read_text(encoding="utf-8")
            parts.append(f"`{path.relative_to(folder)}`\n\n````{_LANGUAGES[path.suffix]}\n{code}````\n")
    return "\n".join(parts)


def _reference() -> str:
    """The module lies beside this one, which MkDocs does not put on Python's path."""
    spec: Any = importlib.util.spec_from_file_location(
        "config_reference", Path(__file__).with_name("config_reference.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.reference()
    return text
