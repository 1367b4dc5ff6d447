"""A commit to an Iceberg table is stopped at every call of its files and of its catalog: the rows are those of before or of
after, pyiceberg reads all of them, and the next commit succeeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from lakelet.iceberg.branches import create_branch, fast_forward
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.maintenance.data_file_rewrite import rewrite_data_files
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.maintenance.manifest_rewrite import rewrite_manifests
from lakelet.iceberg.maintenance.orphans import remove_orphan_files
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.commit.tables import begin, check_sums, new_catalog, new_table, rows_of, write
from tests.unit.moving_clock import MovingClock

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])
SETTINGS = {"commit.manifest.min-count-to-merge": "2"}


class Stopped(BaseException):
    """The process ends here."""


class Calls:
    """Counts calls, and from one of them on raises at every call: nothing is done any more."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.count = 0
        self.active = False

    def one(self) -> None:
        if not self.active:
            return
        if self.last is not None and self.count >= self.last:
            raise Stopped
        self.count += 1

    @contextmanager
    def stopping_after(self, last: int | None) -> Iterator[None]:
        self.last, self.count, self.active = last, 0, True
        try:
            yield
        finally:
            self.active = False


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls()

    def counted(kind: type, name: str, *, after: bool = False) -> None:
        inner = getattr(kind, name)

        def call(self: Any, *args: Any, **more: Any) -> Any:
            found.one()
            made = inner(self, *args, **more)
            if after:
                found.one()
            return made

        monkeypatch.setattr(kind, name, call)

    counted(PyArrowFile, "create", after=True)
    counted(PyArrowFile, "open")
    counted(PyArrowFileIO, "delete")
    counted(SqlCatalog, "load_table")
    counted(SqlCatalog, "commit_table", after=True)
    return found


def row(number: int, day: int) -> dict[str, object]:
    return {"id": number, "day": day}


def prepared(catalog: IcebergCatalog, name: str) -> IcebergTable:
    table = new_table(catalog, COLUMNS, {"day": "identity"}, name=name, properties=SETTINGS)
    for number in range(2):
        write(table, [row(number, 1), row(10 + number, 2)], clock=MovingClock())
    return table.reloaded()


def appended(table: IcebergTable) -> Callable[[], object]:
    return begin(table, [row(20, 1), row(21, 3)]).finish_insert


def overwritten(table: IcebergTable) -> Callable[[], object]:
    return begin(table, [row(20, 1)], "overwrite").finish_insert


def statically(table: IcebergTable) -> Callable[[], object]:
    return begin(table, [row(20, 1)], "overwrite", {"day": 1}).finish_insert


def dynamically(table: IcebergTable) -> Callable[[], object]:
    return begin(table, [row(20, 1), row(21, 3)], "overwrite_partitions").finish_insert


def branched(table: IcebergTable) -> Callable[[], object]:
    create_branch(table, "dev")
    write(table, [row(20, 1)], branch="dev")
    return lambda: fast_forward(table, "main", "dev")


def compacted(table: IcebergTable) -> Callable[[], object]:
    return lambda: rewrite_data_files(table, min_input_files=2)


def manifests_rewritten(table: IcebergTable) -> Callable[[], object]:
    return lambda: rewrite_manifests(table)


def expired(table: IcebergTable) -> Callable[[], object]:
    write(table, [row(20, 1)], "overwrite_partitions")
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    return lambda: expire_snapshots(table, older_than_ms=now_ms * 2, retain_last=1)


def cleaned(table: IcebergTable) -> Callable[[], object]:
    begin(table, [row(30, 1)])
    now_ms = int(datetime.now(UTC).timestamp() * 1000) + 10_000

    class Later(MovingClock):
        def now_ms(self) -> int:
            return now_ms

    return lambda: remove_orphan_files(table, older_than_ms=now_ms, clock=Later())


KINDS = [
    appended,
    overwritten,
    statically,
    dynamically,
    branched,
    compacted,
    manifests_rewritten,
    expired,
    cleaned,
]


@pytest.mark.parametrize("change", KINDS, ids=lambda kind: kind.__name__)
def test_stopped_at_every_call(
    change: Callable[[IcebergTable], Callable[[], object]], tmp_path: Path, calls: Calls
) -> None:
    catalog = new_catalog(tmp_path)
    whole = prepared(catalog, "shop.whole")
    run = change(whole)
    before = rows_of(whole)
    with calls.stopping_after(None):
        run()
    after, total = rows_of(whole), calls.count
    assert total > 3
    seen = set()
    for last in range(total):
        table = prepared(catalog, f"shop.stopped_{last}")
        run = change(table)
        with calls.stopping_after(last), pytest.raises(Stopped):
            run()
        found = rows_of(table)
        assert found in (before, after), f"stopped at call {last} of {total}"
        seen.add(found == after)
        check_sums(table)
        for snapshot in table.reloaded().library.snapshots() if change in (expired, cleaned) else ():
            table.reloaded().library.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        write(table, [row(99, 9)])
        assert len(rows_of(table)) == len(found) + 1
    # A call before the commit leaves the old rows, one after it the new.
    assert before == after or seen == {True, False}
