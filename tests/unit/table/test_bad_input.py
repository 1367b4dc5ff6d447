"""Everything a caller can get wrong: a clear error of the right kind, and nothing left behind."""

import datetime
import json
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import AlreadyExistsError, CorruptionError, InvalidError, LakeletError, NotFoundError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore

TABLE = "d.t"
ROOT = "d.db/t"
COLUMNS = [
    ("id", "BIGINT NOT NULL"),
    ("small", "TINYINT"),
    ("text", "STRING"),
    ("short", "VARCHAR(3)"),
    ("price", "DECIMAL(5, 2)"),
    ("at", "TIMESTAMP(6)"),
    ("p", "INT"),
    ("r", "ROW<a INT, b STRING>"),
]
Action = Callable[[Lake], object]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    lake = Lake(store)
    lake.create_database("d")
    table = lake.create_table(TABLE, COLUMNS, partitioned_by=["p"])
    table.write(pa.table({"id": [1, 2], "text": ["a", "b"], "p": pa.array([1, None], pa.int32())}))
    table.write(pa.table({"id": [3], "text": ["c"], "p": pa.array([1], pa.int32())}))
    return store


def contents(store: MemoryStore) -> dict[str, bytes]:
    return {info.path: store.get(info.path) for info in store.list("")}


def table_does(action: Callable[[Table], object]) -> Action:
    return lambda lake: action(lake.table(TABLE))


def written(**columns: object) -> Action:
    return table_does(lambda table: table.write(pa.table({"id": pa.array([4], pa.int64()), **columns})))


def created(columns: object = (("id", "INT"),), name: str = "d.new", **arguments: object) -> Action:
    return lambda lake: lake.create_table(name, columns, **arguments)  # type: ignore[arg-type]


def streamed() -> pa.RecordBatchReader:
    """Good rows first, then one that violates NOT NULL: files have been written by then."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.int32())])
    good = pa.record_batch([pa.array([4, 5], pa.int64()), pa.array([1, 2], pa.int32())], schema=schema)
    bad = pa.record_batch([pa.array([6, None], pa.int64()), pa.array([1, 2], pa.int32())], schema=schema)
    return pa.RecordBatchReader.from_batches(schema, iter([good, bad]))


def failing_reader() -> pa.RecordBatchReader:
    schema = pa.schema([("id", pa.int64()), ("p", pa.int32())])

    def batches():  # type: ignore[no-untyped-def]
        yield pa.record_batch([pa.array([4], pa.int64()), pa.array([1], pa.int32())], schema=schema)
        raise InvalidError("the source broke")

    return pa.RecordBatchReader.from_batches(schema, batches())


REFUSED: dict[str, tuple[Action, type[LakeletError], str]] = {
    # Options and types.
    "unknown option": (created(options={"target-file-sizes": "1 mb"}), InvalidError, "target-file-size"),
    "unknown option set": (
        table_does(lambda t: t.set_options({"manifest.fromat": "json"})),
        InvalidError,
        "manifest.format",
    ),
    "option of another type": (created(options={"target-file-size": "many"}), InvalidError, "target-file-size"),
    "option value set": (
        table_does(lambda t: t.set_options({"manifest.format": "xml"})),
        InvalidError,
        "manifest.format",
    ),
    "option that may not change": (table_does(lambda t: t.set_options({"bucket": "4"})), InvalidError, "bucket"),
    "unknown type": (created([("id", "NUMBER")]), InvalidError, "NUMBER"),
    "half a type": (created([("id", "DECIMAL(5,")]), InvalidError, "DECIMAL"),
    "type out of bounds": (created([("id", "DECIMAL(40, 2)")]), InvalidError, "40"),
    "arrow type without a counterpart": (created(pa.schema([("id", pa.duration("s"))])), InvalidError, "id"),
    "no columns": (created([]), InvalidError, "."),
    "column twice": (created([("id", "INT"), ("id", "INT")]), InvalidError, "id"),
    "partition column missing": (created(partitioned_by=["x"]), InvalidError, "x"),
    "primary key missing": (created(primary_key=["x"]), InvalidError, "x"),
    "default of another type": (table_does(lambda t: t.add_column("c", "INT", default="many")), InvalidError, "many"),
    # Names.
    "name without database": (created(name="new"), InvalidError, "database.table"),
    "name with three parts": (created(name="d.a.b"), InvalidError, "database.table"),
    "name that climbs": (created(name="d./../x"), InvalidError, "."),
    "name with a slash": (created(name="d.a/b"), InvalidError, "a/b"),
    "name with a backslash": (created(name="d.a\\b"), InvalidError, "."),
    "name with NUL": (created(name="d.a\0b"), InvalidError, "."),
    "empty name": (created(name="d."), InvalidError, "."),
    "system table": (created(name="d.t$files"), InvalidError, "files"),
    "blank name": (created(name="d. "), InvalidError, "."),
    "very long name": (created(name="d." + "x" * 300), InvalidError, "."),
    "database that climbs": (lambda lake: lake.create_database("../x"), InvalidError, r"\.\./x"),
    "database of dots": (lambda lake: lake.create_database(".."), InvalidError, "."),
    "opened name that climbs": (lambda lake: lake.table("d.../../x"), InvalidError, "."),
    "branch that climbs": (table_does(lambda t: t.scan(branch="../../x")), InvalidError, "branch"),
    "tag that climbs": (table_does(lambda t: t.scan(tag="../../x")), InvalidError, "tag"),
    "renamed to a path": (lambda lake: lake.rename_table(TABLE, "d.a/b"), InvalidError, "."),
    # Values that are no names, lists or mappings.
    **{
        f"{what}: {value!r}": (action(value), InvalidError, "expected")
        for value in (None, 5, b"d.t", ["d.t"])
        for what, action in {
            "table name": lambda value: lambda lake: lake.table(value),
            "asked table name": lambda value: lambda lake: lake.table_exists(value),
            "new table name": lambda value: created(name=value),
            "new name": lambda value: lambda lake: lake.rename_table(TABLE, value),
            "dropped name": lambda value: lambda lake: lake.drop_table(value),
            "database name": lambda value: lambda lake: lake.create_database(value),
        }.items()
    },
    "primary key that is a number": (created(primary_key=5), InvalidError, "name of a column or a list"),
    "partition keys that are a number": (created(partitioned_by=5), InvalidError, "name of a column or a list"),
    "options that are a text": (created(options="bucket=4"), InvalidError, "mapping"),
    "snapshots to keep that are a text": (
        table_does(lambda t: t.expire_snapshots(retain_max="many")),  # type: ignore[arg-type]
        InvalidError,
        "retain_max 'many'",
    ),
    # What is not there, and what is.
    "no such database": (created(name="nope.t"), NotFoundError, "nope"),
    "no such table": (lambda lake: lake.table("d.nope"), NotFoundError, r"d\.nope"),
    "dropped table": (lambda lake: lake.drop_table("d.nope"), NotFoundError, r"d\.nope"),
    "renamed table": (lambda lake: lake.rename_table("d.nope", "d.x"), NotFoundError, r"d\.nope"),
    "table that exists": (created(name=TABLE), AlreadyExistsError, r"d\.t"),
    "database that exists": (lambda lake: lake.create_database("d"), AlreadyExistsError, "'d'"),
    "renamed onto itself": (lambda lake: lake.rename_table(TABLE, TABLE), AlreadyExistsError, r"d\.t"),
    "database with tables": (lambda lake: lake.drop_database("d"), InvalidError, "cascade"),
    "no such snapshot": (table_does(lambda t: t.scan(version=99)), NotFoundError, "1 to 2"),
    "no such version": (table_does(lambda t: t.scan(version="eod")), NotFoundError, "eod"),
    "no such tag": (table_does(lambda t: t.scan(tag="eod")), NotFoundError, "eod"),
    "no such branch": (table_does(lambda t: t.scan(branch="dev")), NotFoundError, "dev"),
    "before the first snapshot": (table_does(lambda t: t.scan(timestamp="1999-01-01")), NotFoundError, "oldest"),
    "no timestamp": (table_does(lambda t: t.scan(timestamp="yesterday")), InvalidError, "yesterday"),
    "two versions": (table_does(lambda t: t.scan(version=1, tag="eod")), InvalidError, "version"),
    # Rows.
    "unknown column": (written(nope=["x"]), InvalidError, "nope"),
    "column missing": (table_does(lambda t: t.write(pa.table({"text": ["x"]}))), InvalidError, "id"),
    "column given twice": (
        table_does(lambda t: t.write(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]))),
        InvalidError,
        "id",
    ),
    "wrong type": (written(text=pa.array([[1]])), InvalidError, "text"),
    "text for a number": (written(small=["x"]), InvalidError, "small"),
    "out of range": (written(small=pa.array([300], pa.int64())), InvalidError, "small"),
    "out of range of the partition": (written(p=pa.array([2**40], pa.int64())), InvalidError, "p"),
    "fraction for an integer": (written(small=pa.array([1.5])), InvalidError, "small"),
    "too long": (written(short=["long text"]), InvalidError, "short"),
    "decimal out of range": (written(price=[Decimal("12345.67")]), InvalidError, "price"),
    "timestamp out of range": (
        written(at=pa.array([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)], pa.timestamp("us", "UTC"))),
        InvalidError,
        "at",
    ),
    "unknown nested column": (written(r=[{"a": 1, "nope": 2}]), InvalidError, "nope"),
    "NULL where it may not be": (
        table_does(lambda t: t.write(pa.table({"id": pa.array([1, None], pa.int64())}))),
        InvalidError,
        "id",
    ),
    "NULL in a later batch": (table_does(lambda t: t.write(streamed())), InvalidError, "id"),
    "source that breaks": (table_does(lambda t: t.write(failing_reader())), LakeletError, "the source broke"),
    "no rows at all": (table_does(lambda t: t.write("rows")), InvalidError, "."),
    "unknown mode": (table_does(lambda t: t.write(pa.table({"id": [1]}), mode="upsert")), InvalidError, "upsert"),
    "partition of an append": (
        table_does(lambda t: t.write(pa.table({"id": [1]}), partition={"p": 1})),
        InvalidError,
        "partition",
    ),
    "partition by another column": (
        table_does(lambda t: t.write(pa.table({"id": [1]}), mode="overwrite", partition={"text": "a"})),
        InvalidError,
        "text",
    ),
    "partition of another type": (
        table_does(lambda t: t.write(pa.table({"id": [1]}), mode="overwrite", partition={"p": "x"})),
        InvalidError,
        "p",
    ),
    "rows of another partition": (
        table_does(
            lambda t: t.write(
                pa.table({"id": [1], "p": pa.array([2], pa.int32())}), mode="overwrite", partition={"p": 1}
            )
        ),
        InvalidError,
        "p=2",
    ),
    # Reads and deletes.
    "column that is not there": (table_does(lambda t: t.scan(columns=["nope"])), NotFoundError, "nope"),
    "no column": (table_does(lambda t: t.scan(columns=[])), InvalidError, "column"),
    "negative limit": (table_does(lambda t: t.scan(limit=-1)), InvalidError, "-1"),
    "predicate that does not parse": (table_does(lambda t: t.scan(where="id = = 1")), InvalidError, "."),
    "predicate on no column": (table_does(lambda t: t.scan(where="nope = 1")), LakeletError, "nope"),
    "delete that does not parse": (table_does(lambda t: t.delete(where="id = ")), InvalidError, "."),
    "delete on no column": (table_does(lambda t: t.delete(where="nope = 1")), LakeletError, "nope"),
    "delete on no column by expression": (
        table_does(lambda t: t.delete(where=pc.field("nope") == 1)),
        LakeletError,
        "nope",
    ),
    "changes backwards": (table_does(lambda t: t.changes(2, 1)), InvalidError, "2"),
    "changes past the end": (table_does(lambda t: t.changes(1, 9)), NotFoundError, "3"),
    # Schema changes.
    "column that exists": (table_does(lambda t: t.add_column("text", "INT")), AlreadyExistsError, "text"),
    "column that may not be NULL": (table_does(lambda t: t.add_column("c", "INT NOT NULL")), InvalidError, "c"),
    "after no column": (table_does(lambda t: t.add_column("c", "INT", after="nope")), NotFoundError, "nope"),
    "dropped partition key": (table_does(lambda t: t.drop_column("p")), InvalidError, "p"),
    "renamed partition key": (table_does(lambda t: t.rename_column("p", "q")), InvalidError, "p"),
    "widened partition key": (table_does(lambda t: t.change_type("p", "BIGINT")), InvalidError, "p"),
    "narrowed": (table_does(lambda t: t.change_type("id", "INT NOT NULL")), InvalidError, "id"),
    "made NOT NULL": (table_does(lambda t: t.change_nullability("text", nullable=False)), InvalidError, "text"),
    "renamed to one that exists": (table_does(lambda t: t.rename_column("text", "id")), AlreadyExistsError, "id"),
    "no such column to rename": (table_does(lambda t: t.rename_column("nope", "x")), NotFoundError, "nope"),
    "no such column to drop": (table_does(lambda t: t.drop_column("nope")), NotFoundError, "nope"),
    "no such nested column": (table_does(lambda t: t.drop_column("r.nope")), NotFoundError, "nope"),
    "inside what is no row": (table_does(lambda t: t.add_column("text.x", "INT")), NotFoundError, "text"),
    "all nested columns": (table_does(lambda t: (t.drop_column("r.a"), t.drop_column("r.b"))), InvalidError, "r"),
    "moved behind itself": (table_does(lambda t: t.move_column("id", after="id")), InvalidError, "id"),
    "moved nowhere": (table_does(lambda t: t.move_column("id")), InvalidError, "id"),
}
CHANGES_ONCE = {"all nested columns"}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_and_leaves_nothing(store: MemoryStore, case: str) -> None:
    action, kind, message = REFUSED[case]
    before = contents(store)
    with pytest.raises(kind, match=message) as raised:
        action(Lake(store))
    assert str(raised.value)
    after = contents(store)
    if case not in CHANGES_ONCE:
        assert sorted(after) == sorted(before)
        assert after == before


# ---------------------------------------------------------------- broken files


def only(store: MemoryStore, part: str, *, last: bool = False) -> str:
    paths = [info.path for info in store.list(ROOT) if part in info.path]
    return paths[-1 if last else 0]


def live_data_file(store: MemoryStore) -> str:
    return Lake(store).table(TABLE).files()[0][0]


def referenced(store: MemoryStore, member: str) -> str:
    return f"{ROOT}/manifest/{json.loads(store.get(f'{ROOT}/snapshot/snapshot-2'))[member]}"


def manifest(store: MemoryStore) -> str:
    return next(info.path for info in store.list(f"{ROOT}/manifest") if "manifest-list" not in info.path)


FILES: dict[str, Callable[[MemoryStore], str]] = {
    "schema": lambda store: f"{ROOT}/schema/schema-0",
    "snapshot": lambda store: f"{ROOT}/snapshot/snapshot-2",
    "base manifest list": lambda store: referenced(store, "baseManifestList"),
    "delta manifest list": lambda store: referenced(store, "deltaManifestList"),
    "manifest": manifest,
    "data file": live_data_file,
}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "cut by one": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"not what it should be",
    "json of another kind": lambda data: b"[1, 2]",
    "empty json": lambda data: b"{}",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_named(store: MemoryStore, file: str, damage: str) -> None:
    path = FILES[file](store)
    store.put(path, DAMAGES[damage](store.get(path)))
    with pytest.raises(CorruptionError) as raised:
        Lake(store).table(TABLE).scan().to_arrow()
    assert path in str(raised.value)


@pytest.mark.parametrize("damage", ["empty", "half", "text"])
@pytest.mark.parametrize("file", [name for name in FILES if name not in ("data file", "manifest")])
def test_a_commit_on_a_damaged_table_leaves_nothing(store: MemoryStore, file: str, damage: str) -> None:
    path = FILES[file](store)
    store.put(path, DAMAGES[damage](store.get(path)))
    before = contents(store)
    with pytest.raises(CorruptionError) as raised:
        Lake(store).table(TABLE).write(pa.table({"id": [9]}))
    assert path in str(raised.value)
    assert contents(store) == before


@pytest.mark.parametrize("file", [name for name in FILES if name not in ("schema", "snapshot")])
def test_a_missing_file_is_named(store: MemoryStore, file: str) -> None:
    path = FILES[file](store)
    store.delete([path])
    with pytest.raises((CorruptionError, NotFoundError)) as raised:
        Lake(store).table(TABLE).scan().to_arrow()
    assert path in str(raised.value)


@pytest.mark.parametrize("damage", ["half", "zeros", "text"])
def test_a_delete_over_a_damaged_data_file_leaves_nothing(store: MemoryStore, damage: str) -> None:
    path = live_data_file(store)
    store.put(path, DAMAGES[damage](store.get(path)))
    before = contents(store)
    with pytest.raises(CorruptionError) as raised:
        Lake(store).table(TABLE).delete(where="id % 2 = 1 AND p = 1")
    assert path in str(raised.value)
    assert contents(store) == before


def test_a_path_that_is_not_a_table(store: MemoryStore) -> None:
    store.put("d.db/x/data.csv", b"1,2")
    lake = Lake(store)
    with pytest.raises(NotFoundError, match=r"d\.x"):
        lake.table("d.x")
    assert lake.tables("d") == ["t"]
    assert not lake.table_exists("d.x")


def test_snapshots_of_another_table_are_not_taken_over(store: MemoryStore) -> None:
    store.delete([f"{ROOT}/schema/schema-0"])
    before = contents(store)
    with pytest.raises(InvalidError, match="left over"):
        Lake(store).create_table(TABLE, COLUMNS)
    assert contents(store) == before


@pytest.mark.parametrize(
    ("path", "member"), [(f"{ROOT}/schema/schema-0", "version"), (f"{ROOT}/snapshot/snapshot-2", "version")]
)
def test_a_newer_format_version_is_refused(store: MemoryStore, path: str, member: str) -> None:
    value = json.loads(store.get(path))
    value[member] = 99
    store.put(path, json.dumps(value).encode())
    before = contents(store)
    for action in (lambda t: t.scan().to_arrow(), lambda t: t.write(pa.table({"id": [9]}))):
        with pytest.raises(InvalidError, match=r"99.*newer") as raised:
            action(Lake(store).table(TABLE))
        assert path in str(raised.value)
    assert contents(store) == before


def test_files_written_before_the_bad_row_are_removed(store: MemoryStore) -> None:
    counting = CountingStore(store)
    table = Lake(counting).table(TABLE)
    table.set_options({"target-file-size": "1 b", "file.block-size": "1 b"})
    before = contents(store)
    counting.reset()
    with pytest.raises(InvalidError, match="id"):
        table.write(streamed())
    assert counting.counts()["close"] > 0
    assert contents(store) == before
