from __future__ import annotations

from pathlib import Path

import pytest

from skillarena.orchestration.backbones.coverage import covers, taught_verbs

REAL = Path(__file__).parents[3] / "shared" / "data" / "skills"

HEATING = """\
# kitchen-heater
Warm food up. Use this skill when something must be hot.

Open the microwave before you use it; then close it again, take a rest and go to the table.

1. **Walk:** `go to {appliance}`
2. **Heat:** run `heat {object} with {appliance}`.
3. `put <object> in/on <receptacle>`
Actions such as `cool`, `clean` or `take` are somewhere else.

```
Thought: The microwave is closed.
Action: open microwave 1
> examine microwave 1
Observation: close call
use std::collections::HashMap;
```
"""


@pytest.mark.parametrize(
    ("action", "taught"),
    [
        ("go to fridge 1", True),
        ("heat egg 1 with microwave 1", True),
        ("move egg 1 to countertop 2", True),
        ("open drawer 4", True),
        ("examine egg 1", True),
        ("close microwave 1", False),
        ("use desklamp 1", False),
        ("cool egg 1 with fridge 1", False),
        ("take egg 1 from fridge 1", False),
        ("clean egg 1 with sinkbasin 1", False),
        ("florble the wug", False),
    ],
)
def test_commands_shown_as_code_are_taught_and_prose_is_not(action: str, taught: bool) -> None:
    assert covers(HEATING, action, "alfworld") is taught


def test_prompted_lines_outside_of_fences_count() -> None:
    text = (
        "For example:\n> teleport to workshop\nAction: pick up thermometer\n**Action:** `look around`\npick up the rest"
    )
    assert taught_verbs(text, "scienceworld") == {"teleport to", "pick up", "look around"}


def test_indented_blocks_are_code() -> None:
    text = "Go to the desk.\n\n    go to desk 1\n    You arrive.\n\ttake pen 2 from desk 1\nopen it all"
    assert taught_verbs(text, "alfworld") == {"go to", "take"}


def test_bare_verbs_count_when_the_command_has_no_names() -> None:
    text = "First `look around`, check your `inventory`, then `wait`; mind `focus on` and `look`."
    assert taught_verbs(text, "scienceworld") == {"look around", "inventory", "wait"}


def test_similar_verbs_are_kept_apart() -> None:
    assert not covers("`look at OBJ`", "look around", "scienceworld")
    assert not covers("`wait`", "wait1", "scienceworld")
    assert not covers("`activate stove`", "deactivate stove", "scienceworld")
    assert covers("`use thermometer on metal pot`", "use shovel on ground", "scienceworld")


def test_an_unclosed_fence_ends_nothing_early() -> None:
    assert taught_verbs("```\ngo to desk 1\nuse desklamp 1", "alfworld") == {"go to", "use"}


def test_commands_of_unknown_benchmarks_go_by_their_first_word() -> None:
    assert covers("Try `rest now`.", "rest", "corridor")
    assert not covers("Rest a while.", "rest", "corridor")


def test_empty_text_teaches_nothing() -> None:
    assert taught_verbs("", "alfworld") == frozenset()


@pytest.mark.parametrize(
    ("skill", "action", "taught"),
    [
        ("alfworld/alfworld-heat-object-with-appliance", "heat mug 1 with microwave 1", True),
        ("alfworld/alfworld-heat-object-with-appliance", "move mug 1 to shelf 1", True),
        ("alfworld/alfworld-heat-object-with-appliance", "clean mug 1 with sinkbasin 1", False),
        ("alfworld/alfworld-clean-object", "clean mug 1 with sinkbasin 1", True),
        ("alfworld/alfworld-object-picker", "take mug 1 from desk 1", True),
        ("alfworld/alfworld-goal-interpreter", "go to desk 1", False),
        ("scienceworld/scienceworld-circuit-builder", "connect battery anode to red wire terminal 1", True),
        ("scienceworld/scienceworld-liquid-pourer", "pour red paint into cup", True),
        ("scienceworld/scienceworld-liquid-pourer", "focus on cup", False),
        ("webshop/webshop-search-executor", "use desklamp 1", False),
    ],
)
def test_real_skills_teach_what_they_show(skill: str, action: str, taught: bool) -> None:
    file = REAL / skill / "SKILL.md"
    if not file.exists():
        pytest.skip(f"needs the reference skills ({REAL})")
    benchmark = "alfworld" if skill.startswith("alfworld") or "desklamp" in action else "scienceworld"
    assert covers(file.read_text(encoding="utf-8"), action, benchmark) is taught
