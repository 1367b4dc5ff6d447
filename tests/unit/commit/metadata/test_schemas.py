"""Schema versions: nobody's change is lost, and a change that changes nothing writes nothing."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelet.commit.metadata.schemas import change_schema, create_first_schema, latest_schema
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import AlreadyExistsError, CommitUnknownError, InvalidError, NotFoundError, UnavailableError
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.schema_change.evolution import add_column, change_comment
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.storage.home import TableHome
from lakelet.storage.memory import MemoryStore
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import FailingStore
from tests.crash.warehouse import SteppingClock


def home_on(store: ObjectStore) -> TableHome:
    return TableHome(store, TablePaths.of("d", "t"), SteppingClock())


def first() -> TableSchema:
    return new_schema(
        [Field(-1, "id", parse_type("INT"))], partition_keys=(), primary_keys=(), options={}, comment=None, time_ms=1
    )


def with_column(name: str):  # type: ignore[no-untyped-def]
    return lambda schema: add_column(schema, name, parse_type("INT"))


@pytest.fixture
def home() -> TableHome:
    home = home_on(MemoryStore())
    create_first_schema(home, first())
    return home


def test_a_table_is_created_once(home: TableHome) -> None:
    with pytest.raises(AlreadyExistsError, match=r"d\.db/t"):
        create_first_schema(home, first())


def test_without_a_schema_there_is_no_table() -> None:
    with pytest.raises(NotFoundError, match="is not a table"):
        latest_schema(home_on(MemoryStore()))


def test_changes_are_numbered(home: TableHome) -> None:
    change_schema(home, with_column("a"))
    assert change_schema(home, with_column("b")).id == 2
    assert schema_ids(home) == [0, 1, 2]
    assert latest_schema(home).names == ("id", "a", "b")


def test_many_versions_are_ordered_by_number(home: TableHome) -> None:
    for number in range(12):
        change_schema(home, with_column(f"c{number}"))
    assert latest_schema(home).id == 12


def test_no_change_writes_nothing(home: TableHome) -> None:
    assert change_schema(home, lambda schema: change_comment(schema, "id", None)).id == 0
    assert schema_ids(home) == [0]


def test_a_refused_change_writes_nothing(home: TableHome) -> None:
    with pytest.raises(AlreadyExistsError):
        change_schema(home, with_column("id"))
    assert schema_ids(home) == [0]


def test_concurrent_changes_all_take_effect(home: TableHome) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: change_schema(home, with_column(f"c{number}")), range(40)))
    latest = latest_schema(home)
    assert set(latest.names) == {"id", *(f"c{number}" for number in range(40))}
    assert latest.id == 40
    assert sorted(field.id for field in latest.fields) == list(range(41))


def test_of_two_equal_concurrent_changes_one_is_refused(home: TableHome) -> None:
    """The other writer adds the same column between our look and our create."""

    def change(schema: TableSchema) -> TableSchema:
        if schema.id == 0:
            change_schema(home, with_column("c"))
        return with_column("c")(schema)

    with pytest.raises(AlreadyExistsError, match="c"):
        change_schema(home, change)
    assert schema_ids(home) == [0, 1]


@pytest.mark.parametrize("after", [False, True])
def test_rule_2_an_outage_that_does_not_end_is_unknown(home: TableHome, after: bool) -> None:
    failing = home_on(
        FailingStore(home.store, fail_at=1, after=after, only=lambda call, _: call == "put_if_absent", times=10**6)
    )
    with pytest.raises(CommitUnknownError, match="schema-1"):
        change_schema(failing, with_column("c"))


def test_an_outage_before_the_create_is_unavailable(home: TableHome) -> None:
    with pytest.raises(UnavailableError):
        change_schema(home_on(FailingStore(home.store, fail_at=1)), with_column("c"))
    assert schema_ids(home) == [0]


def test_rule_2_a_version_taken_by_another_after_a_503_is_changed_again(home: TableHome) -> None:
    """Ours was not kept; another writer's took the number; ours becomes the next."""

    class Taken(FailingStore):
        def put_if_absent(self, path: str, data: bytes, *, deferred: bool = False) -> bool:
            if self.failed and path.endswith("schema-1") and schema_ids(home) == [0]:
                change_schema(home, with_column("theirs"))
            return super().put_if_absent(path, data)

    changed = change_schema(
        home_on(Taken(home.store, fail_at=1, only=lambda call, _: call == "put_if_absent")), with_column("ours")
    )
    assert changed.names == ("id", "theirs", "ours")
    assert schema_ids(home) == [0, 1, 2]


def test_errors_of_a_change_are_its_own(home: TableHome) -> None:
    with pytest.raises(InvalidError, match="must be nullable"):
        change_schema(home, lambda schema: add_column(schema, "x", parse_type("INT NOT NULL")))
