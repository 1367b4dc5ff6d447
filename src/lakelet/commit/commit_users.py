"""The last commit identifiers of users whose snapshots are expired, so that a late retry is still recognised.

A named commit is applied once however often it is sent: the committer looks for it in the snapshots of its user. Expiry deletes
these and therefore first records, for each named user, the greatest identifier among them:

    commit-users/<first 32 hex digits of the SHA-256 of the user>/identifier-<N>
        {"user": "job-7", "identifier": 42, "properties": {…}}

The name carries all that is needed to recognise a commit; the content is for people, and the properties of its snapshot tell a
stream whose batch it was. A file is created and older ones are removed after it, so that
of two concurrent expiries none can undo the other's greater number. Java ignores this folder, also when it looks for orphans.
Generated users commit once and are not recorded.

A branch has records of its own. It begins with the snapshot it was made from, and with records of the users before that one; a
fast-forward brings the branch's records to main, whose line is the branch's from then on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from lakelet.errors import NotFoundError
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


def last_properties(home: TableHome, user: str) -> Mapping[str, str]:
    """The properties of that user's last expired commit; none where they are not recorded."""
    number = last_identifier(home, user)
    if number is None:
        return {}
    try:
        found = json.loads(home.store.get(f"{_folder(home, user)}/identifier-{number}")).get("properties", {})
        return {str(name): str(text) for name, text in found.items()}
    except (ValueError, AttributeError, NotFoundError):
        return {}


def record_users(home: TableHome, last: Mapping[str, int], gone: Iterable[Snapshot] = ()) -> None:
    """Record the last identifiers of users, where no greater one is known, with the properties of their snapshots in `gone`."""
    told = {(one.commit_user, one.commit_identifier): one.properties for one in gone if one.properties}
    for user, identifier in last.items():
        recorded = _recorded(home, user)
        if max(recorded, default=identifier - 1) >= identifier:
            continue
        content: dict[str, object] = {"user": user, "identifier": identifier}
        if (user, identifier) in told:
            content["properties"] = told[user, identifier]
        data = json.dumps(content, ensure_ascii=False).encode()
        home.store.put(f"{_folder(home, user)}/identifier-{identifier}", data)
        if recorded:
            home.store.delete([f"{_folder(home, user)}/identifier-{number}" for number in recorded])


def copy_users(source: TableHome, target: TableHome) -> None:
    """Record for a branch what another one has recorded, where no greater number is known."""
    for folder in source.store.list_folder(source.paths.commit_users_folder).folders:
        ours = f"{target.paths.commit_users_folder}/{folder.rsplit('/', 1)[-1]}"
        number, known = max(_numbers(source, folder), default=None), _numbers(target, ours)
        if number is None or max(known, default=number - 1) >= number:
            continue
        target.store.put(f"{ours}/identifier-{number}", source.store.get(f"{folder}/identifier-{number}"))
        if known:
            target.store.delete([f"{ours}/identifier-{old}" for old in known])


def _recorded(home: TableHome, user: str) -> list[int]:
    return _numbers(home, _folder(home, user))


def _numbers(home: TableHome, folder: str) -> list[int]:
    names = (info.path.rsplit("/", 1)[-1] for info in home.store.list_folder(folder).files)
    return [int(match[1]) for match in map(_NAME.match, names) if match]


def _folder(home: TableHome, user: str) -> str:
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{home.paths.commit_users_folder}/{digest[:32]}"
