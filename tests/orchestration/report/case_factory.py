"""Selections for tests of case studies: of the form that SkillReranker gives, with any number of states and skills."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from skillarena.orchestration.ledger import Ledger, read_config
from skillarena.selectors.execution_graph import build_edges, flow, phi, sigmoid, split_points, stage_winners, stages
from skillarena.selectors.interface import SelectedSkill, Selection

sys.path.append(str(Path(__file__).parents[2] / "selectors"))  # for parts and libraries to select with

HOSTILE = "</text><script>alert(1)</script> $\\frac{a}{b}$ {{ 7*7 }} _x_ \x1b[31m \x00 \ufffe & \"'` =1+1 \u202e"
JAPANESE = "水はまだ沸いていない。とても長い文章なので折り返しが必要です。"


def skill_name(number: int) -> str:
    return f"library/skill-{number}"


def state_text(number: int) -> str:
    return f"This is what holds in state {number} of the task"


def edges_selection(
    states: int = 4,
    skills: int = 30,
    *,
    name: Callable[[int], str] = skill_name,
    text: Callable[[int], str] = state_text,
    seed: int = 0,
    split_everywhere: bool = False,
    marks: tuple[str, ...] = (),
) -> Selection:
    """What a method with an execution graph gives, computed by the graph's own functions from random scores."""
    lot = np.random.default_rng(seed)
    relevance, before, after = (
        lot.normal(0, 2, skills),
        lot.normal(size=(skills, states - 1)),
        lot.normal(size=(skills, states)),
    )
    edges = build_edges(before, after)
    splits = list(range(1, states - 1)) if split_everywhere else split_points(*edges, relevance, n=states)
    scores = {stage: lot.normal(0, 3, skills) for stage in stages(splits, n=states)}
    winners = stage_winners(*edges, relevance, scores)
    flows = flow(*edges, relevance, n=states)
    chosen = list(dict.fromkeys(winners.values()))
    details: dict[str, Any] = {
        "method": "skillreranker",
        "parse": {
            "subtasks": [f"Do {text(i)}" for i in range(states - 1)],
            "states": [text(i) for i in range(states)],
            "fallback": False,
        },
        "candidates": [
            {
                "id": name(k),
                "name": name(k),
                "cosine": float(lot.random()),
                "rho": float(relevance[k]),
                "w": float(sigmoid(relevance[k])),
                "src": int(edges.src[k]),
                "tgt": int(edges.tgt[k]),
                "keep": bool(edges.keep[k]),
                "precondition": None if k % 2 else text(0),
                "completion": text(1),
                "fallback": k == 1,
            }
            for k in range(skills)
        ],
        "flow": {key: values.tolist() for key, values in flows._asdict().items()},
        "splits": splits,
        "stages": [
            {
                "start": stage[0],
                "end": stage[1],
                "text": " ".join(f"Do {text(i)}" for i in range(*stage)),
                "logits": logits.tolist(),
                "phi": phi(relevance, logits).tolist(),
                "chosen": name(winners[stage]) if stage in winners else None,
            }
            for stage, logits in scores.items()
        ],
        "chosen": [name(k) for k in chosen],
    }
    return Selection(tuple(skill(name(k), float(relevance[k])) for k in chosen), marks=marks, details=details)


def skill(name: str, score: float = 1.0, reason: str = "It fits.") -> SelectedSkill:
    return SelectedSkill(name, name, "", "text", score, reason)


def keep_selections(cell_dir: Path, selection: Selection) -> None:
    """Give every episode of a cell the same kept selection."""
    config = read_config(cell_dir)
    with Ledger(cell_dir, config["identity"], {}, ()) as ledger:
        for row in list(ledger.rows.values()):
            ledger.append(row, selection=selection)
