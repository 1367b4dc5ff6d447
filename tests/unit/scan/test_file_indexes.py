"""Scans leave out files by their indexes, and never a row that matches."""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.storage.memory import MemoryStore
from lakelet.table.table import Table
from tests.crash.warehouse import lake_on

INDEX = "file-index.bloom-filter"
COLUMNS = [("id", "BIGINT"), ("s", "STRING"), ("d", "DOUBLE"), ("n", "INT")]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def lake(store: MemoryStore) -> Lake:
    made = lake_on(store)
    made.create_database("d")
    return made


def table_of(lake: Lake, *, keyed: bool = False, columns: str = "id,s,d,n", **options: str) -> Table:
    names = [name.strip() for name in columns.split(",")]
    settings = {f"{INDEX}.columns": columns, **{f"{INDEX}.{name}.items": "50" for name in names}, **options}
    keys: dict[str, Any] = {"primary_key": ["id"]} if keyed else {}
    if keyed:
        settings["bucket"] = "1"
    table = lake.create_table("d.t", COLUMNS, options={**settings, "write-only": "true"}, **keys)
    for start in range(3):
        table.write([row(id_) for id_ in range(start, 60, 3)])
    return table


def row(id_: int) -> dict[str, Any]:
    return {"id": id_, "s": f"s{id_}", "d": 0.0 - id_, "n": id_}


def found(table: Table, where: str) -> tuple[int, int]:
    """The files that are read for a condition, and the rows."""
    scan = table.scan(where=where)
    return scan.plan().files, scan.to_arrow().num_rows


@pytest.mark.parametrize("threshold", ["1 b", "1 mb"])
def test_files_are_left_out_by_equality(store: MemoryStore, lake: Lake, threshold: str) -> None:
    table = table_of(lake, **{"file-index.in-manifest-threshold": threshold})
    beside = [info.path for info in store.list("d.db/t") if info.path.endswith(".parquet.index")]
    assert len(beside) == (3 if threshold == "1 b" else 0)
    assert found(table, "id = 17") == (1, 1)
    assert found(table, "s = 's17'") == (1, 1)
    assert found(table, "s = 's17' AND id > 5") == (1, 1)
    assert found(table, "s IN ('s17', 's20')") == (1, 2)
    assert found(table, "s = 's17' OR s = 's18'") == (2, 2)
    assert found(table, "d = 0") == (1, 1)
    assert found(table, "s > 's17'")[0] == 3
    assert found(table, "s = 's17' OR n > 5")[0] == 3
    table.set_options({"file-index.read.enabled": "false"})
    assert found(table, "id = 17") == (3, 1)


def test_bitmaps_know_values_and_nulls(lake: Lake) -> None:
    options = {"file-index.bitmap.columns": "n,s,d", "file-index.bitmap.s.index-block-size": "40 b"}
    table = lake.create_table("d.t", COLUMNS, options={**options, "write-only": "true"})
    for file in range(3):
        table.write(
            [{**row(file), "s": f"s{file % 3}-{i}", "n": None if file == 2 else file, "d": -0.0} for i in range(9)]
        )
    assert found(table, "n = 1") == (1, 9)
    assert found(table, "n <> 1") == (1, 9)
    assert found(table, "n NOT IN (0, 1)") == (0, 0)
    assert found(table, "n IS NULL") == (1, 9)
    assert found(table, "n IS NOT NULL") == (2, 18)
    assert found(table, "d = 0") == (3, 27)
    assert found(table, "d <> 0") == (0, 0)
    for file in range(3):
        for i in range(9):
            assert found(table, f"s = 's{file}-{i}'") == (1, 1)
    assert found(table, "s IN ('s0-9', 's3-0', '')") == (0, 0)


def test_range_bitmaps_know_what_lies_between(lake: Lake) -> None:
    options = {"file-index.range-bitmap.columns": "n,s,d", "file-index.range-bitmap.s.chunk-size": "30 b"}
    table = lake.create_table("d.t", COLUMNS, options={**options, "write-only": "true"})
    for file in range(3):
        table.write(
            [{"id": i, "s": f"s{i}-{file}", "n": None if file == 2 else 100 * i + file, "d": -0.0} for i in range(9)]
        )
    assert found(table, "n > 300 AND n < 400") == (1, 1)
    assert found(table, "n BETWEEN 302 AND 399") == (0, 0)
    assert found(table, "n BETWEEN 301 AND 399") == (1, 1)
    assert found(table, "n = 301 OR n = 500 OR n BETWEEN 2 AND 99") == (2, 2)
    assert found(table, "id < 100 AND (n IS NULL OR n BETWEEN 2 AND 99)") == (1, 9)
    assert found(table, "n NOT BETWEEN 1 AND 900 AND n IS NOT NULL") == (1, 1)
    assert found(table, "s >= 's3-1' AND s < 's3-2'") == (1, 1)
    assert found(table, "s IN ('s3-3', 's9', '')") == (0, 0)
    assert [found(table, f"d {one} 0")[0] for one in ("=", "<", "<=", ">", ">=", "<>")] == [3, 0, 3, 0, 3, 0]
    table.compact(full=True)
    assert found(table, "n BETWEEN 302 AND 399") == (0, 0)
    table.set_options({"file-index.read.enabled": "false"})
    assert found(table, "n BETWEEN 302 AND 399") == (1, 0)


def test_order_is_asked_by_key_everywhere_and_by_value_of_whole_sections(lake: Lake) -> None:
    options = {"file-index.range-bitmap.columns": "id,n", "bucket": "1", "write-only": "true"}
    table = lake.create_table("d.t", COLUMNS, options=options, primary_key=["id"])
    table.write([{**row(10 * i), "n": 10 * i} for i in range(9)])
    assert found(table, "id BETWEEN 11 AND 19") == (0, 0)
    assert found(table, "n BETWEEN 11 AND 19") == (0, 0)
    table.write([{**row(10), "n": 15}, {**row(80), "n": 80}])
    table.write([{**row(20), "n": 11}, {**row(30), "n": 99}])
    assert found(table, "n BETWEEN 9 AND 10")[1] == 0
    assert found(table, "n BETWEEN 12 AND 19")[1] == 1
    assert found(table, "id BETWEEN 11 AND 19") == (0, 0)


def test_an_older_version_of_a_key_is_never_shown(lake: Lake) -> None:
    table = table_of(lake, keyed=True)
    assert found(table, "id = 17")[1] == 1
    table.write([{**row(17), "s": "new"}])
    assert found(table, "s = 's17'")[1] == 0
    assert found(table, "s = 'new'")[1] == 1
    table.delete(where="id = 18")
    assert found(table, "s = 's18'")[1] == 0
    table.compact(full=True)
    assert found(table, "s = 's17'") == (0, 0)
    assert found(table, "s = 'new'") == (1, 1)


def test_names_and_types_of_the_file_count(lake: Lake) -> None:
    table = table_of(lake, columns="n")
    changes = {f"{INDEX}.columns": "s", f"{INDEX}.s.items": "50", f"{INDEX}.n.items": None}
    table.alter(lambda schema: table.with_options(schema, changes))
    table.rename_column("n", "m")
    assert found(table, "m = 17") == (1, 1)
    table.change_type("m", "BIGINT")
    assert found(table, "m = 17") == (3, 1)
    table.drop_column("m")
    table.add_column("n", "INT")
    table.write([row(17)])
    assert found(table, "n = 17")[1] == 1


def test_a_file_without_its_index_or_with_a_damaged_one_is_read(
    store: MemoryStore, lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_of(lake, **{"file-index.in-manifest-threshold": "1 b"})
    beside = [info.path for info in store.list("d.db/t") if info.path.endswith(".index")]
    store.delete(beside[:1])
    store.put(beside[1], store.get(beside[1])[:30])
    with caplog.at_level(logging.WARNING, "lakelet.scan"):
        assert found(table, "s = 's17'")[1] == 1
        assert table.scan(where="s = 'nowhere'").plan().files == 0 or "ignored" in caplog.text


def test_files_beside_data_files_live_and_die_with_them(store: MemoryStore, lake: Lake) -> None:
    table = table_of(lake, **{"file-index.in-manifest-threshold": "1 b"})

    def beside() -> set[str]:
        return {info.path.rsplit("/", 1)[-1] for info in store.list("d.db/t") if info.path.endswith(".index")}

    write = table.new_write()
    write.write([row(1)])
    messages = write.prepare_commit()
    assert len(beside()) == 4
    table.new_commit().abort(messages)
    assert len(beside()) == 3
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_last=1, older_than="0 s")
    assert beside() == {f"{file.name}.index" for _, file in table.files()}
    report = table.remove_orphan_files(older_than="0 s")
    assert beside() == {f"{file.name}.index" for _, file in table.files()}, report


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"file-index.bsi.columns": "id"}, "an index of the type bsi is not written"),
        ({"file-index.bitmap.columns": "p"}, r"takes no column of DECIMAL\(9, 2\)"),
        ({"file-index.bitmap.columns": "id", "file-index.bitmap.id.version": "1"}, "expected 2"),
        ({"file-index.bitmap.columns": "id", "file-index.bitmap.id.index-block-size": "x"}, "found 'x'"),
        ({"file-index.range-bitmap.columns": "w"}, r"takes no column of DECIMAL\(19, 0\)"),
        ({"file-index.range-bitmap.columns": "at"}, r"takes no column of TIMESTAMP\(9\)"),
        ({"file-index.range-bitmap.columns": "id", "file-index.range-bitmap.id.chunk-size": "x"}, "found 'x'"),
        ({"file-index.range-bitmap.columns": "id", "file-index.range-bitmap.id.chunk-size": "4 gb"}, "at most"),
        (
            {"file-index.range-bitmap.columns": "id", "file-index.range-bitmap.id.size": "4"},
            "expected one of chunk-size",
        ),
        ({"file-index.blom-filter.columns": "id"}, "'blom-filter' is no type of file index"),
        ({f"{INDEX}.columns": "idd"}, "there is no column 'idd'; did you mean id"),
        ({f"{INDEX}.columns": "b"}, "takes no column of BOOLEAN"),
        ({f"{INDEX}.columns": "p"}, r"takes no column of DECIMAL\(9, 2\)"),
        ({f"{INDEX}.columns": "l"}, "takes no column of ARRAY<INT>"),
        ({f"{INDEX}.columns": "id", f"{INDEX}.id.item": "5"}, "expected one of items, fpp"),
        ({f"{INDEX}.columns": "id", f"{INDEX}.id.items": "0"}, "expected a number of values"),
        ({f"{INDEX}.columns": "id", f"{INDEX}.id.fpp": "1"}, "expected a share between 0 and 1"),
        ({f"{INDEX}.columns": "id", f"{INDEX}.id.items": "99999999999"}, "more than"),
        ({f"{INDEX}.id.items": "5"}, "expected a parameter of a column with an index"),
    ],
)
def test_what_is_no_index_is_refused_by_name(lake: Lake, options: dict[str, str], expected: str) -> None:
    columns = [("id", "BIGINT"), ("b", "BOOLEAN"), ("p", "DECIMAL(9, 2)"), ("l", "ARRAY<INT>")]
    columns += [("w", "DECIMAL(19, 0)"), ("at", "TIMESTAMP(9)")]
    with pytest.raises(InvalidError, match=expected):
        lake.create_table("d.bad", columns, options=options)


def test_an_indexed_column_is_not_renamed_away(lake: Lake) -> None:
    table = table_of(lake, columns="n")
    with pytest.raises(InvalidError, match="there is no column 'n'"):
        table.rename_column("n", "m")


@pytest.mark.parametrize("index", ["bitmap", "bloom-filter"])
@pytest.mark.parametrize("precision", [7, 9])
def test_values_within_a_microsecond_are_told_apart(index: str, precision: int) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    options = {f"file-index.{index}.columns": "at", "metadata.stats-mode": "none"}
    table = lake.create_table("d.t", [("id", "INT"), ("at", f"TIMESTAMP({precision})")], options=options)
    times = pa.array([1_000_000_100, 1_000_000_200], pa.timestamp("ns"))
    table.write(pa.table({"id": pa.array([1, 2], pa.int32()), "at": times}))
    at = "TIMESTAMP '1970-01-01 00:00:01.0000001'"
    for where, expected in ((f"at = {at}", [1]), (f"at <> {at}", [2]), (f"at NOT IN ({at})", [2]), ("at IS NULL", [])):
        assert table.scan(where=where).to_arrow().column("id").to_pylist() == expected, where
