"""The plan of a sweep: what is left to do, and what that should take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from skillarena.orchestration.backbones.prices import Price
from skillarena.orchestration.plan_estimate import (
    PastEpisode,
    Use,
    cost_of,
    expected_episode,
    expected_skill_parse,
    expected_task_parse,
    total,
)
from skillarena.orchestration.plan_memory import Memory, facts_of, memory_of
from skillarena.orchestration.plan_survey import CellFacts, Server
from skillarena.orchestration.pricing import price_of
from skillarena.orchestration.serving.hosts import hosted_parts
from skillarena.orchestration.settings import RunSettings, digest, label

_TOKENS_OF_A_PLACE = 3  # a candidate's id and what separates it from the next one


@dataclass(frozen=True)
class CellPlan:
    """One cell."""

    name: str
    axes: dict[str, str]
    episodes: int
    finished: int
    expected: Use
    """Of the agent, over all episodes left."""
    cost: float | None
    """Money for ``expected``; None: unknown, or no language model."""
    simulated: bool


@dataclass(frozen=True)
class ModelPlan:
    """One language model in one role, over the whole sweep."""

    role: str
    """``agent``, ``tasks parsed``, ``skills parsed (at most)``, ``library indexed (at most)`` or ``skills ranked``."""
    model: str
    expected: Use
    cost: float | None
    """Money; None: unknown, or no language model."""
    simulated: bool = False


@dataclass(frozen=True)
class ProcessPlan:
    """One kind of process on GPUs."""

    name: str
    processes: int
    gpus: float
    """GPUs of each process."""
    memory: Memory
    """On each GPU, the least."""
    note: str
    """Where the numbers come from and what else the process takes."""


@dataclass(frozen=True)
class Plan:
    """What ``skillarena plan`` says."""

    cells: tuple[CellPlan, ...]
    selections: int
    """Distinct selections over the sweep."""
    stored: int
    """Those among them that are stored already, or whose episodes are all finished."""
    models: tuple[ModelPlan, ...]
    processes: tuple[ProcessPlan, ...]
    caps: tuple[str, ...]
    """Caps of ``run`` that would stop the sweep before its end, one sentence each."""
    missing: tuple[str, ...]
    """What ``run`` would not find today, one sentence each."""
    assumptions: tuple[str, ...]
    """Where the numbers come from, one sentence each."""

    @property
    def cost(self) -> float | None:
        """Money for everything; None when the price of any model is unknown."""
        costs = [model.cost for model in self.models if not model.simulated]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "cost": self.cost}


@dataclass
class _Notes:
    """Assumptions in order of appearance, each with what it is about."""

    by_text: dict[str, list[str]] = field(default_factory=dict)

    def add(self, text: str, subject: str) -> None:
        subjects = self.by_text.setdefault(text, [])
        if subject not in subjects:
            subjects.append(subject)

    def sentences(self) -> list[str]:
        return [f"{', '.join(subjects)}: {text}" for text, subjects in self.by_text.items()]


def plan_sweep(facts: Sequence[CellFacts], past: Sequence[PastEpisode], missing: Sequence[str]) -> Plan:
    """Put the plan together.

    Args:
        facts: what is known about each cell.
        past: finished episodes to learn from.
        missing: what the survey did not find.
    """
    notes = _Notes()
    cells = [_cell(cell, past, notes) for cell in facts]
    parsing = _parsing(facts, past, notes)
    models = (*_agents(facts, cells), *parsing, *_asking(facts, notes))
    if any(cell.cost == 0.0 and not cell.simulated for cell in cells):
        notes.add("models on machines of one's own have no price a token; their GPU time is not counted", "cost")
    unidentified = [cell.cell.name for cell in facts if not cell.identified]
    if unidentified:
        missing = [
            *missing,
            f"finished episodes and stored selections of {len(unidentified)} cells: they cannot be told apart"
            " without the models above, so all of them count as open",
        ]
    distinct = frozenset[str]().union(*(cell.selections for cell in facts))
    to_compute = frozenset[str]().union(*(cell.to_compute for cell in facts))
    plan = Plan(
        cells=tuple(cells),
        selections=len(distinct),
        stored=len(distinct - to_compute),
        models=models,
        processes=tuple(_servers(facts) + _hosts(facts)),
        caps=(),
        missing=tuple(missing),
        assumptions=tuple(notes.sentences()),
    )
    return replace(plan, caps=tuple(_caps(facts[0].cell.settings.run, plan)))


def _caps(run: RunSettings, plan: Plan) -> Iterator[str]:
    tokens = sum(model.expected.prompt + model.expected.completion for model in plan.models)
    if run.max_tokens is not None and tokens > run.max_tokens:
        yield f"run.max_tokens={run.max_tokens:,} is less than the {tokens:,.0f} tokens expected"
    if run.max_cost is not None and plan.cost is not None and plan.cost > run.max_cost:
        yield f"run.max_cost={run.max_cost:g} is less than the {plan.cost:,.2f} expected"


def _cell(facts: CellFacts, past: Sequence[PastEpisode], notes: _Notes) -> CellPlan:
    kind, left = facts.kind, len(facts.open)
    each = expected_episode(kind, facts.skill_tokens, past)
    if left:
        notes.add(each.source, f"turns and tokens of {kind.benchmark}")
        if each.skills_added:
            notes.add(facts.skill_source, f"skills of {kind.selector}")
    expected = each.use * left
    cost = None if kind.simulated else cost_of(expected, _price(facts, "backbone"))
    cell = facts.cell
    return CellPlan(cell.name, cell.axes, len(cell.tasks), facts.finished, expected, cost, kind.simulated)


def _price(facts: CellFacts, part: str) -> Price | None:
    settings = facts.cell.settings
    section = settings.parser["model"] if part == "parser.model" else getattr(settings, part)
    return price_of(section, part)


def _agents(facts: Sequence[CellFacts], cells: Sequence[CellPlan]) -> list[ModelPlan]:
    plans = []
    for some in _grouped([digest(cell.cell.settings.backbone) for cell in facts]):
        first, use = facts[some[0]], total(cells[index].expected for index in some)
        price = None if first.kind.simulated else _price(first, "backbone")
        plans.append(ModelPlan("agent", first.kind.backbone, use, cost_of(use, price), first.kind.simulated))
    return plans


def _parsing(facts: Sequence[CellFacts], past: Sequence[PastEpisode], notes: _Notes) -> list[ModelPlan]:
    """LLM parsers: each goal is parsed once, and each skill that is a candidate somewhere."""
    plans = []
    asking = [cell for cell in facts if "parser" in cell.needs and "model" in cell.cell.settings.parser]
    for some in _grouped([digest(cell.cell.settings.parser) for cell in asking]):
        cells = [asking[index] for index in some]
        goals = {(task.benchmark, task.goal) for cell in cells for task in cell.to_compute.values()}
        online = Use()
        for benchmark, count in sorted(Counter(benchmark for benchmark, _ in goals).items()):
            each = expected_task_parse(benchmark, past)
            online += each.use * count
            notes.add(each.source, f"one parse of a task of {benchmark}")
        candidates = sum(int(cell.cell.settings.selector.get("k", 0)) * len(cell.to_compute) for cell in cells)
        skills = min(cells[0].library_size, candidates)
        offline = expected_skill_parse(cells[0].document_tokens) * skills
        notes.add(f"{skills} different candidates, none of them parsed earlier, at the first try", "skills parsed")
        notes.add("no reasoning; four characters of text count as a token", "parsing")
        price, name = _price(cells[0], "parser.model"), str(cells[0].cell.settings.parser["model"].get("model", "?"))
        for role, use in (("tasks parsed", online), ("skills parsed (at most)", offline)):
            plans.append(ModelPlan(role, name, use, cost_of(use, price)))
    return plans


def _asking(facts: Sequence[CellFacts], notes: _Notes) -> list[ModelPlan]:
    """Selectors that ask a language model: about each skill of a library once, or about the candidates of each task."""
    plans = []
    asking = [cell for cell in facts if "llm" in cell.needs]
    for some in _grouped([digest(cell.cell.settings.llm) for cell in asking]):
        cells = [asking[index] for index in some]
        name, price = str(cells[0].cell.settings.llm.get("model", "?")), _price(cells[0], "llm")
        works = {digest(cell.cell.settings.selector): cell.indexing for cell in cells if cell.open}
        indexing = total(
            Use(work.calls, work.prompt_tokens, 0, work.completion_tokens)
            for work in works.values()
            if work is not None
        )
        ranking = Use()
        for cell in cells:
            if cell.indexing is None:
                candidates = int(cell.cell.settings.selector.get("k", 0))
                each = Use(1, candidates * cell.document_tokens, 0, _TOKENS_OF_A_PLACE * candidates)
                ranking += each * len(cell.to_compute)
                notes.add(f"one call about the full text of {candidates} candidates of mean length", "skills ranked")
        for role, use in (("library indexed (at most)", indexing), ("skills ranked", ranking)):
            if use.calls:
                plans.append(ModelPlan(role, name, use, cost_of(use, price)))
    return plans


def _servers(facts: Sequence[CellFacts]) -> list[ProcessPlan]:
    """The vLLM servers on GPUs that open episodes need, one line for all replicas of a model."""
    servers = {cell.server.spec.name: cell.server for cell in facts if cell.open and cell.server}
    return [_server(server) for server in servers.values() if server.spec.device == "cuda"]


def _server(server: Server) -> ProcessPlan:
    spec, facts = server.spec, facts_of(server.spec.model)
    memory = memory_of(
        facts,
        dtype=spec.dtype,
        quantization=spec.quantization,
        gpus=spec.tensor_parallel_size,
        max_length=spec.max_model_len,
    )
    share = spec.gpu_memory_utilization or "its default part"
    note = f"{facts.source}; vLLM takes {share} of each GPU and keeps its cache in what is left of that"
    return ProcessPlan(f"vLLM {spec.served_name}", server.replicas, float(spec.tensor_parallel_size), memory, note)


def _hosts(facts: Sequence[CellFacts]) -> list[ProcessPlan]:
    """Embedders and rerankers of cells with selections to compute, where they have GPUs."""
    plans = {}
    for cell in (one for one in facts if one.to_compute):
        for part in hosted_parts(cell.cell):
            section = getattr(cell.cell.settings, part)
            gpus = float(getattr(cell.cell.settings.cluster, f"{part}_gpus"))
            if gpus:
                known = facts_of(str(section.get("model", "")))
                memory = memory_of(known, dtype=section.get("dtype"), gpus=max(1, int(gpus)))
                note = f"{known.source}; activations of a batch come on top"
                plans[digest([part, section])] = ProcessPlan(f"{part} {label(section)}", 1, gpus, memory, note)
    return list(plans.values())


def _grouped(keys: Sequence[str]) -> list[list[int]]:
    """Positions of equal keys, in order of first appearance."""
    groups: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    return list(groups.values())
