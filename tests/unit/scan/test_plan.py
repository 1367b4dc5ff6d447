"""Pruning of manifests and files by a plan, under changed schemas."""

import math
from typing import Any

import pyarrow.compute as pc
import pytest

from lakelet import CorruptionError, Lake, NotFoundError, Table
from lakelet.storage.memory import MemoryStore


def make(columns: list[tuple[str, str]], *, partitions: tuple[str, ...] = (), **options: str) -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake.create_table("d.t", columns, partitioned_by=partitions, options=options)


def read(table: Table, where: Any) -> tuple[int, int, list[Any]]:
    """Manifests read, files read, and the ids that came out."""
    scan = table.scan(where=where)
    plan = scan.plan()
    return plan.manifests_read, plan.files, sorted(scan.to_arrow().column("id").to_pylist())


@pytest.fixture
def days() -> Table:
    """Ten commits, one day each, one file each; id equals the day."""
    table = make([("id", "BIGINT"), ("day", "INT"), ("s", "STRING")], partitions=("day",))
    for day in range(10):
        table.write([{"id": day, "day": day, "s": f"text {day}"}])
    table.write([{"id": 99, "day": None, "s": None}])
    return table


class TestPartitions:
    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("day = 3", [3]),
            ("day IN (1, 8)", [1, 8]),
            ("day < 2", [0, 1]),
            ("day BETWEEN 4 AND 5", [4, 5]),
            ("day IS NULL", [99]),
            ("day = 3 OR day IS NULL", [3, 99]),
            ("day = 77", []),
        ],
    )
    def test_manifests_and_files_of_other_partitions_are_not_read(
        self, days: Table, where: str, expected: list[int]
    ) -> None:
        assert read(days, where) == (len(expected), len(expected), expected)

    def test_an_arrow_expression_prunes_too(self, days: Table) -> None:
        assert read(days, pc.field("day") == 3) == (1, 1, [3])

    def test_the_totals_say_what_there_was(self, days: Table) -> None:
        plan = days.scan(where="day = 3").plan()
        assert (plan.manifests_total, plan.files_total, plan.row_count) == (11, 11, 1)

    def test_within_one_manifest(self) -> None:
        table = make([("id", "BIGINT"), ("day", "INT")], partitions=("day",))
        table.write([{"id": day, "day": day} for day in range(10)])
        assert read(table, "day = 3") == (1, 1, [3])
        assert read(table, "day = 77") == (0, 0, [])

    def test_removed_files_stay_removed(self, days: Table) -> None:
        days.write([{"id": 33, "day": 3, "s": "new"}], mode="overwrite_partitions")
        assert read(days, "day = 3") == (2, 1, [33])
        days.write([], mode="overwrite", partition={"day": 3})
        assert read(days, "day = 3")[1:] == (0, [])


class TestStatistics:
    def test_files_whose_range_cannot_match_are_not_read(self) -> None:
        table = make([("id", "BIGINT"), ("x", "DOUBLE"), ("s", "STRING")])
        table.write([{"id": 1, "x": 1.0, "s": "a"}, {"id": 2, "x": 2.0, "s": "b"}])
        table.write([{"id": 3, "x": 3.0, "s": "c"}, {"id": 4, "x": math.nan, "s": None}])
        table.write([{"id": 5, "x": None, "s": None}])
        assert read(table, "id = 3")[1:] == (1, [3])
        assert read(table, "s = 'b'")[1:] == (1, [2])
        # NaN is greater than everything, and no maximum of a float is trusted, but a file of NULLs alone has no match.
        assert read(table, "x > 10")[1:] == (2, [4])
        assert read(table, "x < 1.5")[1:] == (1, [1])
        assert read(table, "x IS NULL")[2] == [5]
        assert read(table, "s IS NULL")[1:] == (2, [4, 5])
        assert read(table, "id = 7 AND s = 'a'")[1:] == (0, [])

    @pytest.mark.parametrize("mode", ["none", "counts", "full", "truncate(1)"])
    def test_without_bounds_nothing_is_left_out_wrongly(self, mode: str) -> None:
        table = make([("id", "BIGINT"), ("s", "STRING")], **{"metadata.stats-mode": mode})
        table.write([{"id": 1, "s": "abc"}])
        table.write([{"id": 2, "s": "abd"}, {"id": 3, "s": None}])
        assert read(table, "s = 'abd'")[2] == [2]
        assert read(table, "s IS NULL")[2] == [3]
        assert read(table, "id = 1")[1] == (1 if mode in ("full", "truncate(1)") else 2)

    def test_columns_of_their_own_mode(self) -> None:
        options = {"metadata.stats-mode": "none", "fields.s.stats-mode": "full"}
        table = make([("id", "BIGINT"), ("n", "INT"), ("s", "STRING")], **options)
        table.write([{"id": 1, "n": 1, "s": "a"}])
        table.write([{"id": 2, "n": 2, "s": "b"}])
        assert read(table, "s = 'b'")[1:] == (1, [2])
        assert read(table, "n = 2")[1:] == (2, [2])


class TestEvolvedStatistics:
    def test_a_column_added_later_is_null_in_older_files(self) -> None:
        table = make([("id", "BIGINT")])
        table.write([{"id": 1}])
        table.add_column("n", "INT", default=5)
        table.write([{"id": 2, "n": 7}])
        table.write([{"id": 3}])
        assert read(table, "n = 7")[1:] == (1, [2])
        assert read(table, "n = 5")[1:] == (1, [3])
        assert read(table, "n IS NULL")[1:] == (1, [1])
        assert read(table, "n IS NOT NULL")[1:] == (2, [2, 3])

    def test_a_dropped_and_re_added_column_has_nothing_to_do_with_the_old_one(self) -> None:
        table = make([("id", "BIGINT"), ("n", "INT")])
        table.write([{"id": 1, "n": 7}])
        table.drop_column("n")
        table.add_column("n", "INT")
        table.write([{"id": 2, "n": 7}])
        assert read(table, "n = 7")[1:] == (1, [2])
        assert read(table, "n IS NULL")[1:] == (1, [1])

    def test_a_renamed_column_keeps_its_statistics(self) -> None:
        table = make([("id", "BIGINT"), ("n", "INT"), ("m", "INT")])
        table.write([{"id": 1, "n": 1, "m": 9}])
        table.rename_column("n", "k")
        table.rename_column("m", "n")
        table.write([{"id": 2, "k": 5, "n": 1}])
        assert read(table, "k = 1")[1:] == (1, [1])
        assert read(table, "n = 9")[1:] == (1, [1])
        assert read(table, "n = 1")[1:] == (1, [2])

    def test_statistics_of_a_widened_column_are_not_misread(self) -> None:
        table = make([("id", "BIGINT"), ("n", "INT"), ("d", "DECIMAL(6, 2)"), ("t", "TIMESTAMP(3)")])
        table.write([{"id": 1, "n": 7, "d": 1, "t": None}])
        table.change_type("n", "BIGINT")
        table.change_type("d", "DECIMAL(20, 4)")
        table.change_type("t", "TIMESTAMP(6)")
        table.write([{"id": 2, "n": 2**40, "d": 2, "t": None}])
        assert read(table, "n = 7")[2] == [1]
        assert read(table, "n > 1000000")[2] == [2]
        assert read(table, "d = 1")[2] == [1]
        assert read(table, "d > 1.5")[2] == [2]

    def test_time_travel_reads_in_the_columns_of_then(self) -> None:
        table = make([("id", "BIGINT"), ("n", "INT")])
        table.write([{"id": 1, "n": 7}])
        table.rename_column("n", "m")
        table.write([{"id": 2, "m": 8}])
        assert table.scan(version=1, where="n = 7").to_arrow().to_pylist() == [{"id": 1, "n": 7}]
        assert table.scan(version=2, where="m >= 7").count() == 2
        with pytest.raises(Exception, match="m"):
            table.scan(version=1, where="m = 7")


def test_a_snapshot_that_expired_meanwhile_is_named() -> None:
    table = make([("id", "BIGINT")])
    table.write([{"id": 1}])
    table.write([{"id": 2}])
    scan = table.scan(version=1)
    store, paths = scan.home.store, scan.home.paths
    assert scan.snapshot is not None
    lists = [paths.manifest(scan.snapshot.base_manifest_list), paths.manifest(scan.snapshot.delta_manifest_list)]
    store.delete(lists)
    with pytest.raises(CorruptionError, match=r"manifest-list.* is missing"):
        scan.plan()
    store.delete([paths.snapshot(1)])
    with pytest.raises(NotFoundError, match=r"snapshot 1 was expired while it was read"):
        scan.plan()


def test_a_table_without_a_snapshot_has_an_empty_plan() -> None:
    table = make([("id", "BIGINT")])
    plan = table.scan(where="id = 1").plan()
    assert (plan.splits, plan.files, plan.row_count, plan.snapshot_id) == ((), 0, 0, None)
    assert table.scan().to_arrow().num_rows == 0
