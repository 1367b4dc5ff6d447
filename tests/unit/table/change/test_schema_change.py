"""Changes of a table's schema and options, as people make them."""

import pyarrow as pa
import pytest

from lakelet import InvalidError, Lake, Table
from lakelet.format.metadata.table_metadata import decode_metadata
from lakelet.model.schema import TableSchema
from lakelet.model.schema_change import evolution
from lakelet.model.types import Atomic, Kind
from lakelet.storage.memory import MemoryStore


@pytest.fixture
def table() -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake.create_table("d.t", [("id", "BIGINT"), ("n", "INT")], options={"bucket": "2", "bucket-key": "id"})


def test_each_change_is_a_version(table: Table) -> None:
    table.add_column("s", pa.string(), comment="text", default="x")
    table.change_column_comment("n", "a number")
    table.change_comment("a table")
    table.change_default("n", 7)
    assert [schema.id for schema in table.schemas()] == [0, 1, 2, 3, 4]
    newest = table.schema
    assert (newest.field("s").default, newest.field("s").description) == ("x", "text")
    assert (newest.field("n").default, newest.field("n").description) == ("7", "a number")
    assert newest.comment == "a table"
    assert table.write(pa.table({"id": [1]})) is not None
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 7, "s": "x"}]


def test_a_change_that_changes_nothing_makes_no_version(table: Table) -> None:
    table.move_column("n", after="id")
    table.set_options({"bucket": "2"})
    table.change_nullability("n", nullable=True)
    assert len(table.schemas()) == 1


def test_a_refused_change_leaves_nothing(table: Table) -> None:
    for change in (
        lambda: table.change_type("n", "TINYINT"),
        lambda: table.add_column("z", "INT NOT NULL"),
        lambda: table.add_column("z", "NOTHING"),
        lambda: table.set_options({"file.fromat": "orc"}),
        lambda: table.set_options({"file.format": "csv"}),
        lambda: table.set_options({"target-file-size": "much"}),
    ):
        with pytest.raises(InvalidError):
            change()
    assert len(table.schemas()) == 1


def test_options_are_set_and_reset(table: Table) -> None:
    table.set_options({"file.format": "orc", "metadata.stats-dense-store": False})
    assert table.options["file.format"] == "orc"
    assert table.options["metadata.stats-dense-store"] == "false"
    table.reset_options(["file.format"])
    assert "file.format" not in table.options


def test_options_that_decide_where_rows_lie_stay_once_there_are_rows(table: Table) -> None:
    table.set_options({"bucket": "3"})
    table.write([{"id": 1, "n": 1}])
    with pytest.raises(InvalidError, match="bucket-key"):
        table.set_options({"bucket-key": "n"})


def test_the_metadata_file_tells_of_the_last_change(table: Table) -> None:
    home = table.scan().home
    before = decode_metadata(home.store.get(home.paths.metadata), path="m")
    table.add_column("s", "STRING")
    after = decode_metadata(home.store.get(home.paths.metadata), path="m")
    assert (before.schema_id, after.schema_id) == (0, 1)
    assert after.table_uuid == before.table_uuid
    assert after.modify_time_ms == table.schema.time_ms
    home.store.delete([home.paths.metadata])
    table.add_column("t", "STRING")
    assert home.store.head(home.paths.metadata) is None


def test_several_changes_are_one_version(table: Table) -> None:
    def change(schema: TableSchema) -> TableSchema:
        wider = evolution.change_type(schema, "n", Atomic(Kind.BIGINT))
        return evolution.change_table_comment(table.with_options(wider, {"file.format": "orc"}), "both")

    changed = table.alter(change)
    assert (changed.id, changed.comment, changed.options["file.format"]) == (1, "both", "orc")
    assert table.schema == changed


@pytest.mark.parametrize("name", ["primary-key", "partition", "path"])
def test_options_that_say_how_a_table_is_made_are_fixed(table: Table, name: str) -> None:
    with pytest.raises(InvalidError, match="cannot be changed afterwards"):
        table.set_options({name: "id"})
    table.reset_options([name])
    assert len(table.schemas()) == 1


def test_a_nested_type_changes_inside(table: Table) -> None:
    table.add_column("r", "ROW<a INT, b STRING>")
    table.write([{"id": 1, "r": {"a": 1, "b": "x"}}])
    table.change_type("r", "ROW<a INT, b STRING>")
    assert len(table.schemas()) == 2
    table.change_type("r", "ROW<a BIGINT, c ARRAY<INT>, b STRING>")
    table.change_type("r", "ROW<a BIGINT, c ARRAY<BIGINT>, b STRING>")
    table.write([{"id": 2, "r": {"a": 2**40, "c": [2**40], "b": "y"}}])
    assert table.scan(["id", "r"]).to_arrow().sort_by("id")["r"].to_pylist() == [
        {"a": 1, "c": None, "b": "x"},
        {"a": 2**40, "c": [2**40], "b": "y"},
    ]


def test_deletion_vectors_are_switched_on_where_nothing_has_to_be_merged() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    options = {"bucket": "1", "write-only": "true", "deletion-vectors.modifiable": "true"}
    table = lake.create_table("d.t", [("k", "INT NOT NULL"), ("v", "INT")], primary_key=["k"], options=options)
    table.write([{"k": 1, "v": 1}, {"k": 2, "v": 1}])
    table.write([{"k": 1, "v": 2}])
    expected = [{"k": 1, "v": 2}, {"k": 2, "v": 1}]
    with pytest.raises(InvalidError, match="run a full compaction first"):
        table.set_options({"deletion-vectors.enabled": "true"})
    assert table.scan().to_arrow().sort_by("k").to_pylist() == expected
    table.compact(full=True)
    table.set_options({"deletion-vectors.enabled": "true", "write-only": "false"})
    table = lake.table("d.t")
    assert table.scan().to_arrow().sort_by("k").to_pylist() == expected
    table.delete([{"k": 1}])
    assert table.scan().to_arrow().sort_by("k").to_pylist() == expected[1:]
    table.set_options({"deletion-vectors.enabled": "false"})
    assert lake.table("d.t").scan().to_arrow().to_pylist() == expected[1:]
    lake.table("d.t").write([{"k": 3, "v": 3}])
    assert lake.table("d.t").scan().count() == 2
