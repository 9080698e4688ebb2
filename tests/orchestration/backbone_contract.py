"""The promises of ``Backbone``, as tests that any implementation can subclass."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from skillarena.envs.interface import Task
from skillarena.orchestration.backbones.interface import Backbone, EpisodeContext, Message, Reply

TASK = Task("alfworld", "valid_seen", "0" * 64, "a task", "pick_and_place_simple", "put a mug on a desk.")
MESSAGES: tuple[Message, ...] = (
    {"role": "system", "content": "Answer with a thought and an action."},
    {"role": "user", "content": "Task: put a mug on a desk.\n\nObservation: You see a desk 1 and a mug 1."},
)


def context(episode_id: str = "episode", seed: int = 0) -> EpisodeContext:
    return EpisodeContext(episode_id, seed, TASK, (), lambda: ["take mug 1 from desk 1"])


class BackboneContract:
    """Subclass it and give ``backbone`` as a fixture: one that is reachable and answers every call."""

    @pytest.fixture
    def backbone(self) -> Iterator[Backbone]:
        raise NotImplementedError("the subclass supplies the backbone")

    def test_backbone_has_the_interface(self, backbone: Backbone) -> None:
        assert isinstance(backbone, Backbone)
        assert backbone.name
        assert backbone.simulated is ("simulated" in backbone.name)

    def test_reply_holds_text_usage_and_latency(self, backbone: Backbone) -> None:
        reply = backbone.chat(MESSAGES, context())
        assert isinstance(reply, Reply)
        assert reply.text.strip() and reply.finish_reason
        assert reply.latency_s >= 0
        assert reply.usage.prompt_tokens > 0 and reply.usage.completion_tokens > 0
        assert 0 <= reply.usage.cached_tokens <= reply.usage.prompt_tokens
        assert reply.usage.wasted_tokens == 0

    def test_messages_are_left_as_they_were(self, backbone: Backbone) -> None:
        messages = [Message(role=message["role"], content=message["content"]) for message in MESSAGES]
        backbone.chat(messages, context())
        assert tuple(messages) == MESSAGES

    def test_check_passes(self, backbone: Backbone) -> None:
        backbone.check()

    def test_many_threads_share_one_backbone(self, backbone: Backbone) -> None:
        with ThreadPoolExecutor(8) as threads:
            replies = list(threads.map(lambda i: backbone.chat(MESSAGES, context(f"episode {i}")), range(32)))
        assert len(replies) == 32
        assert all(reply.text for reply in replies)

    def test_it_works_after_pickling(self, backbone: Backbone) -> None:
        travelled = pickle.loads(pickle.dumps(backbone))
        try:
            assert travelled.name == backbone.name
            assert travelled.chat(MESSAGES, context()).text == backbone.chat(MESSAGES, context()).text
        finally:
            travelled.close()

    def test_closing_twice_is_safe(self, backbone: Backbone) -> None:
        backbone.close()
        backbone.close()
