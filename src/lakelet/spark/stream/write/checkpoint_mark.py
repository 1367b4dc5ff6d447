"""The mark that a sink leaves in a checkpoint folder: a random id, and the tables that the checkpoint's batches went to.

    <checkpoint>/lakelet/sink.json      {"id": "5f0c…", "tables": {"shop.orders": {"table": "<uuid>", "branch": "main"}}}

It is created if absent before the first batch. The id is part of a commit user that the caller named: with a deleted checkpoint
it is gone as well, so that batches counted from 0 again are not taken for the earlier ones. The tables tell a checkpoint of
another table, or of one that was dropped and created again, whose rows of earlier batches would be missing.

A folder that Lakelet's storage cannot reach (hdfs:, dbfs:, …) has no mark. One that it can reach but that fails is an error: a
query that had the id in one run and lacked it in the next would apply a repeated batch twice.

Spark logs the offsets of a batch there (`offsets/<batch>`) before the batch runs and never again: a digest of that file tells a
repeated batch from another one of its number.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.ids import Ids
from lakelet.spark.opened_table import OpenedTable
from lakelet.storage.open import open_store
from lakelet.storage.store import ObjectStore

_PATH = "lakelet/sink.json"
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_COMMITS = "commits"
_OFFSETS = "offsets"
# Spark puts it there when a query starts.
_SPARKS_FILE = "metadata"
_DIGITS = 32
_ANEW = (
    "use a new checkpoint folder, which reads the source from its beginning, or go on with resume=True, which leaves out "
    "the rows of the checkpoint's earlier batches"
)


@dataclass(frozen=True, slots=True)
class CheckpointMark:
    """The id of a checkpoint folder, and the identities of the tables that its batches go to, by name."""

    id: str
    tables: Mapping[str, Mapping[str, str]]

    def check(self, name: str, identity: Mapping[str, str], folder: str) -> None:
        """InvalidError where the batches of this checkpoint went to another table."""
        found = self.tables.get(name)
        if found is None:
            there = ", ".join(self.tables)
            raise InvalidError(f"checkpoint {folder} is of a stream into {there}, not into {name}: {_ANEW}")
        if dict(found) != dict(identity):
            raise InvalidError(
                f"checkpoint {folder} is of another table {name}: that one was dropped and created again, or is in "
                f"another place or on another branch: {_ANEW}"
            )


def identity_of(opened: OpenedTable) -> dict[str, str]:
    """What distinguishes a table from another one of its name."""
    home = opened.home
    return {"table": opened.uuid or home.where(home.paths.root), "branch": home.paths.branch}


def checkpoint_store(folder: str, default_scheme: str, options: Mapping[str, str]) -> ObjectStore | None:
    """The store of a checkpoint folder, None where Lakelet's storage cannot reach it."""
    if not _SCHEME.match(folder):
        return open_store(folder, {}) if default_scheme == "file" else None
    parts = urlsplit(folder)
    if parts.scheme in ("s3", "s3a"):
        return open_store(folder, {key: text for key, text in options.items() if key.startswith("s3.")})
    # Hadoop takes what follows the scheme as it is: "%20" is no blank there.
    local = re.match(r"^file:(?://(?:localhost)?)?(/.*)$", folder)
    return open_store(local[1], {}) if local else None


def scheme_of_running(folder: str) -> str:
    """The file system of a running query's folder that was given without a scheme: local where Spark's own file is there; else
    "", for it is of a file system that only the JVM knows."""
    is_local = not _SCHEME.match(folder) and os.path.isfile(os.path.join(folder, _SPARKS_FILE))
    return "file" if is_local else ""


def logged_offsets(store: ObjectStore | None, batch_id: int) -> str | None:
    """A digest of the offsets that Spark logged for a batch, None where they cannot be reached."""
    try:
        data = None if store is None else store.get(f"{_OFFSETS}/{batch_id}")
    except NotFoundError:
        return None
    return None if data is None else hashlib.sha256(data).hexdigest()[:_DIGITS]


def marked(
    store: ObjectStore,
    tables: Mapping[str, Mapping[str, str]],
    ids: Ids,
    *,
    resume: bool,
    folder: str,
    are_all: bool = False,
) -> CheckpointMark:
    """The mark of a checkpoint folder for a stream into tables of these identities, made if absent; InvalidError for another
    stream's. Where these `are_all` its tables, others are taken out of the mark: they miss batches from now on."""
    found = _read(store, folder)
    if found is None:
        if not resume and store.list_folder(_COMMITS).files:
            raise InvalidError(
                f"checkpoint {folder} has batches that another sink wrote, which need not be in {', '.join(tables)}: {_ANEW}"
            )
        mark = CheckpointMark(ids.uuid().replace("-", ""), tables)
        if store.put_if_absent(_PATH, _encoded(mark)):
            return mark
        found = _read(store, folder)
        if found is None:
            raise NotFoundError(f"{folder}/{_PATH} was removed while the stream started")
    if not resume:
        for name, identity in tables.items():
            found.check(name, identity, folder)
    now = CheckpointMark(found.id, tables if are_all else {**found.tables, **tables})
    if now != found:
        store.put(_PATH, _encoded(now))
    return now


def _encoded(mark: CheckpointMark) -> bytes:
    return json.dumps({"id": mark.id, "tables": mark.tables}, ensure_ascii=False, indent=1).encode()


def _read(store: ObjectStore, folder: str) -> CheckpointMark | None:
    try:
        text = store.get(_PATH)
    except NotFoundError:
        return None
    try:
        found = json.loads(text)
        return CheckpointMark(str(found["id"]), {str(name): dict(known) for name, known in found["tables"].items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptionError(f"{folder}/{_PATH}: expected the id and the tables of a sink ({error})") from error
