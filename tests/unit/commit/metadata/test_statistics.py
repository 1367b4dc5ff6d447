"""Statistics as commits: a file, a snapshot that names it, and snapshots that hand it on."""

from __future__ import annotations

import pytest

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.statistics import commit_statistics, read_statistics
from lakelet.errors import CorruptionError, LakeletError, PermissionDeniedError
from lakelet.model.snapshot import CommitKind
from lakelet.model.table_statistics import ColumnStatistics, TableStatistics
from lakelet.storage.memory import MemoryStore
from tests.crash.operations import rows
from tests.crash.warehouse import TABLE, check, home_on, lake_on, listing

STATISTICS = TableStatistics(1, 0, 2, 100, {"id": ColumnStatistics(0, 2, 1, 2, 0, 8, 8)})


class Sealed(MemoryStore):
    """A store that lets no snapshot in any more, once it is sealed."""

    sealed = False

    def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
        if self.sealed and "/snapshot/" in path:
            raise PermissionDeniedError(f"{path}: read only")
        return super().put_if_absent(path, data)


@pytest.fixture
def store() -> Sealed:
    store = Sealed()
    lake = lake_on(store)
    lake.create_database("d")
    lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")]).write(rows((1, "a"), (2, "b")))
    return store


def test_statistics_are_an_analyze_commit_without_data(store: Sealed) -> None:
    home = home_on(store)
    before = check(store)
    made = commit_statistics(home, latest_schema(home), STATISTICS, "user")
    assert (made.id, made.commit_kind, made.commit_user) == (2, CommitKind.ANALYZE, "user")
    assert (made.delta_record_count, made.total_record_count) == (0, 2)
    assert f"d.db/t/statistics/{made.statistics}" in listing(store)
    assert read_statistics(home, made) == STATISTICS
    assert check(store) == before


def test_later_commits_hand_them_on_until_the_schema_changes(store: Sealed) -> None:
    home = home_on(store)
    made = commit_statistics(home, latest_schema(home), STATISTICS, "user")
    table = lake_on(store, "more").table(TABLE)
    table.write(rows((3, "c")))
    latest = latest_snapshot(home)
    assert latest is not None
    assert (latest.id, latest.commit_kind, latest.statistics) == (3, CommitKind.APPEND, made.statistics)
    table.add_column("x", "INT")
    table.write(rows((4, "c")))
    latest = latest_snapshot(home)
    assert latest is not None
    assert read_statistics(home, latest) is None


def test_a_refused_commit_leaves_no_file(store: Sealed) -> None:
    home = home_on(store)
    before = listing(store)
    store.sealed = True
    with pytest.raises(LakeletError):
        commit_statistics(home, latest_schema(home), STATISTICS, "user")
    assert listing(store) == before


def test_a_missing_file_is_named(store: Sealed) -> None:
    home = home_on(store)
    made = commit_statistics(home, latest_schema(home), STATISTICS, "user")
    store.delete([f"d.db/t/statistics/{made.statistics}"])
    with pytest.raises(CorruptionError, match="statistics/stat-"):
        read_statistics(home, made)
