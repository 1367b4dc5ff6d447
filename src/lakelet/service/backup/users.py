"""The last commit of each named user in a mirrored snapshot, so that logs replayed into a restored table double nothing.

    backup/users/<delta manifest list of the mirror's snapshot>.json    {"writer-…": 42, …}

It is written before the snapshot of the mirror and called after it: what a pass that died has written belongs to no snapshot.
"""

from __future__ import annotations

import json

from lakelet.commit.commit_users import named_users
from lakelet.commit.metadata.snapshots import snapshots_backwards
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.model.snapshot import Snapshot
from lakelet.service.backup.layout import SOURCE_SNAPSHOT, kept_folder
from lakelet.storage.home import TableHome


def users_at(source: TableHome, snapshot: Snapshot, target: TableHome, base: Snapshot | None) -> dict[str, int]:
    """The last identifiers of users in a snapshot of the source; `base` is the mirror's newest one, which knows earlier ones."""
    found = read_users(target, base)
    known = 0 if base is None else int((base.properties or {}).get(SOURCE_SNAPSHOT, 0))
    since, is_whole = [], known > 0
    for one in snapshots_backwards(source, snapshot.id):
        if one.id <= known:
            break
        since.append(one)
    else:
        # Snapshots in between are expired, and their users recorded.
        is_whole = False
    recorded = {} if is_whole else _recorded(source)
    for users in (recorded, named_users(since)):
        for user, number in users.items():
            found[user] = max(number, found.get(user, number))
    return found


def write_users(target: TableHome, name: str, users: dict[str, int]) -> None:
    """Keep the users of a snapshot of the mirror by the name of its delta manifest list."""
    target.store.put(_path(target, name), json.dumps(users, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def read_users(target: TableHome, snapshot: Snapshot | None) -> dict[str, int]:
    """The users of a snapshot of the mirror; CorruptionError where they are missing or damaged."""
    if snapshot is None:
        return {}
    path = _path(target, snapshot.delta_manifest_list)
    try:
        found = json.loads(target.store.get(path).decode("utf-8", "surrogatepass"))
        return {str(user): int(number) for user, number in found.items()}
    except (ValueError, TypeError, AttributeError, NotFoundError) as error:
        raise CorruptionError(f"{target.where(path)}: expected the users of a backup's commits: {error}") from error


def drop_other_users(target: TableHome, snapshot: Snapshot) -> None:
    """Remove the users of all other snapshots."""
    kept = _path(target, snapshot.delta_manifest_list)
    listed = target.store.list_folder(f"{kept_folder(target)}/users").files
    others = [info.path for info in listed if info.path != kept]
    if others:
        target.store.delete(others)


def _recorded(source: TableHome) -> dict[str, int]:
    """The users that the source's expiry has recorded."""
    found: dict[str, int] = {}
    for info in source.store.list(source.paths.commit_users_folder):
        try:
            told = json.loads(source.store.get(info.path))
            user, number = str(told["user"]), int(told["identifier"])
        except NotFoundError:
            continue
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptionError(
                f"{source.where(info.path)}: expected a user and a commit identifier: {error}"
            ) from error
        found[user] = max(number, found.get(user, number))
    return found


def _path(target: TableHome, name: str) -> str:
    return f"{kept_folder(target)}/users/{name}.json"
