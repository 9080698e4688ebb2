"""Game files, their grammars and PDDL, observations, and what Java says: a sound value, or the one kind of error."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest
from alfworld_files import GRAMMAR, PROBLEM, make_scene
from hostile import changed, data, fuzzed, texts
from hypothesis import given
from hypothesis import strategies as st

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs.alfworld_games import TASK_TYPES, playable_games, read_game
from skillarena.envs.alfworld_planner import find_plan, read_goal
from skillarena.envs.alfworld_scene import visible_names
from skillarena.envs.alfworld_text import Grammar, Rule, parse_grammar, parse_query, symbols
from skillarena.envs.alfworld_translator import translate
from skillarena.envs.interface import Task
from skillarena.envs.java import version_in
from skillarena.envs.scienceworld_replies import is_question, is_refusal
from skillarena.envs.scienceworld_tasks import Scene, canonical_simplifications
from skillarena.envs.task_choice import choose_tasks
from skillarena.orchestration.dialects import dialect_of
from skillarena.selectors.spem.commands import parse_command

SCENE = make_scene(
    """
    receptacletype desk_bar_1 desktype
    receptacleatlocation desk_bar_1 loc_bar_1
    objecttype mug_bar_1 mugtype
    objecttype mug_bar_2 mugtype
    inreceptacle mug_bar_1 desk_bar_1
    inreceptacle mug_bar_2 desk_bar_1
    pickupable mug_bar_1
    cancontain desktype mugtype
    atlocation agent1 loc_bar_1
    """
)
BOUND = {("r", "receptacle"): "desk_bar_1"}
TEMPLATES = texts(
    "You see ", "{r.name}", "[{o.indefinite + ' ' + o.name | inreceptacle(o:object, r:receptacle)}]", "#a#", "#b(o)#",
    "{#b(o)# | inreceptacle(o:object, r:receptacle) & pickupable(o:object)}", "{o.name or 'x'}", "|", "&", "{r.", "}",
    "pickupable(a:object) & ", "inreceptacle(a:object)", "+ ", "' '", "(", ")",
)  # fmt: skip


# --- ALFWorld's games


GRAMMARS = texts(
    GRAMMAR, 'grammar :: """', '""";', "action go {", "}\n", 'template :: "go";', 'feedback :: "#a#";',
    '{"a": [{"rhs": "x"}]}', '{"a": [{"rhs": "x", "condition": "p(o)"}]}',
)  # fmt: skip


@fuzzed
@given(GRAMMARS)
def test_grammar_of_a_game(text: str) -> None:
    try:
        grammar = parse_grammar(text)
    except DataError as error:
        assert len(error.message) < 1000
        return
    assert all(isinstance(rule.text + rule.condition, str) for rules in grammar.rules.values() for rule in rules)
    try:
        assert grammar.goal == grammar.goal.strip()
    except DataError as error:
        assert "task" in error.message


RULES = {"a": [{"rhs": "#b#", "condition": "pickupable(o:object)"}, {"rhs": "x"}], "b": [{"rhs": "y"}]}


@fuzzed
@given(changed(RULES) | data('{"a": [{"rhs": "'))
def test_rules_of_a_grammar(rules: bytes) -> None:
    try:
        grammar = parse_grammar(f'grammar :: """{rules.decode("utf-8", "replace")}""";')
        assert isinstance(grammar.render("#a#", SCENE, BOUND), str)
    except DataError as error:
        assert error.fix


@fuzzed
@given(TEMPLATES, TEMPLATES, TEMPLATES)
def test_text_template_of_a_game(text: str, rule: str, condition: str) -> None:
    lists = {name: [Rule(", ")] for name in ("list_empty", "list_separator", "list_last_separator")}
    grammar = Grammar({"a": [Rule(rule, condition), Rule("x")], "b(o)": [Rule(rule)], **lists})
    for read in (symbols, parse_query):
        try:
            assert isinstance(read(text), tuple)
        except DataError as error:
            assert len(error.message) < 1000
    try:
        assert isinstance(grammar.render(text, SCENE, BOUND), str)
        assert all(isinstance(predicate, str) for predicate in grammar.predicates(text))
    except DataError as error:
        assert error.fix


GAME = {
    "pddl_domain": "(define (domain alfred))", "grammar": GRAMMAR.format(goal="find it."),
    "pddl_problem": PROBLEM.format(name="x"), "solvable": True, "walkthrough": ["look"],
}  # fmt: skip


@fuzzed
@given(changed(GAME) | data('{"grammar": "'), changed({"task_type": TASK_TYPES[0]}) | data(), st.booleans())
def test_files_of_a_game(game: bytes, trajectory: bytes, whole: bool) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name, "task", "trial")
        folder.mkdir(parents=True)
        (folder / "game.tw-pddl").write_bytes(orjson.dumps(GAME) if whole else game)
        (folder / "traj_data.json").write_bytes(trajectory if whole else b'{"task_type": "x"}')
        try:
            found = read_game(folder / "game.tw-pddl")
            assert found.goal and len(found.id) == 64
            assert len(playable_games(Path(name))) <= 1
        except DataError as error:
            assert name in error.message


@fuzzed
@given(
    texts("(:goal ", "(objectType ?o mugtype)", "(receptacleType ?r desktype)", "(isHot ?o)", "(isToggled ?l)", "(and ")
)
def test_goal_of_a_game(problem: str) -> None:
    goal = read_goal(problem)
    if goal is not None:
        assert all(isinstance(command, str) for command in find_plan(goal, SCENE))


@fuzzed
@given(st.lists(texts("mug_bar_", "basin", "_bar_"), max_size=8))
def test_names_of_things(things: list[str]) -> None:
    things = list(dict.fromkeys(things))
    names = visible_names(things)
    assert names.keys() == set(things)
    assert len(set(names.values())) == len(names) or any("basin" in thing for thing in things)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["", "(" * 100_000, ")" * 10, "\x00", "(define (problem p) (:domain d))", "\ud800"])
def test_pddl_that_cannot_be_grounded(problem: str) -> None:
    for domain in ("", "(define (domain d))", "(" * 100_000):
        with pytest.raises(DataError):
            translate(domain, problem, deadline_s=60)


# --- observations and replies of the simulators


@fuzzed
@given(texts("Ambiguous request: ", "No known action matches that input.", "The door is ", "You move to the ", "(in) "))
def test_observation(text: str) -> None:
    assert isinstance(is_refusal(text), bool)
    assert isinstance(is_question(text), bool)
    command = parse_command(text)
    assert command.target == command.target.lower()


@fuzzed
@given(texts("looking quickly around you, you see ", "a desk 1, ", "and an armchair 22", ".", "1" * 400))
def test_places_of_a_room(text: str) -> None:
    assert all(place for place in dialect_of("alfworld").places(text))


@fuzzed
@given(data('openjdk version "17.0.1"', 'java version "1.8.0_292"', "\n"))
def test_what_java_says_of_itself(said: bytes) -> None:
    found = version_in(said.decode("utf-8", "replace"))
    assert found is None or found >= 0


# --- tasks

SOURCE = {"task": "boil", "variation": 1, "simplifications": "easy"}


@fuzzed
@given(changed(SOURCE))
def test_scene_of_a_task(source: bytes) -> None:
    try:
        plain = orjson.loads(source)
    except ValueError:
        return
    task = Task("scienceworld", "seen", "0", "boil/1", "boil", "", plain if isinstance(plain, dict) else {})
    try:
        assert Scene.of(task).name
    except DataError as error:
        assert "boil/1" in error.message


@fuzzed
@given(texts("easy", "teleportAction", ",", "openDoors"))
def test_simplifications(text: str) -> None:
    try:
        found = canonical_simplifications(text)
    except ConfigError as error:
        assert error.fix
        return
    assert canonical_simplifications(found) == found


TASKS = [Task("b", "s", f"{number:064x}", f"boil/{number}", "boil", "") for number in range(4)]


@fuzzed
@given(st.lists(texts("boil", "/1", "0" * 9) | st.integers(), max_size=3), st.integers() | st.none())
def test_choice_of_tasks(ids: list[str], limit: int | None) -> None:
    try:
        chosen = choose_tasks(TASKS, task_ids=ids, limit=limit)
    except ConfigError as error:
        assert error.fix
        return
    assert chosen and all(task in TASKS for task in chosen)
