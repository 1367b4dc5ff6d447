"""UPDATE, DELETE and MERGE of Iceberg tables while others commit: rivals step in just before the request to the catalog."""

from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from lakelet import ConflictError
from lakelet.errors import CommitUnknownError
from lakelet.iceberg import row_change
from lakelet.iceberg.row_change import RowChange, change_rows
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.write.write_plan import WritePlan, write_plan
from tests.unit.iceberg.commit.tables import CatalogHooks, raising
from tests.unit.moving_clock import MovingClock
from tests.unit.sql.iceberg.changed_iceberg import NAME, START, IcebergSession, filled, rows, stored_data


@pytest.fixture
def sql(tmp_path: Path) -> IcebergSession:
    return filled(tmp_path, "identity")


def raced(sql: IcebergSession, text: str, *rivals: str) -> tuple[int, int]:
    """Runs a statement, and rivals between its reading and its request; how many rows it changed, and in how many requests."""
    hooks = CatalogHooks(sql.lake.catalogs.open("iceberg"))
    # A rival makes a request too, before which nobody steps in.
    hooks.before = [step for rival in rivals for step in (_running(sql, rival), None)]
    ((_, changed),) = sql.rows(text)
    return changed, hooks.calls


def _running(sql: IcebergSession, text: str) -> Callable[[], None]:
    return lambda: void(sql.rows(text))


def void(_: object) -> None:
    """Nothing."""


def test_rows_that_came_and_match_are_changed_too(sql: IcebergSession) -> None:
    assert raced(sql, f"DELETE FROM {NAME} WHERE v > 15", f"INSERT INTO {NAME} VALUES (6, 'a', 60, NULL)") == (4, 3)
    assert rows(sql) == [START[0], START[3]]


def test_rows_that_came_and_cannot_match_stay(sql: IcebergSession, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = []

    def planned(table: IcebergTable, job: str) -> WritePlan:
        plans.append(job)
        return write_plan(table, job)

    monkeypatch.setattr(row_change, "write_plan", planned)
    text = f"UPDATE {NAME} SET s = 'x' WHERE v > 15"
    assert raced(sql, text, f"INSERT INTO {NAME} VALUES (6, 'a', 5, NULL)") == (3, 3)
    assert rows(sql)[-1] == (6, "a", 5, None)
    # The statement was worked out once.
    assert len(plans) == 1


def test_snapshot_isolation_lets_rows_that_came_be(tmp_path: Path) -> None:
    sql = filled(tmp_path, "identity", **{"write.delete.isolation-level": "snapshot"})
    assert raced(sql, f"DELETE FROM {NAME} WHERE v > 15", f"INSERT INTO {NAME} VALUES (6, 'a', 60, NULL)") == (3, 3)
    assert rows(sql) == [START[0], START[3], (6, "a", 60, None)]


def test_a_condition_on_the_whole_table_is_worked_out_anew(sql: IcebergSession) -> None:
    text = f"DELETE FROM {NAME} WHERE p = 'a' AND v = (SELECT max(v) FROM {NAME})"
    assert raced(sql, text, f"INSERT INTO {NAME} VALUES (6, 'b', 60, NULL)") == (0, 2)
    assert rows(sql) == [*START, (6, "b", 60, None)]


def test_rows_that_another_changed_are_found_as_they_are_now(sql: IcebergSession) -> None:
    text = f"UPDATE {NAME} SET v = v + 1 WHERE p = 'a'"
    assert raced(sql, text, f"UPDATE {NAME} SET v = v * 10 WHERE id = 1", f"DELETE FROM {NAME} WHERE id = 3")[0] == 2
    assert rows(sql) == [(1, "a", 101, "one"), START[1], START[3], (5, "a", 51, "five")]


def test_a_merge_finds_the_key_that_another_put_in(sql: IcebergSession) -> None:
    text = (
        f"MERGE INTO {NAME} t USING (VALUES (9)) n(i) ON t.id = n.i WHEN MATCHED THEN UPDATE SET v = t.v + 1 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (n.i, 0)"
    )
    assert raced(sql, text, f"INSERT INTO {NAME} VALUES (9, 'z', 5, NULL)")[0] == 1
    assert rows(sql)[-1] == (9, "z", 6, None)


def test_files_that_were_put_together_meanwhile(sql: IcebergSession) -> None:
    rival = f"CALL sys.iceberg_rewrite_data_files(\"table\" => '{NAME}', min_input_files => 2)"
    assert raced(sql, f"DELETE FROM {NAME} WHERE id = 1", rival)[0] == 1
    assert rows(sql) == START[1:]


@pytest.mark.parametrize(
    "rival",
    [
        f"ALTER TABLE {NAME} REPLACE PARTITION FIELD p WITH bucket(2, id)",
        f"ALTER TABLE {NAME} ADD COLUMN w INT",
        f"ALTER TABLE {NAME} RENAME COLUMN s TO t",
    ],
)
def test_tables_that_were_altered_meanwhile(sql: IcebergSession, rival: str) -> None:
    assert raced(sql, f"UPDATE {NAME} SET s = 'x' WHERE id = 1", rival)[0] == 1
    name = "t" if "RENAME" in rival else "s"
    assert sql.rows(f"SELECT id, {name} FROM {NAME} ORDER BY id")[:2] == [(1, "x"), (2, "two")]


def test_rivals_without_end(tmp_path: Path) -> None:
    sql = filled(tmp_path, "identity", **{"commit.retry.num-retries": "2"})
    stored = stored_data(sql)
    with pytest.raises(ConflictError, match="rows that the statement may be about were added meanwhile"):
        raced(
            sql, f"UPDATE {NAME} SET v = 0", *(f"INSERT INTO {NAME} VALUES ({n}, 'a', 1, NULL)" for n in range(6, 12))
        )
    assert rows(sql) == [*START, *((number, "a", 1, None) for number in (6, 7, 8))]
    assert stored_data(sql) == stored + 3


def test_a_table_that_is_another_by_now(sql: IcebergSession) -> None:
    hooks = CatalogHooks(sql.lake.catalogs.open("iceberg"))
    hooks.before = [lambda: void(sql.rows(f"DROP TABLE {NAME}", f"CREATE TABLE {NAME} (id INT)"))]
    with pytest.raises(ConflictError, match="was dropped and made anew meanwhile"):
        sql.rows(f"DELETE FROM {NAME} WHERE id = 1")


class TestOutcomes:
    """What the catalog answers, by the clock of a test."""

    def change(self, sql: IcebergSession) -> None:
        def find(change: RowChange) -> None:
            scan = change.scan()
            for _, number, positions in change.read(scan, []):
                change.remove(positions[:1].astype("int32") * 0 + number, positions[:1])

        change_rows(sql.table, find, kind="delete", clock=MovingClock())

    def test_a_lost_response_is_found(self, sql: IcebergSession) -> None:
        CatalogHooks(sql.lake.catalogs.open("iceberg")).after = [raising(CommitStateUnknownException("502"))]
        self.change(sql)
        assert rows(sql) == [START[2]]

    def test_silence_leaves_the_files(self, sql: IcebergSession) -> None:
        stored = stored_data(sql)
        CatalogHooks(sql.lake.catalogs.open("iceberg")).before = [raising(requests.ConnectionError("reset by peer"))]
        with pytest.raises(CommitUnknownError):
            self.change(sql)
        assert rows(sql) == START
        assert stored_data(sql) == stored + 1

    def test_a_catalog_that_refuses_although_nothing_changed(self, sql: IcebergSession) -> None:
        stored = stored_data(sql)
        hooks = CatalogHooks(sql.lake.catalogs.open("iceberg"))
        hooks.before = [raising(CommitFailedException("another was first"))] * 100
        with pytest.raises(ConflictError, match="11 attempts"):
            self.change(sql)
        assert hooks.calls == 11
        assert stored_data(sql) == stored
