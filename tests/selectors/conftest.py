"""Lets the shared contracts report their failed assertions in full."""

import pytest

pytest.register_assert_rewrite("reranker_contract", "selector_contract")
