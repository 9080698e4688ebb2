"""SPEM's whole memory as a value, and as bytes: one JSON object with a digest, weights and vectors as base64."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from skillarena.conf.errors import DataError
from skillarena.selectors.provenance import Provenance
from skillarena.selectors.spem.gnn import WIDTH, Weights, shapes
from skillarena.selectors.spem.procedure import ProcedureStep
from skillarena.selectors.spem.statistics import FEATURES, SkillStatistics
from skillarena.selectors.spem.templates import Template

FORMAT = "spem-memory/1"
"""Raise the number with every change of what the fields mean."""
_FIX = "name a memory file that a learning run wrote, or set selector.memory=null"
_STORED = np.dtype("<f4")


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Both memories, the network and where all of it comes from."""

    library: str
    """Fingerprint of the skill library."""
    embedder: str
    """Identity of the model that all vectors are from."""
    weights: Weights
    statistics: Mapping[str, SkillStatistics] = field(default_factory=dict)
    templates: tuple[Template, ...] = ()
    """In order of their sources."""
    provenance: Provenance = field(default_factory=Provenance)

    def to_bytes(self) -> bytes:
        """The same bytes for the same content."""
        content = {
            "library": self.library,
            "embedder": self.embedder,
            "tasks": sorted(self.provenance.tasks),
            "splits": sorted(list(pair) for pair in self.provenance.splits),
            "statistics": {
                skill: [entry.uses, entry.successes, entry.cost] for skill, entry in self.statistics.items()
            },
            "templates": [_plain_template(template) for template in self.templates],
            "weights": {name: _text(values) for name, values in self.weights.items()},
        }
        return orjson.dumps(
            {"format": FORMAT, "digest": _digest(content), "content": content}, option=orjson.OPT_SORT_KEYS
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Memory:
        """Read what ``to_bytes`` gave. Raises ``DataError`` for anything else."""
        content = _checked_content(data)
        try:
            memory = _memory(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"the SPEM memory lacks or misstates a part ({error!r})", _FIX) from error
        unknown = {template.source for template in memory.templates} - memory.provenance.tasks
        if unknown:
            raise DataError(
                f"the SPEM memory holds {len(unknown)} templates of tasks that it does not say to have learned from",
                _FIX,
            )
        return memory


def _checked_content(data: bytes) -> dict[str, Any]:
    if data.startswith(b'{"format":"skilldag'):
        raise DataError("this is a SkillDAG memory, not one of SPEM", _FIX)
    try:
        whole = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DataError(f"the SPEM memory is damaged: {error}", _FIX) from error
    if not isinstance(whole, dict) or whole.keys() != {"format", "digest", "content"}:
        raise DataError("this is no SPEM memory", _FIX)
    if whole["format"] != FORMAT:
        raise DataError(f"the SPEM memory has the format {whole['format']!r}, not {FORMAT!r}", "learn it anew")
    if not isinstance(whole["content"], dict) or _digest(whole["content"]) != whole["digest"]:
        raise DataError("the SPEM memory was changed after it was written: its digest does not fit", _FIX)
    return whole["content"]


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _memory(content: Mapping[str, Any]) -> Memory:
    weights = {name: _array(text) for name, text in content["weights"].items()}
    dimension = weights["input"].size // WIDTH - FEATURES
    expected = shapes(dimension)
    if weights.keys() != expected.keys():
        raise ValueError(f"weights {sorted(weights)}")
    templates = tuple(_template(plain, dimension) for plain in content["templates"])
    if [template.source for template in templates] != sorted({template.source for template in templates}):
        raise ValueError("templates out of order")
    return Memory(
        library=str(content["library"]),
        embedder=str(content["embedder"]),
        weights={name: weights[name].reshape(shape) for name, shape in expected.items()},
        statistics={
            str(skill): SkillStatistics(int(uses), int(successes), float(cost))
            for skill, (uses, successes, cost) in content["statistics"].items()
        },
        templates=templates,
        provenance=Provenance(
            frozenset(str(task) for task in content["tasks"]),
            frozenset((str(benchmark), str(split)) for benchmark, split in content["splits"]),
        ),
    )


def _plain_template(template: Template) -> dict[str, Any]:
    return {
        "source": template.source,
        "goal": template.goal,
        "vector": _text(template.vector),
        "uses": template.uses,
        "successes": template.successes,
        "procedure": [[step.action, step.times, list(step.after), step.skill] for step in template.procedure],
    }


def _template(plain: Mapping[str, Any], dimension: int) -> Template:
    steps = tuple(
        ProcedureStep(str(action), int(times), tuple(int(source) for source in after), str(skill))
        for action, times, after, skill in plain["procedure"]
    )
    for position, step in enumerate(steps):
        if any(not 0 <= source < position for source in step.after):
            raise ValueError(f"step {position} of a template precedes what it depends on")
    return Template(
        source=str(plain["source"]),
        goal=str(plain["goal"]),
        vector=_array(plain["vector"]).reshape(dimension),
        procedure=steps,
        uses=int(plain["uses"]),
        successes=int(plain["successes"]),
    )


def _text(values: NDArray[np.float32]) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=_STORED).tobytes()).decode("ascii")


def _array(text: str) -> NDArray[np.float32]:
    values = np.frombuffer(base64.b64decode(text, validate=True), dtype=_STORED).astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError("numbers that are none")
    return values
