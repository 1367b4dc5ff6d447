"""Consumers: readers that register which snapshot they need next, so that expiry keeps it and all after it.

    consumer/consumer-ID      {"nextSnapshot": 7}

The file is rewritten as a reader advances; one that nobody renews can be expired by its age. Ids are chosen by readers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.format.metadata.stored_json import load_json
from lakelet.storage.home import TableHome

_PREFIX = "consumer-"
_MEMBER = "nextSnapshot"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader by its id, the snapshot it needs next, and when it was last renewed."""

    id: str
    next_snapshot: int
    modified_ms: int


def all_consumers(home: TableHome) -> list[Consumer]:
    """The consumers of the branch, by id."""
    found = []
    for info in home.store.list_folder(_folder(home)).files:
        name = info.path.rsplit("/", 1)[-1]
        if name.startswith(_PREFIX):
            number = _read(home, info.path)
            if number is not None:
                found.append(Consumer(name.removeprefix(_PREFIX), number, info.modified_ms))
    return found


def min_next_snapshot(home: TableHome) -> int | None:
    """The oldest snapshot that a consumer still needs; None where there is no consumer."""
    return min((consumer.next_snapshot for consumer in all_consumers(home)), default=None)


def next_snapshot(home: TableHome, consumer: str) -> int:
    """The snapshot that a consumer needs next; NotFoundError for one that does not exist."""
    number = _read(home, consumer_path(home, consumer))
    if number is None:
        there = ", ".join(found.id for found in all_consumers(home)) or "none"
        raise NotFoundError(
            f"consumer {consumer!r} is not in {home.where(home.paths.branch_root)}; its consumers: {there}"
        )
    return number


def set_consumer(home: TableHome, consumer: str, number: object) -> None:
    """Store the snapshot that a consumer needs next; it may be one that is not yet made."""
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number < 2**63:
        raise InvalidError(
            f"next snapshot {number!r} of consumer {consumer!r}: expected the id of a snapshot, from 1 on"
        )
    text = json.dumps({_MEMBER: number}, indent=2)
    home.store.put(consumer_path(home, consumer), text.encode())


def delete_consumers(home: TableHome, consumers: list[str]) -> None:
    """Delete consumers and so release the snapshots they held; missing ones are ignored."""
    if consumers:
        home.store.delete([consumer_path(home, consumer) for consumer in consumers])


def expire_consumers(home: TableHome, older_than_ms: int) -> list[str]:
    """Delete the consumers that were last renewed before that time; returns their ids."""
    expired = [consumer.id for consumer in all_consumers(home) if consumer.modified_ms < older_than_ms]
    delete_consumers(home, expired)
    return expired


def consumer_path(home: TableHome, consumer: object) -> str:
    """The file of a consumer; InvalidError for an id that no file can have."""
    if not isinstance(consumer, str) or not consumer.strip() or "/" in consumer:
        raise InvalidError(f"consumer id {consumer!r}: expected text that is not blank and has no '/'")
    return f"{_folder(home)}/{_PREFIX}{consumer}"


def _folder(home: TableHome) -> str:
    return f"{home.paths.branch_root}/consumer"


def _read(home: TableHome, path: str) -> int | None:
    try:
        data = home.store.get(path)
    except NotFoundError:
        return None
    try:
        return int(load_json(data)[_MEMBER])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(f"{home.where(path)}: not a consumer file ({type(error).__name__}: {error})") from error
