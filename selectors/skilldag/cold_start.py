"""The first graph of a library: candidate pairs by two views, types by rules or a model, invariants kept."""

from __future__ import annotations

import logging
from collections import Counter
from hashlib import sha256

import numpy as np
import orjson

from skillarena.conf.errors import LibraryError
from skillarena.selectors.parts import Parts
from skillarena.selectors.skilldag import llm_cold_start, rules
from skillarena.selectors.skilldag.candidates import Pairs, choose_candidates
from skillarena.selectors.skilldag.edges import BACKBONE, EDGE_TYPES, GraphError, make_edge
from skillarena.selectors.skilldag.graph import SkillGraph
from skillarena.selectors.skilldag.journal import FirstGraph
from skillarena.selectors.skilldag.labels import Label
from skillarena.selectors.skilldag.topological_order import TopologicalOrder
from skillarena.selectors.skilldag.views import DistinctVectors, self_text

NEEDS_VIEWS = ("parser", "llm")
CLASSIFIERS = ("rules", "llm")
_FORMAT = "1"
_LOG = logging.getLogger(__name__)


def first_graph(parts: Parts, needs_view: str, classifier: str) -> FirstGraph:
    """The graph before any episode, made once for a library.

    Args:
        parts: library, embedder, store, and parser or model as the options ask for.
        needs_view: ``parser`` or ``llm``: what says what a skill needs first.
        classifier: ``rules`` or ``llm``: what gives pairs their types.

    Raises:
        BackboneError: a model cannot be reached or gives answers out of form.
        RerankerError: the embedder fails.
        LibraryError: the stored graph is damaged.
    """
    content = parts.indexes.get_or_make(
        "skilldag",
        _FORMAT,
        parts.library.fingerprint,
        parts.embedder.identity,
        parts.parser.identity if needs_view == "parser" else f"{llm_cold_start.VERSION} {parts.llm.identity}",
        rules.VERSION if classifier == "rules" else f"{llm_cold_start.VERSION} {parts.llm.identity}",
        make=lambda: _encode(*_admitted(_labels(parts, needs_view, classifier), len(parts.library))),
    )
    return FirstGraph(parts.library.fingerprint, sha256(content).hexdigest(), _decode(content, parts))


def _labels(parts: Parts, needs_view: str, classifier: str) -> list[Label]:
    skills = parts.library.skills
    selves = DistinctVectors(map(self_text, skills), parts.embedder, "document")
    alike = choose_candidates(np.arange(len(skills)), selves, selves)
    if needs_view == "llm":
        wanted = llm_cold_start.llm_needs(skills, parts.llm)
    else:
        wanted = [parts.parser.parse_skill(skill).precondition for skill in skills]
    needing = np.array([index for index, text in enumerate(wanted) if text], dtype=np.intp)
    needs = DistinctVectors((text for text in wanted if text), parts.embedder, "query")
    fulfilling = choose_candidates(needing, needs, selves)
    if classifier == "llm":
        return llm_cold_start.label_by_llm(skills, _unordered(alike, fulfilling), parts.llm)
    return rules.label_by_rules(selves, alike, needs, needing, fulfilling)


def _unordered(*candidates: Pairs) -> Pairs:
    """Each pair once, the earlier skill first, in order."""
    return np.unique(np.sort(np.concatenate(candidates), axis=1), axis=0)


def _admitted(labels: list[Label], size: int) -> tuple[list[Label], int]:
    """The labels without those that would close a cycle with earlier ones, and the number of these."""
    order = TopologicalOrder(size)
    kept = [label for label in labels if label.type not in BACKBONE or order.admit(*label.pair)]
    return kept, len(labels) - len(kept)


def _encode(labels: list[Label], left_out: int) -> bytes:
    edges = [(label.source, label.target, EDGE_TYPES.index(label.type), label.reason) for label in labels]
    counts = Counter(label.type for label in labels)
    _LOG.info("first skill graph: %s; %d edges left out because of cycles", dict(counts), left_out)
    return orjson.dumps({"left_out": left_out, "edges": edges})


def _decode(content: bytes, parts: Parts) -> SkillGraph:
    ids = [skill.id for skill in parts.library.skills]
    try:
        edges = (
            make_edge(ids[source], ids[target], EDGE_TYPES[edge_type], reason, "cold_start")
            for source, target, edge_type, reason in orjson.loads(content)["edges"]
        )
        return SkillGraph(parts.library.by_id.keys(), edges)
    except (GraphError, IndexError, KeyError, TypeError, ValueError) as error:
        raise LibraryError(
            f"the stored first graph of SkillDAG is damaged ({error})", "delete the folder `indexes` of the cache"
        ) from error
