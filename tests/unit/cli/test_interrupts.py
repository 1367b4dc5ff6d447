import signal
import threading
from collections.abc import Iterator

import pytest

from lakelet.cli.interrupts import stopped_by_interrupt
from lakelet.errors import UnavailableError


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Interrupts arrive, also where the tests run in the background of a shell, which has its commands ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_query_is_stopped_and_the_interrupt_arrives() -> None:
    stopped = threading.Event()
    with pytest.raises(KeyboardInterrupt), stopped_by_interrupt(stopped.set):
        signal.raise_signal(signal.SIGINT)
    # The listener has ended with the block, and has heard the signal before.
    assert stopped.is_set()
    assert all(thread.name != "lakelet-interrupts" for thread in threading.enumerate())


def test_an_error_that_comes_of_the_interrupt_is_the_interrupt() -> None:
    # DuckDB may take the signal itself and answer with an error of its own.
    def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise UnavailableError("the query was interrupted") from None

    with pytest.raises(KeyboardInterrupt) as raised, stopped_by_interrupt(lambda: None):
        interrupted()
    assert isinstance(raised.value.__cause__, UnavailableError)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(UnavailableError), stopped_by_interrupt(lambda: None):
        raise UnavailableError("gone")


def test_nothing_is_stopped_without_a_signal_and_signals_go_where_they_went_before() -> None:
    stopped = threading.Event()
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    with stopped_by_interrupt(stopped.set):
        pass
    assert not stopped.is_set()
    after = signal.set_wakeup_fd(before)
    assert after == before


def test_other_threads_hear_no_signals() -> None:
    done: list[bool] = []

    def work() -> None:
        with stopped_by_interrupt(lambda: None):
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
