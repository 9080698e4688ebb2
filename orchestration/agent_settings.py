"""The agent loop's settings; ``conf/agent/react.yaml`` explains each key."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class AgentSettings(BaseModel):
    """Limits of one episode. Sampling (temperature, length of a reply) belongs to the backbone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "react"
    max_turns: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)
    env_deadline_s: float = Field(600.0, gt=0, le=3600)
