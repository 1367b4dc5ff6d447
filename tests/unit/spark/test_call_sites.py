"""PySpark records call sites for users' expressions, not while Lakelet builds its own."""

import threading

import pytest
from pyspark.errors import utils as recorder

from lakelet.spark.call_sites import UnrecordedCallSites


def is_recording() -> bool | None:
    found: bool | None = recorder._enable_debugging_cache
    return found


@pytest.fixture(params=[True, False, None])
def before(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool | None:
    """What PySpark has found out of its setting: on, off, or nothing yet."""
    monkeypatch.setattr(recorder, "_enable_debugging_cache", request.param)
    found: bool | None = request.param
    return found


def test_nothing_is_recorded_inside_and_all_is_as_before_after(before: bool | None) -> None:
    with UnrecordedCallSites():
        with UnrecordedCallSites():
            assert is_recording() is False
        assert is_recording() is False
    assert is_recording() is before


def test_an_error_ends_the_block(before: bool | None) -> None:
    @UnrecordedCallSites()
    def failing() -> None:
        assert is_recording() is False
        raise KeyError("x")

    for _ in range(2):
        with pytest.raises(KeyError):
            failing()
        assert is_recording() is before


def test_the_last_of_several_threads_ends_it(before: bool | None) -> None:
    entered, leave = threading.Event(), threading.Event()

    @UnrecordedCallSites()
    def other() -> None:
        entered.set()
        leave.wait(300)

    thread = threading.Thread(target=other)
    with UnrecordedCallSites():
        thread.start()
        assert entered.wait(300)
    assert is_recording() is False
    leave.set()
    thread.join()
    assert is_recording() is before


def test_a_pyspark_without_the_flag_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(recorder, "_enable_debugging_cache")
    with UnrecordedCallSites():
        assert not hasattr(recorder, "_enable_debugging_cache")
    assert not hasattr(recorder, "_enable_debugging_cache")
