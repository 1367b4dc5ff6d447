"""Warehouses for the crash and fault tests: copied in memory, with a clock and names that repeat, and looked at whole.

`check` holds the invariants every table must keep whatever happened to its writers: it reads what is there by the
store alone, without any decorator, and returns the rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.manifests import live_entries, read_entries, read_manifest_list, snapshot_manifests
from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.snapshots import read_snapshot
from lakelet.commit.metadata.version_ids import latest_id, schema_ids, snapshot_ids
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths, file_number
from lakelet.storage.store import ObjectStore
from tests.crash.keyed_invariants import check_index_files, check_keys
from tests.crash.power_cut import VolatileStore

TABLE = "d.t"
# Of a long history this many snapshots, evenly spread, are looked at file by file.
MOST_CHECKED = 50
START_MS = 1_800_000_000_000
_NAMED = ["_PARTITION", "_BUCKET", "_FILE_NAME", "_FILE_SIZE"]
Rows = list[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class State:
    """Databases, and tables with their rows, columns, options and comments."""

    databases: tuple[str, ...]
    tables: tuple[tuple[str, Rows | None, object, object], ...]


@dataclass(slots=True)
class SteppingClock:
    """A clock that moves a millisecond per look and by each sleep, so that no test waits."""

    now: float = START_MS
    slept: list[float] = field(default_factory=list)

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        self.now += 1
        return int(self.now)

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return self.now / 1000

    def sleep(self, seconds: float) -> None:
        """Notes the wait."""
        self.slept.append(seconds)
        self.now += seconds * 1000


@dataclass(slots=True)
class CountedIds:
    """Names in a row: the same operation gives the same names."""

    prefix: str = "0"
    count: int = 0

    def uuid(self) -> str:
        """The next name."""
        self.count += 1
        return f"{self.prefix}-{self.count:06}"

    def jitter(self) -> float:
        """The middle."""
        return 0.5


def lake_on(store: ObjectStore, ids: str = "0") -> Lake:
    """A lake on a store, with a clock that never waits, and the callbacks of tests."""
    return Lake(store, options={"callbacks.allow": "tests"}, clock=SteppingClock(), ids=CountedIds(ids))


def home_on(store: ObjectStore, name: str = TABLE) -> TableHome:
    """The home of a table, for looking below its facade."""
    return TableHome(
        store, TablePaths.of(*name.split(".")), SteppingClock(), CountedIds("home"), callback_modules=("tests",)
    )


def copied(source: ObjectStore, target: ObjectStore | None = None) -> ObjectStore:
    """A copy of everything a store lists, in memory unless said otherwise."""
    copy = VolatileStore() if target is None else target
    _copy_folder(source, copy, "")
    return copy


def listing(store: ObjectStore) -> dict[str, int]:
    """Every object with its size."""
    return {info.path: info.size for info in store.list("")}


def fingerprint(store: ObjectStore) -> int:
    """The same number for the same folders and objects."""
    objects = [(info.path, store.get(info.path)) for info in store.list("")]
    return hash((tuple(objects), store.list_folder("").folders))


def check(store: ObjectStore, name: str = TABLE) -> Rows | None:
    """The rows of a table that keeps all invariants, sorted; None where there is no table."""
    home = home_on(store, name)
    if not schema_ids(home):
        return None
    assert schema_ids(home) == list(range(len(schema_ids(home)))), "schema versions have gaps"
    schemas = {number: read_schema(home, number) for number in schema_ids(home)}
    assert all(number == schema.id for number, schema in schemas.items())
    numbers = sorted(
        number
        for info in store.list_folder(home.paths.snapshot_folder).files
        if (number := file_number(info.path, "snapshot")) is not None
    )
    assert numbers == list(range(1, len(numbers) + 1)), f"snapshot ids have gaps: {numbers}"
    assert latest_id(home) == (numbers[-1] if numbers else None)
    assert list(snapshot_ids(home))[:1] == ([1] if numbers else [])
    there = listing(store)
    snapshots = [read_snapshot(home, number) for number in numbers]
    assert [snapshot.id for snapshot in snapshots] == numbers
    total = 0
    for snapshot in snapshots:
        assert snapshot.total_record_count == total + (snapshot.delta_record_count or 0), (
            f"snapshot {snapshot.id} counts wrong"
        )
        total = snapshot.total_record_count
    table = lake_on(store).table(name)
    hides_rows = bool(table.schema.primary_keys or table.schema.options.get("deletion-vectors.enabled"))
    for snapshot in [*snapshots[: -1 : 1 + len(snapshots) // MOST_CHECKED], *snapshots[-1:]]:
        _check_files(home, snapshot, there)
        check_index_files(home, snapshot, there)
    check_keys(table.scan())
    rows = rows_in(table.scan().to_arrow())
    assert len(rows) == table.scan().count()
    # The rows of files are more than those of the table where older ones, deletes and marked ones are among them.
    assert len(rows) <= total if hides_rows else len(rows) == total
    for path in there:
        file_name = path.rsplit("/", 1)[-1]
        assert ".tmp" not in file_name, f"a temporary is visible: {path}"
    return rows


def rows_in(table: pa.Table) -> Rows:
    """Rows as tuples, in an order that NULLs and nested values have too."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def prepared(prepare: Callable[[Lake], object]) -> ObjectStore:
    """A new warehouse in memory that `prepare` has filled."""
    store = MemoryStore()
    prepare(lake_on(store, "prepare"))
    return store


def state(store: ObjectStore) -> State:
    """Everything a user can see of a warehouse whose tables keep all invariants."""
    lake = lake_on(store)
    tables: list[tuple[str, Rows | None, object, object]] = []
    for database in lake.databases():
        for name in lake.tables(database):
            schema = lake.table(f"{database}.{name}").schema
            tables.append(
                (
                    f"{database}.{name}",
                    check(store, f"{database}.{name}"),
                    schema.fields,
                    (dict(schema.options), schema.comment),
                )
            )
    return State(tuple(lake.databases()), tuple(tables))


def _check_files(home: TableHome, snapshot: Snapshot, there: Mapping[str, int]) -> None:
    """Everything the snapshot names exists, and its count is right."""
    folders = PartitionFolders(home.paths, read_schema(home, snapshot.schema_id))
    entries = live_entries(home, snapshot_manifests(home, snapshot))
    logged = (
        [] if snapshot.changelog_manifest_list is None else read_manifest_list(home, snapshot.changelog_manifest_list)
    )
    told = read_entries(home, logged)
    assert (snapshot.changelog_record_count or 0) == sum(told.column("_ROW_COUNT").to_pylist())
    for entry in pa.concat_tables([one.select(_NAMED) for one in (entries, told)]).to_pylist():
        path = f"{folders.bucket_folder(entry['_PARTITION'], entry['_BUCKET'])}/{entry['_FILE_NAME']}"
        assert path in there, f"snapshot {snapshot.id} names {path}, which is gone"
        assert there[path] == entry["_FILE_SIZE"]
    assert snapshot.total_record_count == sum(entries.column("_ROW_COUNT").to_pylist())


def _copy_folder(source: ObjectStore, target: ObjectStore, folder: str) -> None:
    inside = source.list_folder(folder)
    if folder:
        target.make_folder(folder)
    for info in inside.files:
        target.put(info.path, source.get(info.path))
    for below in inside.folders:
        _copy_folder(source, target, below)
