"""Commits against a catalog that refuses, is silent, or answers after somebody else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from pyiceberg.manifest import ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.snapshots import Snapshot

from lakelet.errors import (
    CommitUnknownError,
    ConflictError,
    InvalidError,
    LakeletError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from lakelet.iceberg.branches import create_branch
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.commit.outcomes import Outcome, outcome_of
from lakelet.iceberg.commit.snapshot.live_files import LiveFiles
from lakelet.iceberg.commit.snapshot.summary import JOB_ID
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.commit.tables import (
    CatalogHooks,
    begin,
    check_sums,
    files_below,
    new_catalog,
    new_table,
    raising,
    rows_of,
    write,
)
from tests.unit.moving_clock import MovingClock

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    return new_catalog(tmp_path)


@pytest.fixture
def table(catalog: IcebergCatalog) -> IcebergTable:
    return new_table(catalog, COLUMNS, {"day": "identity"})


def row(number: int, day: int = 1) -> dict[str, object]:
    return {"id": number, "day": day}


def ids(table: IcebergTable) -> list[object]:
    return sorted(one["id"] for one in rows_of(table))  # type: ignore[type-var]


def our_files(folder: Path) -> set[str]:
    return {path for path in files_below(folder) if path.endswith((".parquet", ".avro"))}


def test_an_append_retries_until_it_stands(catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(CommitFailedException("another was first"))] * 4
    transaction.finish_insert()
    assert hooks.calls == 5
    assert ids(table) == [1]
    # One data file, one manifest, one list: nothing of the four lost attempts is left.
    assert len(our_files(tmp_path)) == 3


def test_the_metadata_file_of_a_lost_attempt_goes(
    catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(table, [row(1)])
    transaction = begin(table, [row(2)], clock=MovingClock())
    write_metadata = SqlCatalog._write_metadata
    others = [3, 4]

    def another_is_first(metadata: Any, io: Any, metadata_path: str) -> None:
        write_metadata(metadata, io, metadata_path)
        if others and metadata.snapshots[-1].summary[JOB_ID] == transaction._job:
            write(table, [row(others.pop())])

    monkeypatch.setattr(SqlCatalog, "_write_metadata", staticmethod(another_is_first))
    transaction.finish_insert()
    assert ids(table) == [1, 2, 3, 4]
    library = table.reloaded().library
    known = {library.metadata_location, *(entry.metadata_file for entry in library.metadata.metadata_log)}
    found = {path for path in files_below(tmp_path) if path.endswith(".metadata.json")}
    assert found == {path.removeprefix(f"file://{tmp_path}/") for path in known}


def test_the_number_of_retries_is_the_tables(catalog: IcebergCatalog, tmp_path: Path) -> None:
    table = new_table(catalog, COLUMNS, properties={"commit.retry.num-retries": "2"})
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(CommitFailedException("another was first"))] * 9
    with pytest.raises(ConflictError, match="3 attempts"):
        transaction.finish_insert()
    assert hooks.calls == 3
    assert our_files(tmp_path) == set()


def test_waiting_grows_and_ends(catalog: IcebergCatalog) -> None:
    settings = {
        "commit.retry.num-retries": "50",
        "commit.retry.min-wait-ms": "1000",
        "commit.retry.max-wait-ms": "4000",
        "commit.retry.total-timeout-ms": "20000",
    }
    table = new_table(catalog, COLUMNS, properties=settings)
    clock = MovingClock()
    transaction = begin(table, [row(1)], clock=clock)
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(CommitFailedException("another was first"))] * 50
    began = clock.now
    with pytest.raises(ConflictError):
        transaction.finish_insert()
    assert 20_000 <= clock.now - began <= 25_000
    assert 7 <= hooks.calls <= 13


def test_a_lost_response_is_found(catalog: IcebergCatalog, table: IcebergTable) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.after = [raising(CommitStateUnknownException("502"))]
    made = transaction.finish_insert()
    assert made is not None
    assert hooks.calls == 1
    assert made.id == table.reloaded().metadata.current_snapshot_id
    transaction.rollback()
    assert ids(table) == [1]


def test_a_conflict_may_be_ones_own_commit(catalog: IcebergCatalog, table: IcebergTable) -> None:
    """A client below repeats a request whose response was lost, and is told of a conflict with itself."""
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.after = [raising(CommitFailedException("branch has moved"))]
    transaction.finish_insert()
    assert hooks.calls == 1
    assert ids(table) == [1]
    check_sums(table)


def test_silence_leaves_the_files(catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(requests.ConnectionError("reset by peer"))]
    with pytest.raises(CommitUnknownError, match="did not say"):
        transaction.finish_insert()
    transaction.rollback()
    assert len(our_files(tmp_path)) == 3
    # The same insert may be finished later.
    transaction.finish_insert()
    assert ids(table) == [1]


def test_silence_that_was_a_commit_is_found_later(catalog: IcebergCatalog, table: IcebergTable) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    library, load = hooks.library, hooks.library.load_table

    def down() -> None:
        library.load_table = raising(TimeoutError("down"))  # type: ignore[method-assign,assignment]
        raise TimeoutError("no answer")

    hooks.after = [down]
    with pytest.raises(CommitUnknownError, match="does not answer"):
        transaction.finish_insert()
    transaction.rollback()
    library.load_table = load  # type: ignore[method-assign]
    transaction.finish_insert()
    assert ids(table) == [1]
    assert len(table.reloaded().library.snapshots()) == 1


def test_silence_on_a_head_that_moved_is_tried_again(catalog: IcebergCatalog, table: IcebergTable) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)

    def another_then_silence() -> None:
        write(table, [row(2)])
        raise CommitStateUnknownException("504")

    hooks.before = [another_then_silence]
    transaction.finish_insert()
    assert ids(table) == [1, 2]


def test_a_catalog_that_is_down_leaves_no_file(catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    refused = requests.ConnectionError("cannot connect")
    refused.__cause__ = ConnectionRefusedError(111, "Connection refused")
    hooks.before = [raising(refused)]
    with pytest.raises(UnavailableError):
        transaction.finish_insert()
    assert our_files(tmp_path) == set()


def test_a_refusal_is_not_repeated(catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(ForbiddenError("read only"))]
    with pytest.raises(PermissionDeniedError):
        transaction.finish_insert()
    assert hooks.calls == 1
    assert our_files(tmp_path) == set()


def test_an_interrupt_during_the_request_leaves_the_files(
    catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path
) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.after = [raising(KeyboardInterrupt())]
    with pytest.raises(KeyboardInterrupt):
        transaction.finish_insert()
    transaction.rollback()
    assert ids(table) == [1]
    assert len(our_files(tmp_path)) == 3


def test_an_interrupt_before_the_request_leaves_nothing(table: IcebergTable, tmp_path: Path) -> None:
    transaction = begin(table, [row(1)], clock=MovingClock())

    class Interrupted(MovingClock):
        def now_ms(self) -> int:
            raise KeyboardInterrupt

    transaction._clock = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        transaction.finish_insert()
    assert our_files(tmp_path) == set()


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_rows_that_came_into_a_replaced_partition_are_a_conflict(
    catalog: IcebergCatalog, table: IcebergTable, mode: str, tmp_path: Path
) -> None:
    write(table, [row(1, 1), row(2, 2)])
    partition = {"day": 1} if mode == "overwrite" else None
    transaction = begin(table, [row(3, 1)], mode, partition, clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [lambda: _write(table, row(4, 1))]
    with pytest.raises(ConflictError, match="changed while it was overwritten"):
        transaction.finish_insert()
    assert ids(table) == [1, 2, 4]
    assert not [path for path in our_files(tmp_path) if transaction._job in path]


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_rows_that_came_elsewhere_stay(catalog: IcebergCatalog, table: IcebergTable, mode: str) -> None:
    write(table, [row(1, 1), row(2, 2)])
    partition = {"day": 1} if mode == "overwrite" else None
    transaction = begin(table, [row(3, 1)], mode, partition, clock=MovingClock())
    write(table, [row(4, 2)])
    hooks = CatalogHooks(catalog)
    hooks.before = [lambda: _write(table, row(5, 3))]
    transaction.finish_insert()
    assert ids(table) == [2, 3, 4, 5]
    check_sums(table)


def test_a_whole_overwrite_conflicts_with_any_append(table: IcebergTable) -> None:
    write(table, [row(1, 1)])
    transaction = begin(table, [row(3, 1)], "overwrite")
    write(table, [row(4, 2)])
    with pytest.raises(ConflictError):
        transaction.finish_insert()
    assert ids(table) == [1, 4]


def test_an_overwrite_whose_base_expired_is_a_conflict(table: IcebergTable) -> None:
    first = write(table, [row(1, 1)])
    transaction = begin(table, [row(3, 1)], "overwrite_partitions")
    write(table, [row(4, 2)])
    assert first is not None
    base = table.reloaded().metadata.snapshot_by_id(first.id)
    assert base is not None
    table.library.io.delete(base.manifest_list)
    with pytest.raises(ConflictError, match="expired"):
        transaction.finish_insert()


def test_a_head_that_expired_before_its_files_were_read_is_left(
    table: IcebergTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(table, [row(1)])
    transaction = begin(table, [row(2, 5)], clock=MovingClock())
    manifests, others = LiveFiles.manifests, [4, 3]

    def read_late(live: LiveFiles, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
        while others:
            write(table, [row(others.pop())])
            if not others:
                expire_snapshots(table, older_than_ms=4_000_000_000_000, retain_last=1)
        return manifests(live, snapshot)

    monkeypatch.setattr(LiveFiles, "manifests", read_late)
    transaction.finish_insert()
    assert ids(table) == [1, 2, 3, 4]
    check_sums(table)


def test_files_of_a_head_that_are_gone_are_told(table: IcebergTable, tmp_path: Path) -> None:
    write(table, [row(1)])
    transaction = begin(table, [row(2)], clock=MovingClock())
    head = table.reloaded().metadata.current_snapshot()
    assert head is not None
    table.library.io.delete(head.manifest_list)
    with pytest.raises(NotFoundError):
        transaction.finish_insert()
    assert not [path for path in files_below(tmp_path) if transaction._job in path]


def test_metadata_that_went_before_it_was_read(catalog: IcebergCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    table = new_table(catalog, COLUMNS, properties=settings)
    write(table, [row(1)])
    read, others = FromInputFile.table_metadata, [2, 3]

    def read_late(file: Any) -> Any:
        while others:
            write(table, [row(others.pop())])
        return read(file)

    monkeypatch.setattr(FromInputFile, "table_metadata", staticmethod(read_late))
    assert ids(catalog.table("shop.orders")) == [1, 2, 3]


def test_a_number_that_another_branch_took_is_tried_again(catalog: IcebergCatalog, table: IcebergTable) -> None:
    write(table, [row(1)])
    create_branch(table, "dev")
    transaction = begin(table, [row(2)], branch="dev", clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [lambda: _write(table, row(3))]
    transaction.finish_insert()
    assert ids(table) == [1, 3]
    assert len(rows_of(table, "dev")) == 2
    numbers = [one.sequence_number for one in table.reloaded().library.snapshots()]
    assert len(set(numbers)) == 3


def test_a_number_that_a_service_calls_bad_is_tried_again(catalog: IcebergCatalog, table: IcebergTable) -> None:
    write(table, [row(1)])
    create_branch(table, "dev")
    transaction = begin(table, [row(2)], branch="dev", clock=MovingClock())
    hooks = CatalogHooks(catalog)

    def overtaken() -> None:
        write(table, [row(3)])
        raise BadRequestError("sequence number 2 is older than the last one")

    hooks.before = [overtaken]
    transaction.finish_insert()
    assert len(rows_of(table, "dev")) == 2
    # Where nothing came in between, it is the request that is bad.
    other = begin(table, [row(4)], clock=MovingClock())
    hooks.before = [raising(BadRequestError("no"))]
    with pytest.raises(InvalidError):
        other.finish_insert()


def test_a_table_that_was_dropped_is_a_conflict(catalog: IcebergCatalog, table: IcebergTable) -> None:
    transaction = begin(table, [row(2)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [lambda: catalog.drop_table("shop.orders")]
    with pytest.raises(ConflictError, match="dropped"):
        transaction.finish_insert()


def test_a_commit_in_a_table_that_got_another_name_keeps_its_files(
    catalog: IcebergCatalog, table: IcebergTable
) -> None:
    transaction = begin(table, [row(2)], clock=MovingClock())
    hooks = CatalogHooks(catalog)

    def renamed_then_silence() -> None:
        catalog.rename_table("shop.orders", "shop.older")
        raise CommitStateUnknownException("504")

    hooks.after = [renamed_then_silence]
    with pytest.raises(CommitUnknownError, match="its files are left"):
        transaction.finish_insert()
    transaction.rollback()
    assert ids(catalog.table("shop.older")) == [2]


def test_metadata_that_cannot_be_read_is_no_dropped_table(catalog: IcebergCatalog, table: IcebergTable) -> None:
    transaction = begin(table, [row(2)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    library, load = hooks.library, hooks.library.load_table

    def without_metadata() -> None:
        library.load_table = raising(FileNotFoundError("metadata.json"))  # type: ignore[method-assign,assignment]
        raise CommitFailedException("409")

    hooks.after = [without_metadata]
    with pytest.raises(CommitUnknownError, match="does not answer"):
        transaction.finish_insert()
    transaction.rollback()
    library.load_table = load  # type: ignore[method-assign]
    assert ids(table) == [2]


@pytest.mark.parametrize("second", [ForbiddenError("no"), CommitFailedException("409")])
def test_a_request_that_is_still_under_way_keeps_the_files_of_a_second(
    catalog: IcebergCatalog, table: IcebergTable, second: Exception
) -> None:
    write(table, [row(1)])
    transaction = begin(table, [row(2)], clock=MovingClock())
    hooks = CatalogHooks(catalog)
    sent: list[Any] = []
    commit = hooks._commit

    def later(*request: Any) -> None:
        sent.append(request)
        raise CommitStateUnknownException("504") if len(sent) == 1 else second

    hooks._commit = later  # type: ignore[assignment]
    for kind in (CommitUnknownError, LakeletError):
        with pytest.raises(kind):
            transaction.finish_insert()
    transaction.rollback()
    commit(*sent[0])
    assert ids(table) == [1, 2]


def test_a_request_that_cannot_come_any_more_keeps_nothing(
    catalog: IcebergCatalog, table: IcebergTable, tmp_path: Path
) -> None:
    transaction = begin(table, [row(2)], "overwrite", clock=MovingClock())
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(CommitStateUnknownException("504"))]
    with pytest.raises(CommitUnknownError):
        transaction.finish_insert()
    write(table, [row(1)])
    with pytest.raises(ConflictError):
        transaction.finish_insert()
    assert not [path for path in files_below(tmp_path) if transaction._job in path]
    assert ids(table) == [1]


def test_what_errors_say_of_the_outcome(catalog: IcebergCatalog) -> None:
    library = catalog.library
    assert outcome_of(CommitFailedException("x"), library) is Outcome.LOST
    assert outcome_of(CommitStateUnknownException("x"), library) is Outcome.UNKNOWN
    assert outcome_of(ForbiddenError("x"), library) is Outcome.REFUSED
    assert outcome_of(TooManyRequestsError("x"), library) is Outcome.LOST
    # A gateway says so too of a request that it has passed on.
    assert outcome_of(ServiceUnavailableError("x"), library) is Outcome.UNKNOWN
    assert outcome_of(requests.Timeout("x"), library) is Outcome.UNKNOWN
    assert outcome_of(requests.JSONDecodeError("x", "", 0), library) is Outcome.UNKNOWN
    assert outcome_of(ConnectionRefusedError(), library) is Outcome.REFUSED
    # The disk below a SQL catalog fails before the database is asked.
    assert outcome_of(OSError(os.strerror(28)), library) is Outcome.REFUSED


def _write(table: IcebergTable, *rows: dict[str, object]) -> None:
    write(table, list(rows))
