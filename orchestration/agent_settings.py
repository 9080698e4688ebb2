"""The agent loop's settings; ``conf/agent/react.yaml`` explains each key."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class AgentSettings(BaseModel):
    """Limits of one episode. Sampling (temperature, length of a reply) belongs to the backbone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "react"
    max_turns: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)
    skill_calls_cost_turns: bool = False
    max_skill_calls: int = Field(100, ge=0, le=10_000)
    review_turns: int = Field(2, ge=0, le=100)
    env_deadline_s: float = Field(600.0, gt=0, le=3600)
