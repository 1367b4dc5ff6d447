"""The last commit identifiers of users whose snapshots are expired, so that a late retry is still recognised.

A named commit is applied once however often it is sent: the committer looks for it in the snapshots of its user. Expiry deletes
these and therefore first records, for each named user, the greatest identifier among them:

    commit-users/<first 32 hex digits of the SHA-256 of the user>/identifier-<N>      {"user": "job-7", "identifier": 42}

The name carries all that is needed; the content is for people. A file is created and older ones are removed after it, so that
of two concurrent expiries none can undo the other's greater number. Java ignores this folder, also when it looks for orphans.
Generated users commit once and are not recorded.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from lakelet.model.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from lakelet.storage.home import TableHome

_NAME = re.compile(r"^identifier-(-?\d+)$")


def last_identifier(home: TableHome, user: str) -> int | None:
    """The greatest identifier of that user's expired commits, None where none is recorded."""
    return max(_recorded(home, user), default=None)


def named_users(gone: Iterable[Snapshot]) -> dict[str, int]:
    """The greatest identifier of each named user among these snapshots."""
    last: dict[str, int] = {}
    for snapshot in gone:
        if snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER:
            known = last.get(snapshot.commit_user, snapshot.commit_identifier)
            last[snapshot.commit_user] = max(known, snapshot.commit_identifier)
    return last


def record_users(home: TableHome, last: Mapping[str, int]) -> None:
    """Record the last identifiers of users, where no greater one is known."""
    for user, identifier in last.items():
        recorded = _recorded(home, user)
        if max(recorded, default=identifier - 1) >= identifier:
            continue
        data = json.dumps({"user": user, "identifier": identifier}, ensure_ascii=False).encode()
        home.store.put(f"{_folder(home, user)}/identifier-{identifier}", data)
        if recorded:
            home.store.delete([f"{_folder(home, user)}/identifier-{number}" for number in recorded])


def _recorded(home: TableHome, user: str) -> list[int]:
    names = (info.path.rsplit("/", 1)[-1] for info in home.store.list_folder(_folder(home, user)).files)
    return [int(match[1]) for match in map(_NAME.match, names) if match]


def _folder(home: TableHome, user: str) -> str:
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{home.paths.commit_users_folder}/{digest[:32]}"
