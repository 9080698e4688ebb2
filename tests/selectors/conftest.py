"""Lets the shared contracts report their failed assertions in full, and keeps tiny models off other cores."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("reranker_contract", "selector_contract")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For models so small that threads of a busy machine wait for each other most of the time."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
