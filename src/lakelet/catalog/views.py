"""Stored views: a small file each, outside the databases' folders.

    views/<database>/<view>.json     {"version": 1, "query": …, "database": …, "comment": …, "timeMillis": …}

A file is created if absent, or replaced as a whole. Its content is text that anybody with access to the store may have written:
whoever reads it checks it again (`sql.views`). This module knows nothing of SQL.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.storage.paths import VIEW_FOLDER, view_of_path, view_path
from lakelet.storage.store import ObjectStore

_VERSION = 1
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class View:
    """A query with the databases in which its names are resolved: `home`, the view's own, None for views made before it was
    stored, and after it the one that was in use when the view was made."""

    query: str
    database: str
    comment: str | None = None
    time_ms: int = 0
    home: str | None = None


def view_names(store: ObjectStore, database: str) -> list[str]:
    """The names of a database's views."""
    files = store.list_folder(f"{VIEW_FOLDER}/{database}").files
    return sorted(name for info in files if (name := view_of_path(info.path)) is not None)


def read_view(store: ObjectStore, database: str, name: str) -> View:
    """Read a view; NotFoundError where there is none, CorruptionError where the file does not decode."""
    path = view_path(database, name)
    where = f"{store.location.rstrip('/')}/{path}"
    try:
        data = store.get(path)
    except NotFoundError:
        raise NotFoundError(f"view '{database}.{name}' is not in {store.location}") from None
    if len(data) > _MOST_BYTES:
        raise CorruptionError(f"{where}: expected the text of a view, found {len(data)} bytes")
    try:
        found = json.loads(data)
        view = View(
            found["query"], found["database"], found.get("comment"), found.get("timeMillis", 0), found.get("home")
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptionError(f"{where} is no view: {error}") from error
    texts = (view.query, view.database, view.comment or "", view.home or "")
    if found.get("version") != _VERSION or not all(isinstance(text, str) for text in texts):
        raise CorruptionError(f"{where} is no view of version {_VERSION}")
    return view


def write_view(store: ObjectStore, database: str, name: str, view: View, *, replace: bool) -> bool:
    """Store a view; False where there is one already, unless it may be replaced."""
    content = {
        "version": _VERSION,
        "query": view.query,
        "database": view.database,
        "comment": view.comment,
        "timeMillis": view.time_ms,
        **({} if view.home is None else {"home": view.home}),
    }
    data, path = json.dumps(content, ensure_ascii=False, indent=2).encode(), view_path(database, name)
    if replace:
        store.put(path, data)
        return True
    return store.put_if_absent(path, data)


def remove_view(store: ObjectStore, database: str, name: str) -> None:
    """Delete a view."""
    store.delete([view_path(database, name)])
