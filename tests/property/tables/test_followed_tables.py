"""A stream out of a table, replayed, equals the table at every version it reaches: random operations under random layouts.

The streams are polled at random moments, under random limits, and begun again from the offset that they had reached. Every
row is checked against what the replay holds: an insertion finds no row of its key, a deletion finds exactly its row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from lakelet import Lake, Table
from lakelet.errors import ConflictError, NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table.follow.change_stream import ChangeBatch
from lakelet.table.read import changed_keys
from lakelet.table.upkeep.partitions import drop_partitions, live_partitions
from tests.tiers.examples import examples

COLUMNS = [("id", "INT NOT NULL"), ("p", "INT NOT NULL"), ("v", "INT")]
Shape = tuple[tuple[str, ...], tuple[str, ...], Mapping[str, str]]
SHAPES: Mapping[str, Shape] = {
    "append": ((), (), {}),
    "append, partitions": ((), ("p",), {}),
    "append, buckets": ((), ("p",), {"bucket": "2", "bucket-key": "id"}),
    "append, vectors": ((), (), {"deletion-vectors.enabled": "true"}),
    "fixed": (("id",), (), {"bucket": "2"}),
    "fixed, partitions": (("id", "p"), ("p",), {"bucket": "2"}),
    "dynamic": (("id", "p"), ("p",), {"dynamic-bucket.target-row-num": "2"}),
    "across partitions": (("id",), ("p",), {"dynamic-bucket.target-row-num": "2"}),
    "postponed": (("id", "p"), ("p",), {"bucket": "-2"}),
    "vectors": (("id",), (), {"bucket": "2", "deletion-vectors.enabled": "true"}),
    "first row": (("id",), (), {"bucket": "2", "merge-engine": "first-row", "ignore-delete": "true"}),
}


@dataclass
class Replay:
    """The rows that a stream's changes make."""

    keys: tuple[str, ...]
    rows: Counter[tuple[int, int, int | None]] = field(default_factory=Counter)

    def apply(self, batch: ChangeBatch) -> None:
        """Applies a batch in its order, and finds fault with changes that do not fit."""
        for row in batch.to_arrow().to_pylist():
            kind = row.pop("_row_kind")
            values = (row["id"], row["p"], row["v"])
            if kind in ("-D", "-U"):
                assert self.rows[values] > 0, f"{kind} {values}: no such row"
                self.rows[values] -= 1
                if not self.rows[values]:
                    del self.rows[values]
                continue
            if self.keys:
                places = ["idp".index(key) for key in ("id", "p") if key in self.keys]
                same = [
                    old for old in self.rows if all((old[0] == values[0], "p" not in self.keys or old[1] == values[1]))
                ]
                assert not same, f"{kind} {values}: {same} is there, {places}"
            self.rows[values] += 1


@dataclass
class Follower:
    """A stream with its replay, polled at random."""

    table: Table
    keys: tuple[str, ...]
    options: Mapping[str, str]
    start: int | None

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begins anew."""
        first = self.table.latest_snapshot()
        start = (
            self.start if self.start is not None and first is not None and self.table.snapshots()[0].id == 1 else None
        )
        self.replay = Replay(self.keys)
        self.stream = self.table.follow(start, options=self.options)

    def poll(self, times: int, restarts: bool) -> None:
        """Takes some batches and compares where a version is whole."""
        for _ in range(times):
            if restarts:
                self.stream = self.table.follow(offset=self.stream.offset, options=self.options)
            try:
                batch = self.stream.poll()
            except NotFoundError:
                # The last version of which everything was read has expired.
                offset = self.stream.offset
                assert offset["snapshot"] - (offset["index"] is not None) < self.table.snapshots()[0].id
                assert "on-expired" not in self.options
                self.begin()
                continue
            if batch is None:
                return
            if "anew" in batch.end and not ("anew" in batch.start and batch.start["snapshot"] == batch.snapshot):
                self.replay.rows.clear()
            self.replay.apply(batch)
            if batch.end["index"] is None:
                there = self.table.scan(version=batch.snapshot).to_arrow().to_pylist()
                expected = Counter((row["id"], row["p"], row["v"]) for row in there)
                assert self.replay.rows == expected, batch.snapshot


def _rows(data: st.DataObject) -> list[dict[str, Any]]:
    values = st.fixed_dictionaries(
        {"id": st.integers(0, 7), "p": st.integers(0, 1), "v": st.none() | st.integers(0, 2)}
    )
    return data.draw(st.lists(values, min_size=1, max_size=6), label="rows")


def _operate(data: st.DataObject, table: Table, keys: tuple[str, ...], partitions: tuple[str, ...]) -> None:
    deletes = table.options.get("ignore-delete") != "true"
    choices = [
        "write",
        "write",
        "write",
        "compact",
        "full compaction",
        "overwrite",
        "empty",
        "expire",
        "analyze",
        "column",
    ]
    choices += ["delete"] if deletes and table.options.get("bucket") != "-2" else []
    choices += ["overwrite partitions", "drop partition"] if partitions else []
    choices += ["rescale"] if keys and int(table.options.get("bucket", "-1")) > 0 else []
    match data.draw(st.sampled_from(choices), label="operation"):
        case "write":
            rows = _rows(data)
            kinds = [data.draw(st.sampled_from(["+I", "+I", "-D"])) for _ in rows] if keys and deletes else None
            table.write(rows, kinds=kinds)
        case "compact":
            table.compact()
        case "full compaction":
            table.compact(full=True)
        case "overwrite":
            table.write(_rows(data), mode="overwrite")
        case "overwrite partitions":
            table.write(_rows(data), mode="overwrite_partitions")
        case "empty":
            table.write([], mode="overwrite")
        case "expire":
            table.expire_snapshots(retain_last=data.draw(st.integers(1, 3), label="kept"))
        case "analyze":
            table.analyze()
        case "column":
            table.add_column(f"more{len(table.schema.names)}", "INT")
        case "drop partition":
            dropped = {"p": data.draw(st.integers(0, 1), label="partition")}
            drop_partitions(table, live_partitions(table, table.schema, [dropped]))
        case "delete":
            table.delete(where=f"id > {data.draw(st.integers(0, 7), label='above')}")
        case "rescale":
            table.rescale(data.draw(st.integers(1, 3), label="buckets"))


@pytest.mark.parametrize("shape", SHAPES)
@settings(
    max_examples=examples(24), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_a_replayed_stream_equals_the_table_at_every_version(shape: str, data: st.DataObject) -> None:
    keys, partitions, options = SHAPES[shape]
    lake = Lake(MemoryStore())
    lake.create_database("d")
    own = {**options, **({"write.missing-columns": "default"} if keys else {})}
    if data.draw(st.booleans(), label="left to compaction"):
        own["write-only"] = "true"
    table = lake.create_table("d.t", COLUMNS, primary_key=list(keys), partitioned_by=list(partitions), options=own)
    limit = data.draw(
        st.sampled_from([{}, {"read.stream.maxFilesPerTrigger": "1"}, {"read.stream.maxRowsPerTrigger": "3"}])
    )
    # Whether written keys are looked up depends on how many there are; without a price they always are.
    price = data.draw(st.sampled_from([0, changed_keys.LOOKUP_ROWS]), label="price of a lookup")
    with patch.object(changed_keys, "LOOKUP_ROWS", price):
        _follow(data, table, keys, partitions, limit)


def _follow(
    data: st.DataObject, table: Table, keys: tuple[str, ...], partitions: tuple[str, ...], limit: Mapping[str, str]
) -> None:
    buckets, is_rescaled = table.options.get("bucket"), False
    # Columns that are added later are no part of what is compared.
    options = {**limit, "merge-schema": "true"}
    anew = {"on-expired": "restart"} if data.draw(st.booleans(), label="begins anew") else {}
    followers = [Follower(table, keys, options, 0), Follower(table, keys, {**options, **anew}, None)]
    for _ in range(data.draw(st.integers(2, 9), label="operations")):
        _operate(data, table, keys, partitions)
        newest = table.latest_snapshot()
        # A version of another number of buckets may become the newest one, and takes no rows.
        is_rescaled = is_rescaled or table.options.get("bucket") != buckets
        if (
            newest is not None
            and newest.id > max(2, table.snapshots()[0].id)
            and not is_rescaled
            and data.draw(st.integers(0, 7), label="roll back") == 0
        ):
            _roll_back(data, table, newest.id, followers)
        for follower in followers:
            follower.poll(data.draw(st.integers(0, 3), label="polls"), data.draw(st.booleans(), label="restarts"))
        if data.draw(st.integers(0, 5), label="begins late") == 0:
            followers[1].begin()
    for follower in followers:
        follower.poll(1000, restarts=False)
    note(str([snapshot.commit_kind.value for snapshot in table.snapshots()]))


def _roll_back(data: st.DataObject, table: Table, newest: int, followers: list[Follower]) -> None:
    """A stream that has read beyond the version that becomes the newest stops; any other goes on."""
    oldest = table.snapshots()[0].id
    to = data.draw(st.integers(max(oldest, newest - 3), newest - 1), label="to")
    table.rollback(to)
    table.write([{"id": 7, "p": 0, "v": 2}])
    for follower in followers:
        if follower.stream.offset["snapshot"] > to:
            with pytest.raises(ConflictError, match="rolled back"):
                follower.stream.poll()
            follower.begin()
