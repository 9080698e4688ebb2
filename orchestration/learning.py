"""What a cell's selector learns while the cell runs: batches, lessons and memories on disk.

Episodes of a batch start from the same memory. When all of them have their rows, their lessons are merged in task order
into the next memory, so the outcome depends neither on the number of workers nor on who is first. A cell folder holds

* ``lessons.jsonl``: one line an episode, written before the episode's row;
* ``memory/NNNN-DIGEST``: the memory after batch NNNN, written whole.

Both are read again when the cell is continued, so learning resumes where the episodes do.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from skillarena.conf.errors import DataError
from skillarena.envs.interface import Task
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.json_lines import JsonLines
from skillarena.selectors.live import Lesson

log = logging.getLogger(__name__)

_DIGITS = 12
_LESSON = TypeAdapter(Lesson)


class Learning:
    """A cell's progress through its batches. Use it while the cell's ledger is open, whose lock guards the folder.

    Args:
        cell: one whose selector learns.
        finished: whether a task's episode has its row.

    Raises:
        DataError: here and in every method: the folder cannot be read or written.
    """

    def __init__(self, cell: Cell, finished: Callable[[Task], bool]) -> None:
        assert cell.batch is not None
        self._tasks = [cell.tasks[at : at + cell.batch] for at in range(0, len(cell.tasks), cell.batch)]
        self._finished = finished
        self._folder = cell.directory
        self._lessons = _read_lessons(self._folder / "lessons.jsonl")
        self.memory: bytes | None = None
        """What episodes of the current batch start from; None before the first update."""
        self.memory_file = ""
        """Its name in the cell's folder ``memory``."""
        self._memories = cell.directory / "memory"
        self._updates = 0
        self.merging = False
        """An update is being computed."""
        while self.batch_is_over and self._take_up():
            pass

    @property
    def done(self) -> bool:
        """All batches are over and merged."""
        return self._updates == len(self._tasks)

    @property
    def batch(self) -> tuple[Task, ...]:
        """Tasks that may be played now; none once all is done."""
        return () if self.done else self._tasks[self._updates]

    @property
    def batch_is_over(self) -> bool:
        """All episodes of the batch have their rows, so that it can be merged."""
        return not self.done and all(map(self._finished, self.batch))

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """What the batch has taught, in task order. Raises ``DataError`` when a lesson is missing."""
        missing = [task.name for task in self.batch if task.id not in self._lessons]
        if missing:
            raise DataError(
                f"{self._folder / 'lessons.jsonl'} lacks what {len(missing)} finished episodes taught,"
                f" for example {missing[0]}",
                "restore the file, or delete the cell's folder to play it anew",
            )
        return tuple(self._lessons[task.id] for task in self.batch)

    @property
    def final(self) -> Path | None:
        """The file of the latest memory; None before the first update."""
        return self._memories / self.memory_file if self.memory_file else None

    def keep(self, lesson: Lesson | None) -> None:
        """Write down what an episode taught, before its row."""
        if lesson is None:
            return  # and so the batch cannot be merged
        try:
            file = JsonLines(self._folder / "lessons.jsonl")
            try:
                file.append(asdict(lesson))
            finally:
                file.close()
        except (OSError, TypeError) as error:
            raise DataError(
                f"{self._folder}: cannot record what an episode taught ({error})",
                "free some disk space and run the same command again; finished episodes are kept",
            ) from error
        self._lessons[lesson.task_id] = lesson

    def update(self, memory: bytes) -> None:
        """The batch is merged: write the memory down and go on to the next batch."""
        name = _file_name(self._updates + 1, memory)
        path = self._memories / name
        try:
            path.parent.mkdir(exist_ok=True)
            part = path.with_name(f"{name}.part")
            part.write_bytes(memory)
            part.replace(path)
        except OSError as error:
            raise DataError(
                f"{path}: cannot be written ({error.strerror or error})",
                "see to it that the folder can be written, and run the same command again; finished episodes are kept",
            ) from error
        self._go_on(name, memory)

    def _go_on(self, name: str, memory: bytes) -> None:
        self.memory, self.memory_file = memory, name
        self._updates += 1
        self.merging = False

    def _take_up(self) -> bool:
        """Go on with the stored memory of the batch that is over; one that is missing or damaged is merged again."""
        for path in self._memories.glob(f"{self._updates + 1:04d}-*"):
            memory = _read(path)
            if path.name == _file_name(self._updates + 1, memory):
                self._go_on(path.name, memory)
                return True
            if not path.name.endswith(".part"):
                log.warning("%s is damaged; it is made again from the lessons", path)
        return False


def _file_name(update: int, memory: bytes) -> str:
    """Number of the update and first digits of the content's digest, so that a damaged file is noticed."""
    return f"{update:04d}-{hashlib.sha256(memory).hexdigest()[:_DIGITS]}"


def _read_lessons(path: Path) -> dict[str, Lesson]:
    """The last lesson of each task. A line that is none counts as missing, like a torn row of a ledger."""
    lessons: dict[str, Lesson] = {}
    for line in (_read(path) if path.exists() else b"").splitlines():
        try:
            lesson = _LESSON.validate_json(line)
        except ValidationError:
            continue
        lessons[lesson.task_id] = lesson
    return lessons


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})", "mend its permissions") from error
