"""Make the pictures of the README from a small run: `python docs/images/make_images.py`.

Plays seven selectors on 24 tasks of each benchmark with the simulated backbone, writes the report and photographs it in
the browser of the tests. `--report FOLDER` takes a finished report instead of playing anything.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "tests" / "orchestration" / "report"))  # the steered browser
SKILLARENA = (sys.executable, "-m", "skillarena.orchestration.cli")
RUN = (
    "selector=none,random,vector,skillrouter,graph_of_skills,without_split,skillreranker",
    "benchmark=alfworld,scienceworld",
    "benchmark.limit=24",
    "tracking.enabled=false",
    "output_dir=out",
)
VIEW = {
    "setting": "simulated/alfworld/generated_seen",
    "method": "skillreranker k=30",
    "with": "random top_k=1",
    "outcome": "first",
}


def main() -> None:
    """Play, report, photograph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, help="folder of a finished report")
    given = parser.parse_args().report
    with tempfile.TemporaryDirectory() as folder:
        report = given or _made_report(Path(folder))
        shutil.copy(report / "figures" / "tokens.png", HERE / "tokens.png")
        _photograph((report / "index.html").absolute().as_uri(), Path(folder))


def _made_report(folder: Path) -> Path:
    for command in (("run", "-m", *RUN), ("report", "out")):
        subprocess.run([*SKILLARENA, *command], cwd=folder, check=True)
    return folder / "out" / "report"


def _photograph(page: str, folder: Path) -> None:
    from steered_browser import Browser

    with Browser(folder / "profile", width=1280, height=826) as browser:
        browser.open(page)
        browser.wait("document.getElementById('count').textContent")
        browser.screenshot(HERE / "report_page.png")
        browser.resize(1280, 1040)
        browser.open(f"{page}#{urlencode(VIEW)}")
        browser.wait("document.querySelectorAll('[role=option]').length > 0")
        browser.evaluate("document.querySelector('[role=option]').click()")
        browser.wait("document.querySelectorAll('#detail .side').length === 2")
        browser.evaluate("document.activeElement.blur()")
        browser.screenshot(HERE / "report_viewer.png")


if __name__ == "__main__":
    main()
