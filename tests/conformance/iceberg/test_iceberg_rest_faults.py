"""Commits to Iceberg's own REST catalog that go wrong on the way: refused, carried out without an answer, carried out later, or
cut off by the end of the server. No row is ever there twice, no file of a committed snapshot is removed, and none of a failed
commit is left."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakelet.clock import SystemClock
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
from lakelet.iceberg.transaction import IcebergTransaction
from tests.conformance.iceberg_rest.client import RestServer
from tests.unit.iceberg.commit.tables import (
    CatalogHooks,
    begin,
    check_sums,
    new_table,
    rows_of,
    set_partitions,
    write,
)

COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.int32())])
_numbers = itertools.count()


class ImpatientClock(SystemClock):
    """The time of this machine, which the server compares with its own, and no waiting."""

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0


class Shop:
    """A table of its own with the row 0, and the files of it."""

    def __init__(self, server: RestServer) -> None:
        self.server = server
        self.catalog = opened(server)
        self.name = f"faults.t{next(_numbers)}"
        self.catalog.create_namespace("faults", if_not_exists=True)
        self.table = new_table(self.catalog, COLUMNS, {"day": "identity"}, name=self.name)
        write(self.table, [{"id": 0, "day": 0}])
        server.seen()

    def insert(self, *ids: int, mode: str = "append", day: int = 1) -> IcebergTransaction:
        """Files that are written and not committed."""
        return begin(self.table, [{"id": one, "day": day} for one in ids], mode, clock=ImpatientClock())

    def ids(self, branch: str | None = None) -> list[object]:
        return sorted(one["id"] for one in rows_of(self.table, branch))  # type: ignore[type-var]

    def snapshots(self) -> int:
        return len(self.table.reloaded().metadata.snapshots)

    def orphans(self) -> set[str]:
        """Data files, manifests and lists of them that no snapshot has."""
        library = self.table.reloaded().library
        known: set[str] = set()
        for snapshot in library.metadata.snapshots:
            known.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(library.io):
                known.add(manifest.manifest_path)
                known |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(library.io)}
        folder = self.server.folder.joinpath(*self.name.split("."))
        there = {f"file://{path}" for path in folder.rglob("*") if path.suffix in (".parquet", ".avro")}
        assert not known - there, "files of snapshots are gone"
        return there - known


def opened(server: RestServer, **properties: str) -> IcebergCatalog:
    return IcebergCatalog("prod", {"type": "rest", "uri": server.uri, **properties})


@pytest.fixture
def shop(iceberg_rest: RestServer) -> Shop:
    return Shop(iceberg_rest)


@pytest.fixture
def mortal(iceberg_rest: RestServer) -> Iterator[Shop]:
    """A shop whose server may end; it is there again afterwards."""
    yield Shop(iceberg_rest)
    iceberg_rest.start()


# ---------------------------------------------------------------- carried out, and the answer is lost


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *(("after", status) for status in (400, 401, 403, 404, 408, 409, 419, 422, 429, 500, 501, 502, 503, 504)),
        ("cut-after", 0),
        ("garbled", 200),
        ("garbled", 502),
    ],
)
def test_a_commit_whose_answer_is_lost_stands_once(shop: Shop, kind: str, status: int) -> None:
    shop.server.fault(kind, status)
    made = shop.insert(1, 2).finish_insert()
    assert made is not None
    assert made.added_rows == 2
    assert made.id == shop.table.reloaded().snapshot_id()
    assert shop.ids() == [0, 1, 2]
    assert shop.snapshots() == 2
    assert not shop.orphans()
    check_sums(shop.table)


def test_a_commit_whose_answer_does_not_come(iceberg_rest: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.iceberg.trust.rest_catalog._TIMEOUT_SECONDS", (5.0, 1.0))
    shop = Shop(iceberg_rest)
    shop.server.fault("silent")
    assert shop.insert(1).finish_insert() is not None
    assert shop.ids() == [0, 1]
    assert shop.snapshots() == 2
    assert not shop.orphans()


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_an_overwrite_whose_answer_is_lost_stands_once(shop: Shop, mode: str) -> None:
    shop.server.fault("after", 500)
    made = shop.insert(1, mode=mode, day=0).finish_insert()
    assert made is not None
    assert made.removed_files == 1
    assert shop.ids() == [1]
    assert shop.snapshots() == 2
    assert not shop.orphans()


def test_a_lost_answer_and_a_rival_before_the_look(shop: Shop) -> None:
    other = opened(shop.server).table(shop.name)
    hooks = CatalogHooks(shop.catalog)

    def rival() -> None:
        write(other, [{"id": 9, "day": 1}])
        raise ConnectionResetError("cut")

    hooks.after = [rival]
    made = shop.insert(1).finish_insert()
    assert made is not None
    assert shop.ids() == [0, 1, 9]
    assert shop.snapshots() == 3
    assert not shop.orphans()


# ---------------------------------------------------------------- not carried out


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, InvalidError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (405, InvalidError),
        (413, InvalidError),
        (422, InvalidError),
        (501, InvalidError),
    ],
)
def test_a_refused_commit_leaves_no_file(shop: Shop, status: int, expected: type[LakeletError]) -> None:
    shop.server.fault("before", status)
    with pytest.raises(expected, match=f"prod.{shop.name}: .*asked for by the test") as raised:
        shop.insert(1).finish_insert()
    assert "\n" not in str(raised.value)
    assert shop.ids() == [0]
    assert not shop.orphans()


@pytest.mark.parametrize("status", [401, 419])
def test_a_caller_who_is_refused_twice(shop: Shop, status: int) -> None:
    # pyiceberg itself tries once more, with another token if it can get one.
    shop.server.fault("before", status)
    assert shop.insert(1).finish_insert() is not None
    shop.server.fault("before", status, times=2)
    with pytest.raises(PermissionDeniedError):
        shop.insert(2).finish_insert()
    assert shop.ids() == [0, 1]
    assert not shop.orphans()


@pytest.mark.parametrize("status", [409, 429])
def test_lost_attempts_are_made_again(shop: Shop, status: int) -> None:
    shop.server.fault("before", status, times=3)
    assert shop.insert(1).finish_insert() is not None
    assert shop.server.seen().count("UPDATE_TABLE") == 4
    assert shop.ids() == [0, 1]
    assert not shop.orphans()


def test_endless_conflicts_end(shop: Shop) -> None:
    shop.server.fault("before", 409, times=11)
    with pytest.raises(ConflictError, match="others were first at each of 11 attempts"):
        shop.insert(1).finish_insert()
    assert shop.ids() == [0]
    assert not shop.orphans()


@pytest.mark.parametrize(
    ("kind", "status"), [("before", 500), ("before", 502), ("before", 503), ("before", 408), ("cut-before", 0)]
)
def test_an_unknown_outcome_keeps_its_files(shop: Shop, kind: str, status: int) -> None:
    insert = shop.insert(1)
    shop.server.fault(kind, status)
    with pytest.raises(CommitUnknownError, match=f"prod.{shop.name}: .*its files are left"):
        insert.finish_insert()
    insert.rollback()
    assert shop.ids() == [0]
    assert len(shop.orphans()) == 3, "a data file, a manifest and a list"
    # Asked again it is sent again, for nobody has carried it out.
    assert insert.finish_insert() is not None
    assert shop.ids() == [0, 1]
    assert shop.snapshots() == 2
    assert not {path for path in shop.orphans() if path.endswith(".parquet")}


def test_a_request_that_is_carried_out_later(shop: Shop) -> None:
    insert = shop.insert(1)
    shop.server.fault("later", 503)
    with pytest.raises(CommitUnknownError):
        insert.finish_insert()
    shop.server.release()
    assert shop.ids() == [0, 1]
    assert not shop.orphans()
    made = insert.finish_insert()
    assert made is not None
    assert made.id == shop.table.reloaded().snapshot_id()
    assert shop.snapshots() == 2


def test_a_request_that_comes_too_late(shop: Shop) -> None:
    """Both requests are for the same head: the catalog takes one of them."""
    insert = shop.insert(1)
    shop.server.fault("later", 504)
    with pytest.raises(CommitUnknownError):
        insert.finish_insert()
    assert insert.finish_insert() is not None
    shop.server.release()
    assert shop.ids() == [0, 1]
    assert shop.snapshots() == 2


# ---------------------------------------------------------------- the server ends


def test_the_server_ends_after_a_commit(mortal: Shop) -> None:
    insert = mortal.insert(1)
    mortal.server.fault("die-after")
    with pytest.raises(CommitUnknownError, match="the catalog does not answer; its files are left"):
        insert.finish_insert()
    mortal.server.start_again()
    assert mortal.ids() == [0, 1]
    assert not mortal.orphans()
    assert insert.finish_insert() is not None
    assert mortal.snapshots() == 2


def test_the_server_ends_before_a_commit(mortal: Shop) -> None:
    insert = mortal.insert(1)
    mortal.server.fault("die-before")
    with pytest.raises(CommitUnknownError):
        insert.finish_insert()
    mortal.server.start_again()
    assert mortal.ids() == [0]
    assert insert.finish_insert() is not None
    assert mortal.ids() == [0, 1]


def test_no_server(mortal: Shop) -> None:
    waiting, sent = mortal.insert(1), mortal.insert(2)
    hooks = CatalogHooks(mortal.catalog)
    hooks.before = [mortal.server.stop]
    with pytest.raises(UnavailableError, match=f"table prod.{mortal.name}: the catalog does not answer"):
        sent.finish_insert()
    with pytest.raises(UnavailableError):
        waiting.finish_insert()
    mortal.server.start_again()
    assert mortal.ids() == [0]
    assert not mortal.orphans()


# ---------------------------------------------------------------- rivals


def test_a_conflicting_overwrite_is_refused(shop: Shop) -> None:
    insert = shop.insert(5, mode="overwrite_partitions", day=0)
    write(shop.table, [{"id": 1, "day": 0}])
    with pytest.raises(ConflictError, match="changed while it was overwritten"):
        insert.finish_insert()
    assert shop.ids() == [0, 1]
    assert not shop.orphans()


def test_an_overwrite_beside_a_rival_stands(shop: Shop) -> None:
    insert = shop.insert(5, mode="overwrite_partitions", day=0)
    write(shop.table, [{"id": 1, "day": 3}])
    assert insert.finish_insert() is not None
    assert shop.ids() == [1, 5]
    assert not shop.orphans()


@pytest.mark.parametrize("in_flight", [False, True], ids=["before", "in flight"])
def test_a_spec_that_changes(shop: Shop, in_flight: bool) -> None:
    insert = shop.insert(1)
    other = opened(shop.server).table(shop.name)
    hooks = CatalogHooks(shop.catalog)
    if in_flight:
        # After the last look at the table: it is the server that refuses.
        hooks.before = [lambda: set_partitions(other, {"id": "bucket[4]"})]
    else:
        set_partitions(other, {"id": "bucket[4]"})
    with pytest.raises(ConflictError, match="rows were written by partition spec 1, and the table's is 2 by now"):
        insert.finish_insert()
    assert hooks.calls == int(in_flight)
    assert shop.ids() == [0]
    assert not shop.orphans()


@pytest.mark.parametrize("makes_anew", [False, True])
def test_a_table_that_goes_in_flight(shop: Shop, makes_anew: bool) -> None:
    insert = shop.insert(1)
    hooks = CatalogHooks(shop.catalog)

    def go() -> None:
        other = opened(shop.server)
        other.drop_table(shop.name)
        if makes_anew:
            new_table(other, COLUMNS, name=shop.name)

    hooks.before = [go]
    with pytest.raises(ConflictError, match=r"was dropped (and made anew )?meanwhile"):
        insert.finish_insert()
    folder = shop.server.folder.joinpath(*shop.name.split("."))
    assert len(list(folder.rglob("*.parquet"))) == 1, "only that of the row before"


def test_branches_at_once_take_numbers_of_each_other(shop: Shop) -> None:
    """A sequence number that another branch took meanwhile is a bad request to the server, and only that."""
    create_branch(shop.table, "dev")
    insert = begin(shop.table, [{"id": 1, "day": 1}], branch="dev", clock=ImpatientClock())
    other = opened(shop.server).table(shop.name)
    hooks = CatalogHooks(shop.catalog)

    def rival() -> None:
        write(other, [{"id": 2, "day": 1}])

    hooks.before = [rival]
    assert insert.finish_insert() is not None
    assert hooks.calls == 2
    assert shop.ids() == [0, 2]
    assert shop.ids("dev") == [0, 1]
    assert not shop.orphans()


def test_a_commit_id_is_applied_once(shop: Shop) -> None:
    for _ in range(2):
        insert = begin(shop.table, [{"id": 1, "day": 1}], commit_id="job-7", clock=ImpatientClock())
        shop.server.fault("after", 503)
        assert insert.finish_insert() is not None
    assert shop.ids() == [0, 1]
    assert not shop.orphans()
