"""One isolated ScienceWorld world: the simulator's calls as typed methods, each with a deadline."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.scienceworld_jvm import JvmOptions, borrow, give_back
from skillarena.envs.scienceworld_tasks import Scene

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_INTERFACE = "scienceworld.runtime.pythonapi.PythonInterface"
_STRINGS_AN_ANSWER = 150
"""Answers over 8 KB travel in packets that wait for each other, about 45 ms each time."""
_ASIDES = frozenset({"help", "objects", "task"})
"""Words that the simulator answers without playing them."""
_BLANKS = "".join(map(chr, range(33)))
"""What Java trims."""
_NO_ANSWER = (
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. "
)
"""What the simulator says where an action leads to no text."""


class World:
    """A simulator with classes of its own, so its random generator, id counter and simplifications are its own too.

    It has a connection of its own and shares the Java process with the other worlds of this process. It serves one
    thread at a time.

    A late call ends the Java process, since a single call cannot be stopped; all worlds in it are lost then.

    Args:
        options: how to start the Java process when none runs.
        deadline_s: seconds every call may take.

    Raises:
        EnvError: the simulator cannot be started.
    """

    def __init__(self, options: JvmOptions, deadline_s: float) -> None:
        simulator_jar = jar()
        self._deadline_s = deadline_s
        self._broken = False
        self._closed = False
        self._valid_actions: list[str] | None = None
        self._listing: Callable[[], Any] | None = None
        self._game: Any = None
        self._score, self._completed = 0, False
        self._jvm = borrow(options)
        self._spare = self._jvm.spare.setdefault(deadline_s, [])
        try:
            with self._answering("a world was being made"):
                try:
                    self._simulator: _Simulator = self._spare.pop()
                except IndexError:
                    class_path = self._jvm.class_path(simulator_jar)
                    self._simulator = _isolated(self._jvm.connect(deadline_s), class_path)
        except BaseException:
            give_back(self._jvm)
            raise

    @property
    def usable(self) -> bool:
        """False for good after a failed or interrupted call, the end of the Java process, or ``close``."""
        return not self._broken and not self._closed and self._jvm.is_alive()

    def load(self, scene: Scene) -> None:
        """Build a task's world anew. Raises ``DataError`` when the simulator has no such task or variation."""
        self._load(scene, gold=False)

    def description(self) -> str:
        """The loaded task in words."""
        with self._answering("the task description was read"):
            return str(self._idle_interface().getTaskDescription())

    def step(self, action: str) -> tuple[str, int, bool]:
        """Play one action: the observation, the score (-100 to 100), and whether the task is completed.

        Listing the valid actions draws random numbers that later events depend on. The stock wrapper lists them after
        every step, so the simulator does it here as well, but nobody waits for that before the next call.
        """
        from skillarena.envs.scienceworld_gateway import begin

        with self._answering(f"{action[:60]!r} was played"):
            interface = self._idle_interface()
            if action.strip(_BLANKS).lower() in _ASIDES:
                observation = str(interface.step(action))
            else:
                observation = self._play(action)
            self._valid_actions, self._listing = None, begin(interface.getValidActionObjectCombinations)
            return observation, self._score, self._completed

    def valid_actions(self) -> list[str]:
        """The actions that the simulator would carry out now, sorted, each once; asking again changes nothing."""
        if self._valid_actions is None:
            with self._answering("the valid actions were listed"):
                listing = self._listing or self._simulator.interface.getValidActionObjectCombinations
                self._listing = None
                found = self._strings(listing())
            self._valid_actions = list(dict.fromkeys(found))
        return list(self._valid_actions)

    def gold_path(self, scene: Scene) -> list[str]:
        """The simulator's own solution of a task; finding it takes from under a second to a minute.

        It plays the task to find it, so the world has to be loaded anew before it is played.
        """
        self._load(scene, gold=True)
        with self._answering("a gold path was read"):
            return self._strings(self._idle_interface().getGoldActionSequence())

    def close(self) -> None:
        """End the use of the world; the last one of this process ends the Java process. Safe to call twice."""
        if self._closed:
            return
        with contextlib.suppress(EnvError):  # of a simulator that is not used again then
            if self.usable:
                with self._answering("a world was closed"):
                    self._idle_interface()
                    self._forget_game()
                self._spare.append(self._simulator)
        if self._broken:
            self._simulator.gateway.close(keep_callback_server=True)
        self._closed = True
        give_back(self._jvm)

    def _load(self, scene: Scene, *, gold: bool) -> None:
        with self._answering(f"{scene.name} was loaded"):
            interface = self._idle_interface()
            self._forget_game()
            problem = interface.load(scene.task, scene.variation, scene.simplifications, gold)
            found = interface.agentInterface()
            self._game = found.get()
            _release(found)
        self._score, self._completed = 0, False
        self._valid_actions = None
        if problem:
            raise DataError(f"ScienceWorld cannot load {scene.name}: {problem}", "check the task and variation")

    def _play(self, action: str) -> str:
        """Play an action on the game itself, and note the score.

        The interface in front of it would describe the place and the inventory before, and find the names of all
        things afterwards, for a history and a log that nobody reads. That is an eighth of the time.
        """
        result = self._game.step(action)
        observation, score, completed = str(result)[1:-1].rsplit(",", 2)  # a tuple, in one call instead of three
        _release(result)
        self._score, self._completed = round(100 * float(score)), completed == "true"
        return observation or _NO_ANSWER

    def _forget_game(self) -> None:
        if self._game is not None:
            _release(self._game)
            self._game = None

    def _idle_interface(self) -> Any:
        """The simulator, once the listing that nobody asked for has ended."""
        if self._listing is not None:
            listing, self._listing = self._listing, None
            _release(listing())
        return self._simulator.interface

    def _strings(self, java_list: Any) -> list[str]:
        """A Java list of strings in Python, in few and small answers."""
        strings: list[str] = []
        size = java_list.size()
        for start in range(0, size, _STRINGS_AN_ANSWER):
            part = java_list.subList(start, min(start + _STRINGS_AN_ANSWER, size))
            strings += self._simulator.java_string.join("\n", part).split("\n")
            _release(part)
        _release(java_list)
        return strings

    @contextlib.contextmanager
    def _answering(self, doing: str) -> Iterator[None]:
        """Turn every way in which the simulator can fail to answer into an ``EnvError``."""
        from py4j.protocol import Py4JError, Py4JJavaError

        if not self.usable:
            raise EnvError(f"ScienceWorld is gone{self._why()}, when {doing}", self._remedy())
        try:
            yield
        except Py4JJavaError as error:
            self._broken = True
            raise EnvError(f"ScienceWorld failed when {doing}: {error.java_exception}") from error
        except Py4JError as error:
            self._jvm.kill()
            if isinstance(error.cause, TimeoutError):
                raise EnvError(
                    f"ScienceWorld gave no answer for {self._deadline_s:g} s when {doing}, so its process was ended",
                    "raise call_deadline_s (or gold_deadline_s for a gold path) if the machine is slow",
                ) from error
            raise EnvError(f"ScienceWorld died{self._why()}, when {doing}", self._remedy()) from error
        except BaseException:
            self._broken = True  # its answer may still come
            raise

    def _why(self) -> str:
        reason = self._jvm.last_words()
        return f" ({reason})" if reason else ""

    def _remedy(self) -> str:
        return "raise jvm_heap_mb" if "OutOfMemoryError" in self._jvm.last_words() else "reset the environment"


class _Simulator(NamedTuple):
    """A simulator and the connection that is its own."""

    gateway: JavaGateway
    java_string: Any
    interface: Any


def _isolated(gateway: JavaGateway, class_path: Sequence[Path]) -> _Simulator:
    """A simulator whose classes are loaded anew, apart from those of every other."""
    java = gateway.jvm.java
    urls = gateway.new_array(java.net.URL, len(class_path))
    for index, path in enumerate(class_path):
        urls[index] = java.net.URL(path.as_uri())
    parent = java.lang.ClassLoader.getPlatformClassLoader()
    loader = java.net.URLClassLoader(urls, parent)
    interface_class = loader.loadClass(_INTERFACE)
    simulator = _Simulator(gateway, java.lang.String, interface_class.newInstance())
    for temporary in (urls, parent, loader, interface_class):
        gateway.detach(temporary)
    return simulator


def _release(java_object: Any) -> None:
    from skillarena.envs.scienceworld_gateway import release

    release(java_object)


def jar() -> Path:
    """The simulator itself, from the package ``scienceworld``. Raises ``EnvError`` when that is not installed."""
    spec = importlib.util.find_spec("scienceworld")
    if spec is None or not spec.submodule_search_locations:
        raise EnvError("the package scienceworld is not installed", "pip install 'skillarena[scienceworld]'")
    return Path(spec.submodule_search_locations[0]) / "scienceworld.jar"
