"""Writes: modes, partitions, two phases."""

import datetime as dt
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelet import InvalidError, Lake, Table
from lakelet.model.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from lakelet.storage.memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    return lake.create_table("d.t", [("id", "BIGINT"), ("day", "DATE"), ("s", "STRING")], partitioned_by=["day", "s"])


DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None]


def fill(table: Table) -> None:
    table.write(
        [
            {"id": 10 * index + number, "day": day, "s": "ab"[number]}
            for index, day in enumerate(DAYS)
            for number in range(2)
        ]
    )


def ids(table: Table) -> list[int]:
    found: list[int] = sorted(table.scan().to_arrow().column("id").to_pylist())
    return found


def data_files(store: MemoryStore) -> set[str]:
    return {info.path for info in store.list("d.db/t") if "/bucket-" in info.path}


def test_the_snapshot_that_comes_back(table: Table) -> None:
    first = table.write([{"id": 1}], watermark=5, properties={"k": "v"})
    assert first is not None
    assert (first.id, first.commit_kind, first.commit_identifier) == (1, CommitKind.APPEND, BATCH_COMMIT_IDENTIFIER)
    assert (first.total_record_count, first.delta_record_count) == (1, 1)
    assert (first.watermark, first.properties) == (5, {"k": "v"})
    second = table.write([{"id": 2}, {"id": 3}], watermark=3)
    assert second is not None
    assert (second.total_record_count, second.delta_record_count, second.watermark) == (3, 2, 5)
    assert table.latest_snapshot() == second
    assert table.write([]) is None


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"id": [1, 2]}),
        pd.DataFrame({"id": [1, 2]}, index=["x", "y"]),
        pl.DataFrame({"id": [1, 2]}),
        pl.LazyFrame({"id": [1, 2]}),
        [{"id": 1}, {"id": 2}],
        iter([pa.record_batch({"id": [1]}), pa.record_batch({"id": [2]})]),
    ],
    ids=lambda data: type(data).__module__ + "." + type(data).__name__,
)
def test_all_forms_of_rows(table: Table, data: object) -> None:
    table.write(data)
    assert ids(table) == [1, 2]


class TestOverwrite:
    def test_the_whole_table(self, table: Table) -> None:
        fill(table)
        made = table.write([{"id": 99, "day": DAYS[0], "s": "z"}], mode="overwrite")
        assert ids(table) == [99]
        assert made is not None
        assert (made.commit_kind, made.delta_record_count) == (CommitKind.OVERWRITE, -5)
        table.write([], mode="overwrite")
        assert ids(table) == []
        assert table.scan(version=1).count() == 6

    @pytest.mark.parametrize(
        ("partition", "left"),
        [
            ({"day": DAYS[0]}, [10, 11, 20, 21]),
            ({"day": "2024-01-01"}, [10, 11, 20, 21]),
            ({"day": "19723"}, [10, 11, 20, 21]),
            ({"s": "a"}, [1, 11, 21]),
            ({"day": DAYS[1], "s": "b"}, [0, 1, 10, 20, 21]),
            ({"day": None}, [0, 1, 10, 11]),
            ({"day": "__DEFAULT_PARTITION__", "s": "a"}, [0, 1, 10, 11, 21]),
            ({"s": "z"}, [0, 1, 10, 11, 20, 21]),
            ({}, []),
        ],
    )
    def test_a_static_partition(self, table: Table, partition: dict[str, object], left: list[int]) -> None:
        fill(table)
        table.write([], mode="overwrite", partition=partition)
        assert ids(table) == left

    def test_the_columns_of_a_static_partition_may_be_left_out(self, table: Table) -> None:
        fill(table)
        table.write(pa.table({"id": [99], "s": ["q"]}), mode="overwrite", partition={"day": "2024-01-01"})
        found = table.scan(where="id = 99").to_arrow().to_pylist()
        assert found == [{"id": 99, "day": DAYS[0], "s": "q"}]
        assert ids(table) == [10, 11, 20, 21, 99]

    def test_rows_outside_the_static_partition_are_refused(self, table: Table, store: MemoryStore) -> None:
        fill(table)
        before = data_files(store)
        rows = [{"id": 1, "day": DAYS[0], "s": "a"}, {"id": 2, "day": DAYS[1], "s": "a"}]
        with pytest.raises(InvalidError, match="there are rows of day=2024-01-02/s=a"):
            table.write(rows, mode="overwrite", partition={"day": DAYS[0]})
        assert data_files(store) == before
        assert len(table.snapshots()) == 1

    def test_dynamic(self, table: Table) -> None:
        fill(table)
        table.write(
            [{"id": 98, "day": DAYS[0], "s": "b"}, {"id": 99, "day": None, "s": "a"}], mode="overwrite_partitions"
        )
        assert ids(table) == [0, 10, 11, 21, 98, 99]
        assert table.write([], mode="overwrite_partitions") is None

    @pytest.mark.parametrize(
        ("how", "reason"),
        [
            ({"mode": "replace"}, "mode 'replace': expected one of append, overwrite, overwrite_partitions"),
            ({"partition": {"s": "a"}}, "goes with mode='overwrite'"),
            ({"mode": "overwrite_partitions", "partition": {"s": "a"}}, "goes with mode='overwrite'"),
            ({"mode": "overwrite", "partition": {"id": 1}}, "'id' is not a partition key; the table's are day, s"),
            ({"mode": "overwrite", "partition": {"day": "someday"}}, "someday"),
            ({"mode": "overwrite", "partition": {"day": 1.5}}, "does not fit"),
        ],
    )
    def test_what_is_refused(self, table: Table, store: MemoryStore, how: dict[str, object], reason: str) -> None:
        fill(table)
        before = data_files(store)
        with pytest.raises(InvalidError, match=reason):
            table.write([{"id": 1}], **how)  # type: ignore[arg-type]
        assert data_files(store) == before


class TestTwoPhases:
    def test_messages_of_several_writers_make_one_commit(self, table: Table) -> None:
        messages = []
        for number in range(3):
            write = table.new_write()
            write.write([{"id": number, "s": "abc"[number]}])
            messages += pickle.loads(pickle.dumps(write.prepare_commit()))
        assert table.latest_snapshot() is None
        made = table.new_commit("job", 1).commit(messages)
        assert made is not None
        assert (made.commit_user, made.commit_identifier, made.delta_record_count) == ("job", 1, 3)
        assert ids(table) == [0, 1, 2]

    def test_a_repeated_commit_is_applied_once(self, table: Table, store: MemoryStore) -> None:
        write = table.new_write()
        write.write([{"id": 1}])
        messages = write.prepare_commit()
        first = table.new_commit("job", 1).commit(messages)
        table.write([{"id": 2}])
        assert table.new_commit("job", 1).commit(messages) == first
        assert ids(table) == [1, 2]
        before = data_files(store)
        table.new_commit("job", 1).abort(messages)
        assert data_files(store) == before

    def test_abort_removes_what_is_not_committed(self, table: Table, store: MemoryStore) -> None:
        write = table.new_write()
        write.write([{"id": 1}])
        messages = write.prepare_commit()
        assert data_files(store)
        table.new_commit("job", 1).abort(messages)
        assert data_files(store) == set()

    def test_an_error_inside_the_context_removes_the_files(self, table: Table, store: MemoryStore) -> None:
        write = table.new_write()
        write.write([{"id": 1}])
        with pytest.raises(InvalidError), write:
            write.write([{"zz": 1}])
        assert data_files(store) == set()

    def test_overwrites(self, table: Table) -> None:
        fill(table)
        write = table.new_write()
        write.write([{"id": 99, "day": DAYS[0], "s": "a"}])
        table.new_commit().overwrite(dynamic=True).commit(write.prepare_commit())
        assert ids(table) == [1, 10, 11, 20, 21, 99]
        table.new_commit().overwrite({"s": "b"}).commit(())
        assert ids(table) == [10, 20, 99]

    def test_empty_commits(self, table: Table) -> None:
        assert table.new_commit().commit(()) is None
        assert table.new_commit("job", 1).ignore_empty(True).commit(()) is None
        made = table.new_commit("job", 1).ignore_empty(False).commit(())
        assert made is not None
        assert (made.id, made.delta_record_count) == (1, 0)

    @pytest.mark.parametrize(
        ("user", "identifier"), [("job", None), (None, 1), ("", 1), ("job", -1), ("job", 2**63 - 1)]
    )
    def test_a_user_comes_with_an_identifier(self, table: Table, user: str | None, identifier: int | None) -> None:
        with pytest.raises(InvalidError, match="identifier"):
            table.new_commit(user, identifier)


def test_a_failing_input_leaves_nothing(table: Table, store: MemoryStore) -> None:
    def batches() -> object:
        yield pa.table({"id": [1]})
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        table.write(batches())
    assert data_files(store) == set()
    assert table.latest_snapshot() is None
