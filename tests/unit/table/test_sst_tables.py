"""Tables with SST files: the same rows as their Parquet twin, from every reader, whatever happens to them."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import CorruptionError, InvalidError
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table

COLUMNS = [("id", "BIGINT"), ("name", "STRING"), ("x", "DOUBLE"), ("tags", "ARRAY<INT>"), ("p", "STRING")]
SMALL = {"bucket": "2", "sst.block-size": "200 b", "num-sorted-run.compaction-trigger": "100", "num-levels": "6"}


@pytest.fixture
def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    return made


def make(lake: Lake, name: str = "t", **options: str) -> Table:
    given = {key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}
    return lake.create_table(f"d.{name}", COLUMNS, primary_key=["id", "p"], partitioned_by=["p"], options=SMALL | given)


def rows(first: int, count: int, version: int) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "name": None if number % 7 == 0 else f"{version}-{number}" * (number % 3),
            "x": [float("nan"), -0.0, number / 3, None][(number + version) % 4],
            "tags": None if number % 5 == 0 else [number, None],
            "p": "ab"[number % 2],
        }
        for number in range(first, first + count)
    ]


def shown(table: Table, **scan: Any) -> list[str]:
    return sorted(map(repr, table.scan(**scan).to_arrow().to_pylist()))


def endings(table: Table) -> set[tuple[int, str]]:
    return {(file.level, file.name.rsplit(".", 1)[1]) for _, file in table.files()}


class TestWarning:
    def test_creating_and_altering_warn_once(self, lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING):
            table = make(lake, "plain")
            table.set_options({"file.format": "orc"})
            assert not caplog.messages
            make(lake, "made", file__format="sst")
            lake.create_table("d.made", COLUMNS, options={"file.format": "parquet"}, if_not_exists=True)
            assert ["d.db/made" in text for text in caplog.messages] == [True]
            table.set_options({"file.format.per.level": "0:sst"})
            table.set_options({"file.format": "sst"})
            table.change_comment("hello")
            assert len(caplog.messages) == 2
        assert all("other engines cannot open" in text and "full compaction" in text for text in caplog.messages)

    def test_tables_without_a_key_are_refused(self, lake: Lake) -> None:
        with pytest.raises(InvalidError, match="without a primary key"):
            lake.create_table("d.a", COLUMNS, options={"file.format": "sst"})
        table = lake.create_table("d.a", COLUMNS)
        with pytest.raises(InvalidError, match="without a primary key"):
            table.set_options({"file.format": "sst"})

    def test_postponed_rows_are_in_other_files(self, lake: Lake) -> None:
        columns = [("id", "BIGINT"), ("t", "TIMESTAMP(9)")]
        options = {"bucket": "-2", "file.format": "sst"}
        table = lake.create_table("d.w", columns, primary_key=["id"], options=options)
        table.write(pa.table({"id": [2, 1, 2], "t": pa.array([5, 6, 7], pa.timestamp("ns"))}))
        assert {ending for _, ending in endings(table)} == {"parquet"}
        table.compact()
        assert {ending for _, ending in endings(table)} == {"sst"}
        assert table.scan().to_arrow().num_rows == 2


@pytest.mark.parametrize(
    "options",
    [
        {"file.format": "sst"},
        {"file.format.per.level": "0:sst"},
        {"file.format.per.level": "0:parquet,5:sst"},
        {"file.format": "sst", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "2"},
        {"file.format": "sst", "merge-engine": "first-row"},
        {"file.format": "sst", "data-file.thin-mode": "true", "file.compression": "lz4"},
    ],
    ids=["all", "level 0", "level 5", "vectors", "first row", "thin"],
)
def test_the_same_rows_as_the_parquet_twin(lake: Lake, tmp_path: Path, options: dict[str, str]) -> None:
    other = {key: text for key, text in options.items() if not key.startswith("file.")}
    table, twin = make(lake, "t", **options), make(lake, "twin", **other)
    session, rng = Session(lake), random.Random(3)
    steps = ["write", "delete", "write", "compact", "write", "rename", "write", "widen", "delete", "write"]
    if options.get("merge-engine"):
        steps = [step for step in steps if step != "delete"]
    for number, step in enumerate([*steps, "full"]):
        first, count = rng.randrange(100), rng.randrange(1, 60)
        for one in (table, twin):
            name = "label" if "label" in one.schema.names else "name"
            if step == "write":
                given = rows(first, count, number)
                one.write([{name if key == "name" else key: row[key] for key in row} for row in given])
            elif step == "delete":
                one.delete(where=f"id between {first} and {first + 20}")
            elif step == "rename":
                one.rename_column("name", "label")
            elif step == "widen":
                one.add_column("more", "INT")
                one.drop_column("more")
                one.add_column("more", "BIGINT")
                one.set_options({"write.missing-columns": "default"})
            else:
                one.compact(full=step == "full")
        assert shown(table) == shown(twin), step
        if step == "write":
            continue
        assert shown(table, columns=["x", "id"]) == shown(twin, columns=["x", "id"])
        for where in (f"id >= {first} and id < {first + 9} and p = 'a'", "x is null", f"id in ({first}, {count})"):
            assert shown(table, where=where) == shown(twin, where=where), where
        for key in ({"id": first, "p": "a"}, {"id": first, "p": "b"}, {"id": -1, "p": "a"}):
            assert repr(table.get(key)) == repr(twin.get(key))
        with table.lookup(folder=tmp_path) as looked, twin.lookup(folder=tmp_path) as told:
            found = [repr(one.get({"id": first, "p": "ab"[first % 2]})) for one in (looked, told)]
            assert found[0] == found[1]
        answers = [
            session.run(f"SELECT count(*), sum(id), max(x), min(x) FROM d.{one} WHERE id > {first}").rows()
            for one in ("t", "twin")
        ]
        assert repr(answers[0]) == repr(answers[1])
    assert any(ending == "sst" for _, ending in endings(table)) or options == {"file.format.per.level": "0:sst"}
    changes = [sorted(map(repr, one.changes(1).to_pylist())) for one in (table, twin)]
    assert changes[0] == changes[1]
    assert table.check().damages == ()
    assert table.remove_orphan_files(dry_run=True).paths == ()


def test_a_full_compaction_makes_the_table_parquet_again(lake: Lake) -> None:
    table = make(lake, file__format="sst")
    table.write(rows(0, 100, 1))
    table.compact(full=True)
    assert endings(table) == {(5, "sst")}
    before = shown(table)
    assert table.compact(full=True) is None
    table.set_options({"file.format": "parquet"})
    table.compact(full=True)
    assert endings(table) == {(5, "parquet")}
    assert shown(table) == before
    assert table.compact(full=True) is None


def test_statistics_and_bounds_are_those_of_parquet(lake: Lake) -> None:
    found = []
    for name, file_format in (("t", "sst"), ("twin", "parquet")):
        table = make(lake, name, **{"file.format": file_format, "data-file.thin-mode": "true"})
        table.write(rows(0, 100, 1))
        found.append(
            sorted(
                (file.min_key, file.max_key, file.row_count, file.value_stats.min_values, file.value_stats.max_values)
                for _, file in table.files()
            )
        )
    assert found[0] == found[1]


def test_a_damaged_file_is_told_by_every_reader(lake: Lake) -> None:
    table = make(lake, file__format="sst")
    table.write(rows(0, 200, 1))
    path, file = table.files()[0]
    store = table.home.store
    data = store.get(path)
    rng = random.Random(5)
    for at in [0, 4, 7, 8, *sorted(rng.sample(range(17, len(data) - 52), 30))]:
        store.put(path, data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
        with pytest.raises(CorruptionError, match=file.name):
            table.scan().to_arrow()
        assert [damage for damage in table.check().damages if file.name in str(damage)]
    store.put(path, data)
    assert table.scan().to_arrow().num_rows == 200


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_key_is_found_by_the_index(lake: Lake, vectors: str) -> None:
    options = {"file.format": "sst", "deletion-vectors.enabled": vectors, "num-sorted-run.compaction-trigger": "2"}
    table, twin = make(lake, **options), make(lake, "twin", **{"deletion-vectors.enabled": vectors})
    for one in (table, twin):
        one.write(rows(0, 600, 1))
        one.compact(full=True)
        one.write(rows(100, 50, 2))
        one.delete(where="id % 10 = 3")
    keys = [{"id": number, "p": "ab"[number % 2]} for number in [*range(0, 700, 7), *range(95, 160), -5, 10**12]]
    assert repr(table.get_many(keys).to_pylist()) == repr(twin.get_many(keys).to_pylist())
    for key in keys[::5]:
        assert repr(table.get(key)) == repr(twin.get(key))


def test_a_get_reads_no_more_than_index_and_blocks(lake: Lake) -> None:
    table = make(lake, file__format="sst", bucket="1")
    table.write([one | {"p": "a", "name": "x" * 50} for one in rows(0, 4000, 1)])
    ((_, file),) = table.files()
    read: list[int] = []
    store = table.home.store

    class Counting(MemoryStore):
        def get_range(self, path: str, start: int, length: int) -> bytes:
            if path.endswith(".sst"):
                read.append(length)
            return store.get_range(path, start, length)

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, name) if name == "get_range" else getattr(store, name)

    counted = Lake(Counting()).table("d.t")
    assert counted.get({"id": 2000, "p": "a"}) is not None
    first = sum(read)
    assert 0 < first < file.size // 2
    assert counted.get({"id": 2001, "p": "a"}) is not None
    assert counted.get({"id": 999_999, "p": "a"}) is None
    assert sum(read) - first < file.size // 10
