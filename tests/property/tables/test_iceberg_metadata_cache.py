"""Random changes of an Iceberg table by several lakes and by pyiceberg against readers with caches: none ever differs from a
reader without one.

The lakes share a folder and its catalog. One listens to changes of its process and is allowed to be stale until then, so that
every change has to be published; the other hears of nothing, as if it was a process of its own, and asks at every query.
pyiceberg's changes are announced to nobody: after these the first is refreshed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lakelet.catalog.lake import Lake
from lakelet.errors import LakeletError
from lakelet.iceberg.branches import create_branch, drop_branch, fast_forward, rollback_to_snapshot
from lakelet.iceberg.maintenance.data_file_rewrite import rewrite_data_files
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.maintenance.manifest_rewrite import rewrite_manifests
from lakelet.iceberg.scan import scan_of
from lakelet.iceberg.table import IcebergTable
from tests.tiers.examples import examples
from tests.unit.iceberg.metadata.cached_lakes import CATALOG, FULL, NAME, create, foreign, opened, uncached

Step = tuple[int, str, int]
PLAIN, STALE, STRICT, FOREIGN = range(4)
WHERE = (None, "dt = 'd1'", "id > 3 AND v < 4", "dt IS NULL OR id IN (1, 7)")


class Lakes:
    """The lakes of one folder: without a cache, stale until an event, and deaf and strict."""

    def __init__(self, folder: Path, *, small: bool) -> None:
        self.folder = folder
        limits = {"cache.max-bytes": "30 kb"} if small else {}
        self.all = [
            uncached(folder),
            opened(folder, {**limits, "cache.staleness": "manual"}, listens=True),
            opened(folder, limits),
        ]
        create(self.all[0])

    def table(self, actor: int) -> IcebergTable:
        return self.all[actor % 3].catalogs.open(CATALOG).table(NAME)


def _values(number: int) -> str:
    return f"({number % 5}, 'd{number % 3}', {number / 2}), ({number % 7 + 5}, NULL, NULL)"


def write(lakes: Lakes, lake: Lake, number: int) -> None:
    columns = ", NULL" * (len(lake.catalogs.open(CATALOG).table(NAME).column_names) - 3)
    lake.sql(f"INSERT INTO {FULL} VALUES {_values(number).replace(')', columns + ')')}")


def write_branch(lakes: Lakes, lake: Lake, number: int) -> None:
    table = lake.catalogs.open(CATALOG).table(NAME)
    if "dev" not in table.branch_names():
        create_branch(table, "dev")
    columns = ", NULL" * (len(table.column_names) - 3)
    lake.sql(f"INSERT INTO {FULL}$branch_dev VALUES {_values(number + 1).replace(')', columns + ')')}")


def delete(lakes: Lakes, lake: Lake, number: int) -> None:
    lake.sql(f"DELETE FROM {FULL} WHERE id = {number}")


def add_column(lakes: Lakes, lake: Lake, number: int) -> None:
    lake.sql(f"ALTER TABLE {FULL} ADD COLUMN c{number} STRING")


def set_property(lakes: Lakes, lake: Lake, number: int) -> None:
    lake.sql(f"ALTER TABLE {FULL} SET TBLPROPERTIES ('shop.note' = '{number}')")


def roll_back(lakes: Lakes, lake: Lake, number: int) -> None:
    table = lake.catalogs.open(CATALOG).table(NAME)
    rollback_to_snapshot(table, table.metadata.snapshots[number % len(table.metadata.snapshots)].snapshot_id)


def forward(lakes: Lakes, lake: Lake, number: int) -> None:
    table = lake.catalogs.open(CATALOG).table(NAME)
    fast_forward(table, "main", "dev")
    drop_branch(table, "dev")


def expire(lakes: Lakes, lake: Lake, number: int) -> None:
    expire_snapshots(lake.catalogs.open(CATALOG).table(NAME), retain_last=number % 2 + 1, older_than_ms=1 << 60)


def rewrite(lakes: Lakes, lake: Lake, number: int) -> None:
    table = lake.catalogs.open(CATALOG).table(NAME)
    if number % 2:
        rewrite_manifests(table)
    else:
        rewrite_data_files(table)


def recreate(lakes: Lakes, lake: Lake, number: int) -> None:
    lake.sql(f"DROP TABLE {FULL}")
    create(lake, "id BIGINT, dt STRING, v DOUBLE" + (", w STRING" if number % 2 else ""))


def by_pyiceberg(lakes: Lakes, change: str, number: int) -> None:
    """The same changes, as far as pyiceberg makes them."""
    catalog = foreign(lakes.folder)
    table = catalog.load_table(NAME)
    snapshots = table.metadata.snapshots
    if change == "add_column":
        with table.update_schema() as update:
            update.rename_column("v", f"v{number}") if number % 2 else update.delete_column("v")
    elif change == "set_property":
        with table.transaction() as transaction:
            transaction.set_properties({"shop.note": f"other {number}"})
    elif change in ("roll_back", "forward") and snapshots:
        chosen = snapshots[number % len(snapshots)].snapshot_id
        table.manage_snapshots().set_current_snapshot(snapshot_id=chosen).commit()
    elif change == "delete":
        table.delete(f"id == {number}")
    elif change == "recreate":
        catalog.drop_table(NAME)
        catalog.create_table(NAME, table.schema(), partition_spec=table.spec())
    else:
        table.append(table.scan(limit=2).to_arrow())


CHANGES: dict[str, Callable[[Lakes, Lake, int], None]] = {
    change.__name__: change
    for change in (
        write,
        write_branch,
        delete,
        add_column,
        set_property,
        roll_back,
        forward,
        expire,
        rewrite,
        recreate,
    )
}
STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["write", "write", *CHANGES]), st.integers(0, 9)), max_size=7
)


def check(lakes: Lakes) -> None:
    expected = lakes.table(PLAIN)
    branches = expected.branch_names() or ["main"]
    for lake in lakes.all[1:]:
        found = lake.catalogs.open(CATALOG).table(NAME, for_queries=True)
        assert found.library.metadata_location == expected.library.metadata_location
        assert found.metadata == expected.metadata
        assert lake.cache.get_table_metadata(FULL).metadata_location == expected.library.metadata_location
        current = lake.cache.get_current_snapshot(FULL)
        assert (None if current is None else current.snapshot_id) == expected.snapshot_id()
        for ref in branches:
            for where in WHERE:
                if where is not None and "v" in where and "v" not in expected.column_names:
                    continue
                plan = scan_of(expected, ref=ref, where=where).plan
                for _ in range(2):
                    assert scan_of(found, ref=ref, where=where).files == plan.files
        query = f"SELECT * FROM {FULL} ORDER BY ALL"
        assert lake.sql(query).to_arrow() == lakes.all[0].sql(query).to_arrow()
        if current is not None:
            parts = lake.cache.get_partitions(FULL)
            assert parts is not None
            files = scan_of(expected).files
            assert sum(one.file_count for one in parts.partitions.values()) == len(files)
            assert sum(one.record_count for one in parts.partitions.values()) == sum(one.row_count for one in files)


@pytest.mark.parametrize("small", [False, True], ids=["roomy", "small"])
@given(steps=STEPS)
@example(steps=[(0, "write", 1), (2, "write", 2), (3, "roll_back", 0), (1, "write", 3), (3, "write", 1)])
@example(steps=[(1, "write", 1), (3, "recreate", 0), (2, "write", 2), (1, "recreate", 1), (2, "add_column", 1)])
@example(steps=[(0, "write", 1), (2, "write_branch", 3), (0, "delete", 1), (1, "forward", 0), (2, "expire", 0)])
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_no_reader_with_a_cache_ever_differs(small: bool, steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lakes = Lakes(Path(folder), small=small)
        check(lakes)
        for actor, change, number in steps:
            # A table may refuse a change in its present state, and half of it may have been made.
            with suppress(LakeletError, ValueError, IndexError, ZeroDivisionError):
                if actor == FOREIGN:
                    by_pyiceberg(lakes, change, number)
                else:
                    CHANGES[change](lakes, lakes.all[actor], number)
            if actor == FOREIGN:
                lakes.all[STALE].sql(f"REFRESH TABLE {FULL}")
            check(lakes)
