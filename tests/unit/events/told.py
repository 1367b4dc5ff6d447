"""Record the events published while a function runs, in short: the kind of each event, and its values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from lakelet.events import TableEvent, TableName, subscribe

Told = tuple[str, dict[str, Any]]


def events_of(run: Callable[[], object]) -> list[TableEvent]:
    """The events that a call publishes."""
    heard: list[TableEvent] = []
    with subscribe(heard.append):
        run()
    return heard


def told(run: Callable[[], object]) -> list[Told]:
    """The same in short: the table, whole snapshots and the main branch are left out."""
    return [short(event) for event in events_of(run)]


def short(event: TableEvent) -> Told:
    names = [one.name for one in fields(event) if one.name not in ("table", "snapshot")]
    values = {name: getattr(event, name) for name in names}
    values = {name: value.identifier if isinstance(value, TableName) else value for name, value in values.items()}
    if values["branch"] == "main":
        values.pop("branch")
    return type(event).__name__, values
