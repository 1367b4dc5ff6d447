"""The garbage collector of the test process: off while tests are collected, and blind to what collecting made.

The collected tests live as long as the process, and are many: a full collection that walks all of them takes half a second, be it
one that a test asks for, one at the end of a run of pytest within a test, or one of those that collecting tests sets off.
"""

import gc

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Libraries that count their objects at the end of the process call those that are never collected leaks."""
    gc.unfreeze()
