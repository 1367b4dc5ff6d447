"""Level-0 files of a primary-key table: which rows, in which order, with which sequence numbers, and the metadata of files."""

import math
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import InvalidError, UnavailableError
from lakelet.format.rows.binary_row import decode_row
from lakelet.model.commit_message import CommitMessage
from lakelet.storage.memory import MemoryStore
from lakelet.storage.store import OutputFile
from tests.tiers.examples import examples
from tests.unit.keyed_table import KeyedTable, without_kind

COLUMNS = {"id": "BIGINT", "v": "STRING"}
Row = dict[str, Any]


@pytest.fixture
def spill_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Where temporary folders are made; nothing may be left there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert spilled(tmp_path) == []


def spilled(folder: Path) -> list[Path]:
    return sorted(folder.rglob("lakelet-*/**/*.arrow"))


def files_of(messages: tuple[CommitMessage, ...]) -> list[Any]:
    return [file for message in messages for file in message.new_files]


def winners(rows: list[Row], table: KeyedTable) -> dict[tuple[object, ...], tuple[int, Row]]:
    """The model: of each key the greatest sequence.field, NULL least, the later of two; numbers in order of arrival."""
    options = table.schema.options
    fields = [name for name in options.get("sequence.field", "").split(",") if name]
    sign = -1 if options.get("sequence.field.sort-order") == "descending" else 1
    ignored = {"ignore-delete": ("-U", "-D"), "ignore-update-before": ("-U",)}
    dropped = [kind for option, kinds in ignored.items() if options.get(option) == "true" for kind in kinds]
    state: dict[tuple[object, ...], tuple[int, Row]] = {}

    def version(row: Row) -> tuple[tuple[int, int], ...]:
        return tuple((0, 0) if row[name] is None else (1, sign * row[name]) for name in fields)

    number = 0
    for row in rows:
        if row.get("_kind", "+I") in dropped:
            continue
        key = tuple(row[name] for name in table.schema.trimmed_primary_keys)
        if key not in state or version(row) >= version(state[key][1]):
            state[key] = (number, row)
        number += 1
    return state


def expected(rows: list[Row], table: KeyedTable) -> list[Row]:
    """What one bucket's files hold after these rows."""
    held = sorted(winners(rows, table).items())
    keys = () if table.thin else table.schema.trimmed_primary_keys
    return [
        {f"_KEY_{name}": row[name] for name in keys}
        | {"_SEQUENCE_NUMBER": number, "_VALUE_KIND": ("+I", "-U", "+U", "-D").index(row.get("_kind", "+I"))}
        | without_kind(row)
        for _, (number, row) in held
    ]


def test_one_sorted_file_with_the_last_row_of_each_key() -> None:
    table = KeyedTable(COLUMNS)
    rows: list[Row] = [{"id": 3, "v": "a"}, {"id": 1, "v": "b"}, {"id": 3, "v": "c"}, {"id": -5, "v": None}]
    (message,) = table.write(rows[:2], rows[2:])
    assert table.rows((message,)) == expected(rows, table)
    (file,) = message.new_files
    assert (message.bucket, message.total_buckets) == (0, 1)
    assert (file.row_count, file.level, file.source, file.delete_row_count) == (3, 0, 0, 0)
    assert (file.min_sequence, file.max_sequence, file.schema_id) == (1, 3, 0)
    types = [field.type for field in table.schema.trimmed_key_fields]
    assert (decode_row(file.min_key, types), decode_row(file.max_key, types)) == ((-5,), (3,))
    assert (file.key_stats.min_values, file.key_stats.max_values) == (file.min_key, file.max_key)
    assert file.key_stats.null_counts == (0,)
    all_types = [field.type for field in table.schema.fields]
    assert decode_row(file.value_stats.min_values, all_types) == (-5, "b")
    assert decode_row(file.value_stats.max_values, all_types) == (3, "c")
    assert (file.value_stats.null_counts, file.value_stats_columns) == ((0, 1), None)
    (path,) = table.data_files()
    assert path.endswith(file.name)
    assert file.name.startswith("data-")
    assert table.store.head(path).size == file.size  # type: ignore[union-attr]


def test_kinds_are_kept_and_retracts_counted() -> None:
    table = KeyedTable(COLUMNS)
    rows: list[Row] = [{"id": n, "v": "x", "_kind": kind} for n, kind in enumerate(["+I", "-U", "+U", "-D", "-D"])]
    messages = table.write(rows)
    assert table.rows(messages) == expected(rows, table)
    assert [file.delete_row_count for file in files_of(messages)] == [3]


@pytest.mark.parametrize(
    ("option", "left"), [("ignore-delete", ["+I", "+U"]), ("ignore-update-before", ["+I", "+U", "-D"])]
)
def test_ignored_kinds_take_no_number(option: str, left: list[str]) -> None:
    table = KeyedTable(COLUMNS, **{option: "true"})
    rows: list[Row] = [
        {"id": n, "v": "x", "_kind": kind} for n, kind in enumerate(["-U", "-D", "+I", "-U", "+U", "-D"])
    ]
    kept = [row for row in rows if row["_kind"] in left]
    messages = table.write(rows)
    assert [row["id"] for row in table.rows(messages)] == sorted(row["id"] for row in kept)
    assert sorted(row["_SEQUENCE_NUMBER"] for row in table.rows(messages)) == list(range(len(kept)))
    assert table.rows(messages) == expected(rows, table)


def test_rows_of_ignored_kinds_alone_write_nothing() -> None:
    table = KeyedTable(COLUMNS, **{"ignore-delete": "true"})
    assert table.write([{"id": 1, "v": "x", "_kind": "-D"}]) == ()
    assert table.data_files() == []


def test_numbers_go_on_after_what_is_committed_in_each_bucket() -> None:
    table = KeyedTable({"p": "INT", **COLUMNS}, ["p", "id"], partitions=["p"], bucket="2")
    rows: list[Row] = [{"p": number % 2, "id": number, "v": "a"} for number in range(40)]
    first = table.write(rows)
    table.commit(first)
    second = table.write(rows, rows)
    counts = {(message.partition, message.bucket): files_of((message,))[0].row_count for message in first}
    assert len(counts) == 4
    for message in second:
        place = message.partition, message.bucket
        (file,) = message.new_files
        # Of 2n rows the last n win, after n numbers of the commit before.
        assert (file.min_sequence, file.max_sequence) == (2 * counts[place], 3 * counts[place] - 1)


def test_numbers_are_told_by_the_caller() -> None:
    table = KeyedTable(COLUMNS)
    table.commit(table.write([{"id": 1, "v": "a"}]))
    (file,) = files_of(table.write([{"id": 1, "v": "a"}], first_sequence=lambda place: 70))
    assert (file.min_sequence, file.max_sequence) == (70, 70)


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_rule_16_folding_orders_by_sequence_field_with_null_least(order: str) -> None:
    columns = {"id": "INT", "s": "BIGINT", "t": "INT", "v": "INT"}
    table = KeyedTable(columns, **{"sequence.field": "s,t", "sequence.field.sort-order": order})
    versions = [(None, None), (5, 1), (5, None), (5, 1), (7, 0), (None, 9)]
    rows: list[Row] = [
        {"id": key, "s": s, "t": t, "v": number}
        for key in range(3)
        for number, (s, t) in enumerate(versions[key:] + versions[:key])
    ]
    messages = table.write(rows)
    assert table.rows(messages) == expected(rows, table)
    assert {row["s"] for row in table.rows(messages)} == ({7} if order == "ascending" else {5})


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("thin", ["true", "false"])
def test_every_format_thin_and_fat(file_format: str, thin: str) -> None:
    table = KeyedTable(
        {"v": "STRING", "b": "STRING", "a": "INT"},
        ["a", "b"],
        **{"file.format": file_format, "data-file.thin-mode": thin},
    )
    rows: list[Row] = [{"v": "x", "b": b, "a": a} for a in (2, 1) for b in ("y", "", "é")]
    messages = table.write(rows)
    assert table.rows(messages) == expected(rows, table)
    (file,) = files_of(messages)
    assert file.name.endswith(f".{file_format}")


def test_the_parquet_schema_is_javas() -> None:
    table = KeyedTable({"v": "STRING", "id": "BIGINT", "k": "STRING"}, ["k", "id"])
    table.write([{"v": "x", "id": 1, "k": "a"}])
    (path,) = table.data_files()
    schema = pq.ParquetFile(pa.BufferReader(table.store.get(path))).schema_arrow
    assert [
        (field.name, int(field.metadata[b"PARQUET:field_id"]), str(field.type), field.nullable) for field in schema
    ] == [
        ("_KEY_k", 1073741825, "string", False),
        ("_KEY_id", 1073741824, "int64", False),
        ("_SEQUENCE_NUMBER", 2147483646, "int64", False),
        ("_VALUE_KIND", 2147483645, "int8", False),
        ("v", 0, "string", True),
        ("id", 1, "int64", False),
        ("k", 2, "string", False),
    ]


@pytest.mark.parametrize(
    ("thin", "options", "columns", "key_bounds"),
    [
        ("false", {"metadata.stats-mode": "none"}, (), ("k" * 40, "k" * 40)),
        ("true", {"metadata.stats-mode": "none"}, ("id",), ("k" * 40, "k" * 40)),
        ("false", {"metadata.stats-keep-first-n-columns": "1"}, ("v",), ("k" * 40, "k" * 40)),
        ("true", {"metadata.stats-keep-first-n-columns": "1"}, ("v", "id"), ("k" * 40, "k" * 40)),
    ],
)
def test_keys_have_bounds_whatever_other_columns_have(
    thin: str, options: dict[str, str], columns: tuple[str, ...], key_bounds: tuple[str, str]
) -> None:
    table = KeyedTable({"v": "INT", "id": "STRING", "w": "INT"}, **options, **{"data-file.thin-mode": thin})
    (file,) = files_of(table.write([{"v": 1, "id": "k" * 40, "w": 2}]))
    types = [field.type for field in table.schema.trimmed_key_fields]
    assert file.value_stats_columns == columns
    assert decode_row(file.key_stats.min_values, types) + decode_row(file.key_stats.max_values, types) == key_bounds


def ranged_columns(table: KeyedTable) -> set[str]:
    """The columns with minimum and maximum in the footer of the only file."""
    (path,) = table.data_files()
    group = pq.ParquetFile(pa.BufferReader(table.store.get(path))).metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    return {chunk.path_in_schema for chunk in chunks if chunk.statistics and chunk.statistics.has_min_max}


def test_rule_13_columns_with_nan_have_no_footer_ranges() -> None:
    table = KeyedTable({"id": "DOUBLE", "x": "FLOAT", "y": "DOUBLE"})
    rows: list[Row] = [{"id": math.nan, "x": 1.0, "y": math.nan}, {"id": 1.0, "x": 2.0, "y": 3.0}]
    (file,) = files_of(table.write(rows))
    assert ranged_columns(table) == {"_SEQUENCE_NUMBER", "_VALUE_KIND", "x"}
    types = [field.type for field in table.schema.fields]
    assert [math.isnan(value) for value in decode_row(file.value_stats.max_values, types)] == [True, False, True]


def test_a_nan_that_was_spilled_is_remembered(spill_folder: Path) -> None:
    table = KeyedTable({"id": "INT", "x": "DOUBLE"}, **{"write-buffer-size": "1 b"})
    table.write([{"id": 1, "x": math.nan}], [{"id": 2, "x": 1.0}], [{"id": 3, "x": 1.0}])
    assert ranged_columns(table) == {"_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", "id"}


@pytest.mark.parametrize("limit", ["1 b", "3 kb"])
def test_a_full_buffer_spills_and_files_do_not_overlap(limit: str, spill_folder: Path) -> None:
    table = KeyedTable({"p": "INT", **COLUMNS}, ["p", "id"], partitions=["p"], **{"write-buffer-size": limit})
    generator = np.random.default_rng(4)
    writer = table.writer()
    rows: list[Row] = []
    most = 0
    for _ in range(20):
        part = [{"p": int(n) % 3, "id": int(n), "v": f"v{m}"} for m, n in enumerate(generator.integers(0, 300, 50))]
        rows += part
        writer.write(table.batch(part))
        most = max(most, len(spilled(spill_folder)))
    assert most > 2
    messages = writer.prepare_commit()
    assert [len(message.new_files) for message in messages] == [1, 1, 1]
    for message in messages:
        found = table.rows((message,))
        assert found == expected([row for row in rows if row["p"] == found[0]["p"]], table)


def test_a_merged_bucket_rolls_at_the_target_size(spill_folder: Path) -> None:
    options = {
        "write-buffer-size": "20 kb",
        "target-file-size": "10 kb",
        "file.block-size": "4 kb",
        "file.compression": "none",
    }
    table = KeyedTable(COLUMNS, **options)
    order = np.random.default_rng(1).permutation(3000)
    parts = [[{"id": int(n), "v": f"{n:030}"} for n in order[at : at + 500]] for at in range(0, 3000, 500)]
    messages = table.write(*parts)
    files = files_of(messages)
    assert len(files) > 3
    assert [row["id"] for row in table.rows(messages)] == list(range(3000))
    assert sum(file.row_count for file in files) == 3000
    assert all(file.size < 30_000 for file in files)


def test_row_groups_are_bounded() -> None:
    table = KeyedTable(COLUMNS, **{"file.block-size": "1 kb"})
    table.write([{"id": number, "v": "x" * 10} for number in range(500)])
    (path,) = table.data_files()
    with pq.ParquetFile(pa.BufferReader(table.store.get(path))) as file:
        counts = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert sum(counts) == 500
    assert 10 < max(counts) < 60


def test_a_batch_larger_than_the_buffer_is_taken_in_pieces(spill_folder: Path) -> None:
    table = KeyedTable(COLUMNS, **{"write-buffer-size": "2 kb"})
    rows: list[Row] = [{"id": number % 700, "v": f"v{number}"} for number in range(1000)]
    messages = table.write(rows)
    assert table.rows(messages) == expected(rows, table)


def test_abort_leaves_nothing(spill_folder: Path) -> None:
    table = KeyedTable(COLUMNS, **{"write-buffer-size": "1 b", "target-file-size": "1 b", "file.block-size": "1 b"})
    writer = table.writer()
    for number in range(5):
        writer.write(table.batch([{"id": number, "v": "x"}]))
    assert spilled(spill_folder)
    writer.abort()
    assert spilled(spill_folder) == []
    with pytest.raises(InvalidError, match="start a new one"):
        writer.write(table.batch([{"id": 1, "v": "x"}]))
    finished = table.writer()
    finished.write(table.batch([{"id": number, "v": "x"} for number in range(5)]))
    finished.prepare_commit()
    assert len(table.data_files()) == 5
    finished.abort()
    assert table.data_files() == []


class FullStore(MemoryStore):
    """Has no room for the files whose names end so."""

    full: str | None = None

    def open_output(self, path: str, *, deferred: bool = False) -> OutputFile:
        if self.full is not None and path.endswith(self.full):
            raise OSError("the disk is full")
        return super().open_output(path, deferred=deferred)


@pytest.mark.parametrize("limit", ["1 b", "256 mb"])
def test_after_an_error_only_an_abort_is_left(limit: str, spill_folder: Path) -> None:
    store = FullStore()
    options = {"write-buffer-size": limit, "target-file-size": "1 b", "file.block-size": "1 b", "bucket": "3"}
    table = KeyedTable(COLUMNS, store=store, **options)
    writer = table.writer()
    for number in range(8):
        writer.write(table.batch([{"id": number, "v": "x"}]))
    store.full = "-4.parquet"
    with pytest.raises(UnavailableError, match="the disk is full"):
        writer.prepare_commit()
    assert table.data_files()
    assert spilled(spill_folder) == []
    with pytest.raises(InvalidError, match="start a new one"):
        writer.prepare_commit()
    writer.abort()
    assert table.data_files() == []


def test_kinds_for_other_rows_are_refused() -> None:
    table = KeyedTable(COLUMNS)
    with pytest.raises(InvalidError, match="2 row kinds were given for 1 rows"):
        table.writer().write(table.batch([{"id": 1, "v": "x"}]), np.zeros(2, np.int8))


def test_postponed_rows_wait_as_they_came() -> None:
    columns = {"p": "INT", **COLUMNS}
    table = KeyedTable(columns, ["p", "id"], partitions=["p"], bucket="-2", **{"write-buffer-size": "1 b"})
    rows: list[Row] = [
        {"p": 1, "id": 9, "v": "a", "_kind": "+U"},
        {"p": 1, "id": 2, "v": "b", "_kind": "-D"},
        {"p": 1, "id": 9, "v": "c", "_kind": "+I"},
    ]
    (message,) = table.write(rows[:2], rows[2:])
    (file,) = message.new_files
    assert (message.bucket, message.total_buckets) == (-2, -2)
    assert [(row["id"], row["v"], row["_VALUE_KIND"]) for row in table.rows((message,))] == [
        (9, "a", 2),
        (2, "b", 3),
        (9, "c", 0),
    ]
    assert {row["_SEQUENCE_NUMBER"] for row in table.rows((message,))} == {-1}
    assert (file.min_sequence, file.max_sequence, file.row_count, file.delete_row_count) == (-1, -1, 3, 1)
    types = [field.type for field in table.schema.trimmed_key_fields]
    assert (decode_row(file.min_key, types), decode_row(file.max_key, types)) == ((9,), (9,))
    assert decode_row(file.key_stats.min_values, types) == (None,)
    assert (file.key_stats.null_counts, file.value_stats_columns, file.value_stats.null_counts) == ((None,), (), ())
    (path,) = table.data_files()
    assert "/p=1/bucket-postpone/data--u-" in path
    _, _, rest = file.name.partition("-s-")
    number, _, rest = rest.partition("-w-")
    assert 0 <= int(number) < 2**31
    assert rest.endswith("-0.avro")


def test_postponed_rows_that_avro_cannot_hold_use_the_table_format() -> None:
    table = KeyedTable({"id": "INT", "t": "TIMESTAMP(9)"}, bucket="-2", **{"file.format": "orc"})
    (file,) = files_of(table.write([{"id": 1, "t": None}]))
    assert file.name.endswith(".orc")
    assert file.key_stats.null_counts == (0,)


def test_a_nan_among_postponed_rows_begins_a_new_file() -> None:
    columns = {"id": "INT", "x": "DOUBLE", "t": "TIMESTAMP(9)"}
    table = KeyedTable(columns, bucket="-2", **{"write-buffer-size": "1 b"})
    rows: list[Row] = [{"id": n, "x": x, "t": None} for n, x in enumerate([1.0, 2.0, math.nan, 4.0, math.nan])]
    files = files_of(table.write(*([row] for row in rows)))
    assert [file.row_count for file in files] == [2, 3]


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.integers(-3, 3),
            "b": st.sampled_from(["", "x", "xy", "é", "z" * 9]),
            "s": st.none() | st.integers(-2, 2),
            "v": st.none() | st.floats(allow_nan=False, width=32),
            "_kind": st.sampled_from(["+I", "-U", "+U", "-D"]),
        }
    ),
    max_size=40,
)


@settings(max_examples=examples(60), deadline=None)
@given(
    ROWS,
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from(["1 b", "300 b", "256 mb"]),
    st.sampled_from([{}, {"sequence.field": "s"}, {"sequence.field": "s", "sequence.field.sort-order": "descending"}]),
    st.sampled_from([{}, {"ignore-delete": "true"}, {"ignore-update-before": "true"}]),
    st.booleans(),
)
def test_files_are_what_a_dictionary_holds(
    rows: list[Row], cuts: list[int], limit: str, order: dict[str, str], ignored: dict[str, str], thin: bool
) -> None:
    columns = {"v": "FLOAT", "b": "STRING", "a": "INT", "s": "BIGINT"}
    options = {"write-buffer-size": limit, "data-file.thin-mode": str(thin).lower(), **order, **ignored}
    table = KeyedTable(columns, ["a", "b"], **options)
    ends = sorted({min(cut, len(rows)) for cut in cuts} | {0, len(rows)})
    parts = [rows[start:end] for start, end in pairwise(ends)]
    messages = table.write(*parts)
    assert table.rows(messages) == expected(rows, table)


def test_bloom_filters_are_written_where_options_ask_for_them() -> None:
    options = {"parquet.bloom.filter.enabled#_KEY_id": "true", "parquet.bloom.filter.fpp#_KEY_id": "0.1"}
    for more, found in ((options, {"_KEY_id"}), ({}, set())):
        table = KeyedTable(COLUMNS, **more)
        table.write([{"id": number, "v": "x"} for number in range(100)])
        (path,) = table.data_files()
        group = pq.ParquetFile(pa.BufferReader(table.store.get(path))).metadata.row_group(0)
        chunks = [group.column(index) for index in range(group.num_columns)]
        assert {chunk.path_in_schema for chunk in chunks if chunk.bloom_filter_offset is not None} == found


def test_a_bloom_filter_option_that_is_no_number_is_refused() -> None:
    options = {"parquet.bloom.filter.enabled#id": "true", "parquet.bloom.filter.fpp#id": "small"}
    with pytest.raises(InvalidError, match="expected a number"):
        KeyedTable(COLUMNS, **options).write([{"id": 1, "v": "x"}])
