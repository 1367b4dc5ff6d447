"""Listeners, and the events they receive."""

import logging
import threading

import pytest

from lakelet.events import StateUnknown, TableDropped, TableEvent, TableFormat, TableName, publish, subscribe, uncertain

NAME = TableName(TableFormat.NATIVE, "d.t", "mem://w/d.db/t", warehouse="mem://w")
DROPPED = TableDropped(NAME, "main")


def test_listeners_are_told_in_their_order_until_they_leave() -> None:
    heard: list[tuple[str, TableEvent]] = []
    with subscribe(lambda event: heard.append(("first", event))) as first:
        with subscribe(lambda event: heard.append(("second", event))):
            publish(DROPPED)
        publish(DROPPED)
        first.close()
        first.close()
        publish(DROPPED)
    assert heard == [("first", DROPPED), ("second", DROPPED), ("first", DROPPED)]


def test_one_listener_may_subscribe_twice_and_leave_once() -> None:
    heard: list[TableEvent] = []
    with subscribe(heard.append):
        subscribe(heard.append).close()
        publish(DROPPED)
    assert heard == [DROPPED]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_a_failing_listener_is_logged_and_harms_nothing(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[TableEvent] = []

    def fails(event: TableEvent) -> None:
        raise error

    with subscribe(fails), subscribe(heard.append), caplog.at_level(logging.WARNING, "lakelet.events"):
        publish(DROPPED)
    assert heard == [DROPPED]
    assert "failed on TableDropped of d.t" in caplog.text


def test_an_interrupt_is_raised_once_all_are_told() -> None:
    heard: list[TableEvent] = []

    def interrupted(event: TableEvent) -> None:
        raise KeyboardInterrupt

    with subscribe(interrupted), subscribe(heard.append), pytest.raises(KeyboardInterrupt):
        publish(DROPPED)
    assert heard == [DROPPED]


def test_a_listener_is_not_told_of_what_it_changes_itself() -> None:
    heard: list[TableEvent] = []
    others: list[TableEvent] = []

    def changes(event: TableEvent) -> None:
        heard.append(event)
        publish(StateUnknown(NAME, "main", "again"))

    with subscribe(changes), subscribe(others.append):
        publish(DROPPED)
    assert heard == [DROPPED]
    assert [type(event) for event in others] == [StateUnknown, TableDropped]


def test_what_is_stopped_in_the_middle_is_told_as_unknown() -> None:
    heard: list[TableEvent] = []
    with subscribe(heard.append):
        with uncertain(NAME, "main", "drop"):
            pass
        with pytest.raises(KeyboardInterrupt), uncertain(NAME, "b", "drop"):
            raise KeyboardInterrupt
    assert heard == [StateUnknown(NAME, "b", "drop")]


def test_threads_subscribe_and_publish_at_once() -> None:
    heard: list[TableEvent] = []

    def run() -> None:
        for _ in range(200):
            with subscribe(lambda event: None):
                publish(DROPPED)

    with subscribe(heard.append):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    publish(DROPPED)
    assert len(heard) == 800
