"""The syntax trees of the project, kept while the tests of one module run."""

import gc
from collections.abc import Iterator

import pytest

from tests.tidy.sources import tree_of


@pytest.fixture(scope="module", autouse=True)
def kept_trees() -> Iterator[None]:
    """Looking for garbage among millions of nodes takes four times as long as parsing them."""
    gc.disable()
    yield
    tree_of.cache_clear()
    gc.enable()
