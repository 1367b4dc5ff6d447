"""`JavaPaimon`: the real Java Paimon as a Python object.

Every call names a warehouse folder and a table `db.name`; rows go in and out as dicts of JSON values, whose spelling
per type is at the head of Judge.java (`values.rows_of` gives the same spelling for an Arrow table).

    java.create(warehouse, "shop.orders", [("id", "BIGINT NOT NULL"), ("dt", "STRING")], partitioned_by=["dt"])
    java.write(warehouse, "shop.orders", [{"id": 1, "dt": "2024-01-01"}])
    java.read(warehouse, "shop.orders", filters=["id = 1"])
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.line_process import LineProcess

JUDGE = Path(__file__).parent / "judge.sh"

Row = dict[str, Any]
ColumnType = str | Mapping[str, Any]
Warehouse = str | Path


class JavaPaimon:
    def __init__(self) -> None:
        self._process = LineProcess("Java Paimon", [str(JUDGE), "serve"])

    def call(self, command: str, warehouse: Warehouse, table: str, *args: object, stdin: str = "") -> list[Any]:
        """Runs one command of Judge.java, and returns what it printed."""
        database, name = table.split(".", 1)
        arguments = [command, str(warehouse), database, name, *map(str, args)]
        return self._process.ask({"args": arguments, "stdin": stdin})

    def close(self) -> None:
        self._process.close()

    # ---------------------------------------------------------------- tables

    def create(
        self,
        warehouse: Warehouse,
        table: str,
        columns: Iterable[tuple[str, ColumnType]],
        *,
        primary_key: Sequence[str] = (),
        partitioned_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> None:
        spec = {
            "columns": [{"name": name, "type": type_} for name, type_ in columns],
            "primaryKeys": list(primary_key),
            "partitionKeys": list(partitioned_by),
            "options": dict(options or {}),
            "comment": comment,
        }
        self.call("create", warehouse, table, "-", stdin=json.dumps(spec))

    def alter(self, warehouse: Warehouse, table: str, *changes: Mapping[str, Any]) -> None:
        """Applies the changes as one new schema; their form is at the head of Judge.java."""
        self.call("alter", warehouse, table, "-", stdin=json.dumps(changes))

    def schema(self, warehouse: Warehouse, table: str, *, branch: str | None = None) -> dict[str, Any]:
        (schema,) = self.call("schema", warehouse, table, *_option("branch", branch))
        return dict(schema)

    def rename(self, warehouse: Warehouse, table: str, new_name: str) -> None:
        self.call("rename", warehouse, table, new_name)

    def drop(self, warehouse: Warehouse, table: str) -> None:
        self.call("drop", warehouse, table)

    # ---------------------------------------------------------------- rows

    def write(
        self,
        warehouse: Warehouse,
        table: str,
        rows: Iterable[Row],
        *,
        overwrite: bool | Mapping[str, str] = False,
        full_compact: bool = False,
        branch: str | None = None,
        options: Mapping[str, str] | None = None,
        stream: tuple[str, int] | None = None,
    ) -> None:
        """One commit. `overwrite=True` is Paimon's dynamic overwrite, a mapping names one static partition;
        `stream` is the commit user and identifier of a streaming writer."""
        args = [*_option("branch", branch), *_options(options)]
        if isinstance(overwrite, Mapping):
            args += ["--overwrite", ",".join(f"{key}={value}" for key, value in overwrite.items())]
        elif overwrite:
            args.append("--overwrite")
        if full_compact:
            args.append("--full-compact")
        if stream is not None:
            args += ["--stream", stream[0], str(stream[1])]
        self.call("write", warehouse, table, *args, stdin="\n".join(map(json.dumps, rows)))

    def read(
        self,
        warehouse: Warehouse,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        filters: Iterable[str] = (),
        snapshot: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        limit: int | None = None,
        options: Mapping[str, str] | None = None,
        kinds: bool = False,
    ) -> list[Row]:
        """The rows, in no particular order. A filter is `column operator value`, with the operators of Judge.java;
        with `kinds` each row has its kind under `_kind`."""
        args = [
            *_option("columns", ",".join(columns) if columns is not None else None),
            *(part for text in filters for part in ("--filter", text)),
            *_option("snapshot", snapshot),
            *_option("tag", tag),
            *_option("branch", branch),
            *_option("limit", limit),
            *_options(options),
        ]
        rows: list[Row] = self.call("read", warehouse, table, *args)
        return rows if kinds else [_without_kind(row) for row in rows]

    def changes(self, warehouse: Warehouse, table: str, first: int, last: int) -> list[Row]:
        """The changelog of the snapshots from `first` up to and with `last`, kinds under `_kind`."""
        return self.call("read", warehouse, table, "--stream", first, last)

    # ---------------------------------------------------------------- snapshots, tags, branches

    def snapshots(self, warehouse: Warehouse, table: str) -> list[dict[str, Any]]:
        return self.call("snapshots", warehouse, table)

    def compact(self, warehouse: Warehouse, table: str, *, postponed_into: int | None = None) -> None:
        """A full compaction; rows of a postpone table that wait for a bucket get one of `postponed_into`."""
        self.call("compact", warehouse, table, *_option("buckets", postponed_into))

    def mark(self, warehouse: Warehouse, table: str, positions: Mapping[str, Sequence[int]]) -> None:
        """Deletes rows of an append table, by their positions in its data files, in deletion vectors."""
        self.call("mark", warehouse, table, stdin=json.dumps(positions))

    def buckets(self, warehouse: Warehouse, table: str, rows: Iterable[Row]) -> list[int]:
        """The bucket of each row; in a table with dynamic buckets the hash of its key."""
        return self.call("buckets", warehouse, table, stdin="\n".join(map(json.dumps, rows)))

    def statistics(self, warehouse: Warehouse, table: str) -> dict[str, Any] | None:
        """The statistics of the newest snapshot, minimum and maximum as Java prints them."""
        found = self.call("statistics", warehouse, table)
        return dict(found[0]) if found else None

    def analyze(self, warehouse: Warehouse, table: str, statistics: Mapping[str, Any]) -> None:
        """Commits statistics, given in the form of Paimon's file."""
        self.call("analyze", warehouse, table, stdin=json.dumps(statistics))

    def clean_orphans(self, warehouse: Warehouse, table: str, older_than_ms: int) -> list[str]:
        """Removes what Java takes for orphans, and returns their paths."""
        return self.call("clean-orphans", warehouse, table, older_than_ms)

    def encode_tasks(self, warehouse: Warehouse, tasks: Iterable[Row]) -> list[Row]:
        """Compaction tasks, in the form of Tasks.java, as version and hex."""
        return self.call("encode-tasks", warehouse, "d.t", stdin="\n".join(map(json.dumps, tasks)))

    def decode_tasks(self, warehouse: Warehouse, tasks: Iterable[Row]) -> list[Row]:
        """The inverse; of each also whether it is `many`."""
        return self.call("decode-tasks", warehouse, "d.t", stdin="\n".join(map(json.dumps, tasks)))

    def expire(self, warehouse: Warehouse, table: str, keep: int) -> None:
        self.call("expire", warehouse, table, keep)

    def rollback(self, warehouse: Warehouse, table: str, to: int | str) -> None:
        """To a snapshot by its id, or to a tag by its name."""
        self.call("rollback", warehouse, table, to)

    def tags(self, warehouse: Warehouse, table: str) -> list[dict[str, Any]]:
        return self.call("tags", warehouse, table)

    def tag(self, warehouse: Warehouse, table: str, name: str, snapshot: int | None = None) -> None:
        self.call("tag", warehouse, table, name, *([] if snapshot is None else [snapshot]))

    def delete_tag(self, warehouse: Warehouse, table: str, name: str) -> None:
        self.call("delete-tag", warehouse, table, name)

    def branches(self, warehouse: Warehouse, table: str) -> list[str]:
        return self.call("branches", warehouse, table)

    def branch(self, warehouse: Warehouse, table: str, name: str, tag: str | None = None) -> None:
        self.call("branch", warehouse, table, name, *([] if tag is None else [tag]))

    def delete_branch(self, warehouse: Warehouse, table: str, name: str) -> None:
        self.call("delete-branch", warehouse, table, name)

    def fast_forward(self, warehouse: Warehouse, table: str, branch: str) -> None:
        self.call("fastforward", warehouse, table, branch)

    def tag_retained(
        self, warehouse: Warehouse, table: str, name: str, retained: str, snapshot: int | None = None
    ) -> None:
        """A tag that expires after `retained`, such as PT1H."""
        self.call("tag-retained", warehouse, table, name, "-" if snapshot is None else snapshot, retained)

    def rename_tag(self, warehouse: Warehouse, table: str, name: str, new_name: str) -> None:
        self.call("rename-tag", warehouse, table, name, new_name)

    def replace_tag(self, warehouse: Warehouse, table: str, name: str, snapshot: int | None = None) -> None:
        self.call("replace-tag", warehouse, table, name, "-" if snapshot is None else snapshot)

    def automatic_tags(self, warehouse: Warehouse, table: str) -> None:
        """Makes the tags that are due, and expires those past their time."""
        self.call("auto-tags", warehouse, table)

    def batch_tag(self, warehouse: Warehouse, table: str) -> None:
        self.call("batch-tag", warehouse, table)

    def rename_branch(self, warehouse: Warehouse, table: str, name: str, new_name: str) -> None:
        self.call("rename-branch", warehouse, table, name, new_name)

    def consumer(self, warehouse: Warehouse, table: str, consumer: str, next_snapshot: int) -> None:
        self.call("consumer", warehouse, table, consumer, next_snapshot)

    def consumers(self, warehouse: Warehouse, table: str) -> dict[str, int]:
        (found,) = self.call("consumers", warehouse, table)
        return dict(found)


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [f"--{name}", str(value)]


def _options(options: Mapping[str, str] | None) -> list[str]:
    return [part for key, value in (options or {}).items() for part in ("--option", f"{key}={value}")]


def _without_kind(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "_kind"}
