"""Consumer operations: positions of readers, which hold the snapshots that are still to be read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakelet.errors import NotFoundError
from lakelet.model.near_names import nearest
from lakelet.table import Table


@dataclass(frozen=True, slots=True)
class ResetConsumer:
    """The snapshot that a consumer reads next; None deletes the consumer."""

    consumer: str
    next_snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class ClearConsumers:
    """The consumers to delete, by regular expressions over whole ids; by default all."""

    including: re.Pattern[str] | None = None
    excluding: re.Pattern[str] | None = None


def reset_consumer(table: Table, request: ResetConsumer) -> None:
    """Moves a consumer to another snapshot, or deletes it."""
    if request.next_snapshot_id is not None:
        table.consumers.set(request.consumer, request.next_snapshot_id)
        return
    there = [one.id for one in table.consumers.list()]
    if request.consumer not in there:
        raise NotFoundError(f"{table.name} has no consumer {request.consumer!r}{nearest(request.consumer, there)}")
    table.consumers.delete(request.consumer)


def clear_consumers(table: Table, request: ClearConsumers) -> tuple[str, ...]:
    """Delete consumers; returns their ids."""
    including, excluding = request.including, request.excluding
    chosen = tuple(
        one.id
        for one in table.consumers.list()
        if (including is None or including.fullmatch(one.id)) and not (excluding and excluding.fullmatch(one.id))
    )
    for consumer in chosen:
        table.consumers.delete(consumer, if_exists=True)
    return chosen
