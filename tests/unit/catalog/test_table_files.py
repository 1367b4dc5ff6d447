"""The files by which a table begins and ends."""

import pytest

from lakelet.catalog.lake import Lake
from lakelet.catalog.table_files import make_table, remove_table
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import AlreadyExistsError, InvalidError, UnavailableError
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from lakelet.testing.instrumented_stores import CountingStore, FailingStore
from tests.unit.events.told import told


def made(store: MemoryStore) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    return lake.create_table("d.t", [("id", "BIGINT")])


def test_one_that_is_there_is_neither_made_again_nor_told_of() -> None:
    table = made(MemoryStore())

    def run() -> None:
        with pytest.raises(AlreadyExistsError):
            make_table(table.home, table.schema)

    assert told(run) == []


def test_what_is_left_of_another_table_is_in_the_way() -> None:
    table = made(MemoryStore())
    table.write([{"id": 1}])
    schema = table.schema
    table.home.store.delete([table.home.paths.schema(0)])
    with pytest.raises(InvalidError, match="left over from another table"):
        make_table(table.home, schema)


def test_snapshots_go_first_and_schemas_last() -> None:
    store = CountingStore(MemoryStore())
    table = Lake(store).table(made(store).name)  # type: ignore[arg-type]
    table.write([{"id": 1}])
    store.reset()
    remove_table(table.home)
    gone = [path for call, path in store.log if call == "delete_folder"]
    assert gone[0].endswith("/snapshot")
    assert gone[-1] == table.home.paths.root
    assert not any(path.endswith("/schema") for path in gone)


def test_a_drop_that_stops_leaves_a_table_and_tells_that_nobody_knows() -> None:
    store = MemoryStore()
    made(store).write([{"id": 1}])
    failing = FailingStore(store, fail_at=2, error=UnavailableError("no"), only=lambda call, _: call == "delete_folder")
    table = Lake(failing).table("d.t")

    def run() -> None:
        with pytest.raises(UnavailableError):
            remove_table(table.home)

    assert told(run) == [("StateUnknown", {"operation": "drop"})]
    assert schema_ids(table.home) == [0]
