"""Consumers: readers that register which snapshot they need next, so that expiry keeps it and all after it.

    consumer/consumer-ID      {"nextSnapshot": 7, "baseSnapshot": 6, "offset": {…}}

The file is rewritten as a reader advances; one that nobody renews can be expired by its age. Ids are chosen by readers. A stream
that finds changes by comparing versions also needs the one before the next, which `baseSnapshot` holds back, and stores its
position exactly in `offset`. Other engines ignore both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.format.metadata.stored_json import load_json
from lakelet.storage.home import TableHome

_PREFIX = "consumer-"
_MEMBER = "nextSnapshot"
_BASE = "baseSnapshot"
_OFFSET = "offset"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader by its id, the snapshot it needs next, and when it was last renewed; `base` is the snapshot before, where it needs
    that, too."""

    id: str
    next_snapshot: int
    modified_ms: int
    base: int | None = None

    @property
    def held_from(self) -> int:
        """The oldest snapshot that it holds back from expiry."""
        return self.next_snapshot if self.base is None else min(self.base, self.next_snapshot)


@dataclass(frozen=True, slots=True)
class Progress:
    """The snapshot that a consumer needs next, the one before it where that is held back too, and its own position."""

    next: int
    base: int | None = None
    offset: Mapping[str, object] | None = None


def all_consumers(home: TableHome) -> list[Consumer]:
    """The consumers of the branch, by id."""
    found = []
    for info in home.store.list_folder(_folder(home)).files:
        name = info.path.rsplit("/", 1)[-1]
        if name.startswith(_PREFIX):
            members = _read(home, info.path)
            if members is not None:
                found.append(Consumer(name.removeprefix(_PREFIX), members.next, info.modified_ms, members.base))
    return found


def min_next_snapshot(home: TableHome) -> int | None:
    """The oldest snapshot that a consumer still needs; None where there is no consumer."""
    return min((consumer.held_from for consumer in all_consumers(home)), default=None)


def next_snapshot(home: TableHome, consumer: str) -> int:
    """The snapshot that a consumer needs next; NotFoundError for one that does not exist."""
    members = _read(home, consumer_path(home, consumer))
    if members is None:
        there = ", ".join(found.id for found in all_consumers(home)) or "none"
        raise NotFoundError(
            f"consumer {consumer!r} is not in {home.where(home.paths.branch_root)}; its consumers: {there}"
        )
    return members.next


def stored_progress(home: TableHome, consumer: str) -> Progress | None:
    """How far a consumer has read; None for one that does not exist."""
    return _read(home, consumer_path(home, consumer))


def set_consumer(
    home: TableHome,
    consumer: str,
    number: object,
    *,
    base: int | None = None,
    offset: Mapping[str, object] | None = None,
) -> None:
    """Store the snapshot that a consumer needs next; it may be one that is not yet made. `base` is held back beside it, and
    `offset` is kept for the consumer itself."""
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number < 2**63:
        raise InvalidError(
            f"next snapshot {number!r} of consumer {consumer!r}: expected the id of a snapshot, from 1 on"
        )
    members: dict[str, object] = {_MEMBER: number}
    if base is not None:
        members[_BASE] = base
    if offset is not None:
        members[_OFFSET] = dict(offset)
    text = json.dumps(members, indent=2)
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


def _read(home: TableHome, path: str) -> Progress | None:
    try:
        data = home.store.get(path)
    except NotFoundError:
        return None
    try:
        found = load_json(data)
        base, offset = found.get(_BASE), found.get(_OFFSET)
        return Progress(int(found[_MEMBER]), None if base is None else int(base), offset)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{home.where(path)}: not a consumer file ({type(error).__name__}: {error})") from error
