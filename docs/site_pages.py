"""A hook of MkDocs: pages that are written when the site is built, and links to files that are not part of it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ("add_selector", "add_environment", "add_backbone")
_SHIM = "https://unpkg.com/iframe-worker/shim"
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".md": "markdown"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add guides of the examples, the two cluster recipes with a guide, the reference, and pages of the top level."""
    pages = {f"{name}.md": _guide(ROOT / "examples" / name) for name in GUIDES}
    pages |= {
        "ray_up.md": _text("examples/ray-up/README.md"),
        "kuberay.md": _text("examples/kuberay/README.md"),
        "config_reference.md": _reference(),
        "changelog.md": _text("CHANGELOG.md"),
        "contributing.md": _text("CONTRIBUTING.md"),
    }
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name files of the repository instead of linking to them: the site is read without the repository beside it."""
    known = {file.src_uri for file in files}

    def named(link: re.Match[str]) -> str:
        target = link[2].partition("#")[0]
        outside = target.startswith("../") or (target and "://" not in link[2] and target not in known)
        return f"{link[1]} (`{target.removeprefix('../')}`)" if outside and "/images/" not in target else link[0]

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", named, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The theme would load its stand-in for workers from another host."""
    return output.replace(_SHIM, f"{page.url.count('/') * '../'}scripts/worker.js")


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Likewise of the page for addresses that are not there."""
    return output_content.replace(_SHIM, "/scripts/worker.js")


def _guide(folder: Path) -> str:
    """An example's guide and, below it, all of its files."""
    parts = [(folder / "README.md").read_text(encoding="utf-8"), "## All of its files\n"]
    for path in sorted(folder.rglob("*")):
        if path.suffix in _LANGUAGES and path.name != "README.md" and "outputs" not in path.parts:
            code = path.read_text(encoding="utf-8")
            parts.append(f"`{path.relative_to(folder)}`\n\n````{_LANGUAGES[path.suffix]}\n{code}````\n")
    return "\n".join(parts)


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _reference() -> str:
    """The module lies beside this one, which MkDocs does not put on Python's path."""
    spec: Any = importlib.util.spec_from_file_location(
        "config_reference", Path(__file__).with_name("config_reference.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.reference()
    return text
