"""Serialised compaction tasks: Java's bytes, both ways, and nothing but them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, InvalidError, LakeletError
from lakelet.format.compaction_task import (
    AppendTask,
    MultiTableTask,
    decode_append_task,
    decode_multi_table_task,
    encode_append_task,
    encode_multi_table_task,
)
from lakelet.format.data_file_bytes import decode_data_file, encode_data_file
from lakelet.format.rows.binary_row import EMPTY_ROW, encode_row
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.type_parser import parse_type
from tests.golden.compaction_tasks import golden_tasks, task_from_json, task_to_json

GOLDEN = golden_tasks()
NO_STATS = Stats(EMPTY_ROW, EMPTY_ROW, None)
FILE = DataFile("data-0.parquet", 10, 1, EMPTY_ROW, EMPTY_ROW, NO_STATS, NO_STATS, 0, 0, 0, 0)

longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
lists = st.lists(texts, max_size=35).map(tuple)
rows = st.lists(st.one_of(st.none(), texts), max_size=70).map(
    lambda values: encode_row(values, [parse_type("STRING")] * len(values))
)
stats = st.builds(
    Stats, rows, rows, st.one_of(st.none(), st.lists(st.one_of(st.none(), longs), max_size=70).map(tuple))
)
files = st.builds(
    DataFile,
    texts,
    longs,
    longs,
    rows,
    rows,
    stats,
    stats,
    longs,
    longs,
    longs,
    st.integers(-(2**31), 2**31 - 1),
    lists,
    st.one_of(st.none(), longs),
    st.one_of(st.none(), longs),
    st.one_of(st.none(), st.binary(max_size=20)),
    st.one_of(st.none(), st.integers(-128, 127)),
    st.one_of(st.none(), lists),
    st.one_of(st.none(), texts),
    st.one_of(st.none(), longs),
    st.one_of(st.none(), lists),
)
several = st.lists(files, max_size=3).map(tuple)


def encoded(task: AppendTask | MultiTableTask) -> bytes:
    return encode_append_task(task) if isinstance(task, AppendTask) else encode_multi_table_task(task)


def decoded(data: bytes, like: AppendTask | MultiTableTask) -> AppendTask | MultiTableTask:
    return decode_append_task(data) if isinstance(like, AppendTask) else decode_multi_table_task(data)


@pytest.mark.parametrize(("task", "version", "data"), GOLDEN)
def test_the_bytes_are_those_of_java(task: AppendTask | MultiTableTask, version: int, data: bytes) -> None:
    assert version == (2 if isinstance(task, AppendTask) else 1)
    whole = struct.pack(">i", version) + data
    assert encoded(task) == whole
    assert decoded(whole, task) == task
    assert task_from_json(task_to_json(task)) == task


@given(rows, several)
def test_append_tasks_come_back(partition: bytes, found: tuple[DataFile, ...]) -> None:
    task = AppendTask(partition, found)
    assert decode_append_task(encode_append_task(task)) == task


@given(rows, several, texts, texts)
def test_multi_table_tasks_come_back(partition: bytes, found: tuple[DataFile, ...], database: str, table: str) -> None:
    task = MultiTableTask(partition, found, database, table)
    assert decode_multi_table_task(encode_multi_table_task(task)) == task


@pytest.mark.parametrize("version", [0, 1, 3, -1])
def test_another_version_of_an_append_task_is_refused_by_name(version: int) -> None:
    data = struct.pack(">i", version) + encode_append_task(AppendTask(EMPTY_ROW, (FILE,)))[4:]
    with pytest.raises(InvalidError, match=f"queue/7: append compaction task of version {version}, expected version 2"):
        decode_append_task(data, where="queue/7")


@pytest.mark.parametrize("version", [0, 2, 3])
def test_another_version_of_a_multi_table_task_is_refused_by_name(version: int) -> None:
    data = struct.pack(">i", version) + encode_multi_table_task(MultiTableTask(EMPTY_ROW, (FILE,), "d", "t"))[4:]
    with pytest.raises(InvalidError, match=f"multi-table compaction task of version {version}, expected version 1"):
        decode_multi_table_task(data)


@pytest.mark.parametrize(("task", "version", "data"), GOLDEN)
def test_bytes_that_end_early_or_go_on_are_corrupt(
    task: AppendTask | MultiTableTask, version: int, data: bytes
) -> None:
    whole = struct.pack(">i", version) + data
    for length in range(len(whole)):
        with pytest.raises(CorruptionError):
            decoded(whole[:length], task)
    with pytest.raises(CorruptionError, match="1 bytes follow"):
        decoded(whole + b"\0", task)


@given(st.sampled_from([task for task, _, _ in GOLDEN]), st.integers(min_value=0), st.integers(0, 255))
def test_a_changed_byte_gives_another_task_or_an_error_of_ours(
    task: AppendTask | MultiTableTask, at: int, byte: int
) -> None:
    data = bytearray(encoded(task))
    data[at % len(data)] = byte
    try:
        decoded(bytes(data), task)
    except LakeletError:
        return


def test_counts_and_lengths_beyond_the_bytes_are_refused_at_once() -> None:
    head = struct.pack(">ii", 2, len(EMPTY_ROW)) + EMPTY_ROW
    for count in (-1, 2**31 - 1):
        with pytest.raises(CorruptionError, match=f"{count} files"):
            decode_append_task(head + struct.pack(">i", count))
    with pytest.raises(CorruptionError, match="-5 bytes"):
        decode_append_task(head + struct.pack(">ii", 1, -5))
    with pytest.raises(CorruptionError, match="partition"):
        decode_append_task(struct.pack(">ii", 2, 2) + b"\0\0")
    with pytest.raises(CorruptionError, match="partition"):
        decode_append_task(struct.pack(">iii", 2, 4, 9) + struct.pack(">i", 0))


def test_members_that_are_never_null_are_checked() -> None:
    body = bytearray(encode_data_file(FILE)[4:])
    body[1] |= 1
    with pytest.raises(CorruptionError, match=r"x: fields \[0\]"):
        decode_data_file(bytes(body), where="x")


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidError, match="does not fit"):
        encode_append_task(
            AppendTask(EMPTY_ROW, (DataFile("f", 2**63, 1, *[EMPTY_ROW] * 2, *[NO_STATS] * 2, 0, 0, 0, 0),))
        )
