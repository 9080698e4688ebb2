"""The graph of a library: computed once, kept on disk, loaded by every process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from skillarena.selectors.graph_of_skills import extraction, relations
from skillarena.selectors.graph_of_skills.candidates import LinkCandidates
from skillarena.selectors.graph_of_skills.edges import Edges, Orientation, arcs
from skillarena.selectors.graph_of_skills.extraction import Extracted, extract, merged
from skillarena.selectors.graph_of_skills.fields import Node, read_node
from skillarena.selectors.graph_of_skills.io_match import io_scores
from skillarena.selectors.graph_of_skills.lexicon import Lexicon
from skillarena.selectors.graph_of_skills.linking import dependencies, open_questions
from skillarena.selectors.graph_of_skills.near_duplicates import near_duplicates
from skillarena.selectors.graph_of_skills.pagerank import flow
from skillarena.selectors.graph_of_skills.relations import relate
from skillarena.selectors.graph_of_skills.rerank import LexicalScores
from skillarena.selectors.measure import offline
from skillarena.selectors.parts import Parts
from skillarena.selectors.recall import Recall

_LOG = logging.getLogger(__name__)
_FORMAT = "1"
"""Part of every key; raise the number when rules or stored arrays change."""

Extraction = Literal["rules", "llm"]
EXTRACTIONS = ("rules", "llm")
Linking = Literal["none", "llm"]
LINKINGS = ("none", "llm")

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a graph is made."""

    orientation: Orientation
    extraction: Extraction
    linking: Linking


@dataclass(frozen=True, slots=True)
class Graph:
    """What a selection needs of a library; nodes are numbered in the library's order."""

    lexicon: Lexicon
    scores: LexicalScores
    recall: Recall
    edges: Edges
    """Typed edges as the walk sees them."""
    duplicates: NDArray[np.int32]
    """int32[pairs, 2] of near-duplicates; none in the paper's graph."""
    flow: Any
    """Of ``pagerank.flow``."""
    unread: frozenset[int]
    """Nodes whose fields were asked of a model and had to be read by rule."""
    unrelated: frozenset[int]
    """Nodes about whose candidates a model was asked and gave no usable answer."""


class GraphMaker:
    """Makes the graph of a library, each step from the store where another run has done it.

    A node is a skill. The reference knows skills by name and loses one of two that share it.

    Args:
        parts: library, embedder, store, and the model where the recipe asks one.
        recipe: how.
    """

    def __init__(self, parts: Parts, recipe: Recipe) -> None:
        self._parts = parts
        self._recipe = recipe
        self._library = parts.library

    def make(self) -> Graph:
        """The graph. Raises ``RerankerError``, ``BackboneError`` or ``LibraryError``."""
        with offline():
            lexicon = Lexicon.from_arrays(self._kept("words", lambda: Lexicon.build(self._nodes).arrays()))
            edges, unrelated = self._edges(lexicon)
            edges = edges.oriented(self._recipe.orientation)
            duplicates = self._duplicates()
            return Graph(
                lexicon,
                LexicalScores(lexicon, [skill.name for skill in self._library.skills]),
                self._recall,
                edges,
                duplicates,
                flow(len(self._library), *arcs(edges, duplicates)),
                frozenset(index for index, fields in enumerate(self._extracted) if fields is None),
                unrelated,
            )

    @cached_property
    def _nodes(self) -> list[Node]:
        nodes = [read_node(skill) for skill in self._library.skills]
        for index, fields in enumerate(self._extracted):
            if fields is not None:
                nodes[index] = merged(nodes[index], fields)
        return nodes

    @cached_property
    def _extracted(self) -> list[Extracted | None]:
        """The model's fields of each skill, None where its answers could not be used; empty when no model is asked."""
        if self._recipe.extraction == "rules":
            return []
        stored = self._parts.indexes.get_or_make(
            "graph-of-skills-fields", *self._fields_key, make=lambda: orjson.dumps(self._extract())
        )
        return [None if fields is None else Extracted.model_validate_json(fields) for fields in orjson.loads(stored)]

    def _extract(self) -> list[str | None]:
        found = [extract(self._parts.llm, skill) for skill in self._library.skills]
        if lost := found.count(None):
            _LOG.warning("%d of %d skills keep the fields read by rule: the model's are unusable", lost, len(found))
        return [None if fields is None else fields.model_dump_json() for fields in found]

    @cached_property
    def _recall(self) -> Recall:
        places = {skill.id: index for index, skill in enumerate(self._library.skills)}
        parts = self._parts
        return Recall(
            self._library, parts.embedder, parts.indexes, lambda skill: self._nodes[places[skill.id]].embedded
        )

    def _edges(self, lexicon: Lexicon) -> tuple[Edges, frozenset[int]]:
        """Typed edges as found, and the nodes that a model did not answer for."""
        key = [self._parts.embedder.identity, self._recipe.linking]
        if self._recipe.linking == "llm":
            key += [self._parts.llm.identity, str(relations.PROMPT_VERSION)]
        stored = self._kept("edges", lambda: self._link(lexicon), *key)
        edges = Edges(
            np.asarray(stored["sources"], dtype=np.int32),
            np.asarray(stored["targets"], dtype=np.int32),
            np.asarray(stored["kinds"], dtype=np.int8),
            np.asarray(stored["weights"], dtype=np.float64),
        )
        return edges, frozenset(np.asarray(stored["unrelated"], dtype=np.int64).tolist())

    def _link(self, lexicon: Lexicon) -> Arrays:
        nodes = self._nodes
        matches = io_scores([node.outputs for node in nodes], [node.inputs for node in nodes])
        candidates = LinkCandidates(nodes, lexicon, matches, self._recall)
        found = dependencies(nodes, matches, candidates.ranked)
        unrelated = []
        if self._recipe.linking == "llm":
            for node, others in open_questions(len(nodes), found, candidates.ranked):
                numbers = [node, *others]
                confirmed = relate(self._parts.llm, [nodes[number] for number in numbers], numbers)
                if confirmed is None:
                    unrelated.append(node)
                else:
                    found += confirmed
        if unrelated:
            _LOG.warning("%d skills get no relation from the model: its answers are unusable", len(unrelated))
        edges = Edges.of(found)
        return {
            "sources": edges.sources,
            "targets": edges.targets,
            "kinds": edges.kinds,
            "weights": edges.weights,
            "unrelated": np.array(unrelated, dtype=np.int64),
        }

    def _duplicates(self) -> NDArray[np.int32]:
        if self._recipe.orientation == "paper":
            return np.empty((0, 2), dtype=np.int32)
        stored = self._kept(
            "near-duplicates",
            lambda: {"pairs": near_duplicates(self._recall.vectors())},
            self._parts.embedder.identity,
        )
        return np.asarray(stored["pairs"], dtype=np.int32)

    @property
    def _fields_key(self) -> Sequence[str]:
        """What the fields of nodes depend on."""
        key = [_FORMAT, self._library.fingerprint, self._recipe.extraction]
        if self._recipe.extraction == "llm":
            key += [self._parts.llm.identity, str(extraction.PROMPT_VERSION)]
        return key

    def _kept(self, what: str, make: Callable[[], Arrays], *key: str) -> Arrays:
        """Arrays that depend on the nodes' fields and on ``key``, from the store or made."""
        stored = self._parts.indexes.get_or_make(
            f"graph-of-skills-{what}", *self._fields_key, *key, make=lambda: _packed(make())
        )
        with np.load(BytesIO(stored), allow_pickle=False) as arrays:
            return dict(arrays)


def _packed(arrays: Arrays) -> bytes:
    file = BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()
