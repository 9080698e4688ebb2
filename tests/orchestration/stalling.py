"""Backbones that hang or fail, for tests of what watches over episodes."""

from __future__ import annotations

import time
from typing import Any

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.backbones.interface import EpisodeContext, Message, Reply
from skillarena.orchestration.backbones.simulated import SimulatedBackbone


class HangingBackbone(SimulatedBackbone):
    """Never comes back from its third call in the tasks of one type."""

    def __init__(self, *, hangs_in: str, **options: Any) -> None:
        super().__init__(**options)
        self._hangs_in = hangs_in

    def chat(self, messages: tuple[Message, ...], context: EpisodeContext) -> Reply:
        if context.task.task_type == self._hangs_in and len(messages) > 5:
            time.sleep(3600)
        return super().chat(messages, context)


class FailingBackbone(SimulatedBackbone):
    """Gives no reply to anything."""

    def chat(self, messages: tuple[Message, ...], context: EpisodeContext) -> Reply:
        raise BackboneError("the line is dead", "mend it")
