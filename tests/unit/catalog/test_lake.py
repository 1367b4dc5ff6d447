"""Databases and tables of a lake."""

import datetime as dt

import pyarrow as pa
import pytest

from lakelet import AlreadyExistsError, InvalidError, Lake, NotFoundError
from lakelet.format.metadata.table_metadata import decode_metadata
from lakelet.model.types import Field, string
from lakelet.storage.memory import MemoryStore

COLUMNS = [("id", "BIGINT"), ("s", "STRING")]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def lake(store: MemoryStore) -> Lake:
    made = Lake(store)
    made.create_database("d")
    return made


def paths(store: MemoryStore) -> list[str]:
    return sorted(info.path for info in store.list(""))


class TestDatabases:
    def test_made_listed_and_dropped(self, lake: Lake) -> None:
        lake.create_database("e")
        assert lake.databases() == ["d", "e"]
        with pytest.raises(AlreadyExistsError, match="database 'e' exists"):
            lake.create_database("e")
        lake.create_database("e", if_not_exists=True)
        lake.drop_database("e")
        assert lake.databases() == ["d"]
        lake.drop_database("e", if_exists=True)
        with pytest.raises(NotFoundError, match=r"database 'e' is not in .*; there are d"):
            lake.drop_database("e")

    def test_one_with_tables_is_dropped_only_on_demand(self, lake: Lake, store: MemoryStore) -> None:
        lake.create_table("d.t", COLUMNS).write([{"id": 1}])
        with pytest.raises(InvalidError, match="holds 1 tables"):
            lake.drop_database("d")
        assert lake.table("d.t").scan().count() == 1
        lake.drop_database("d", cascade=True)
        assert (lake.databases(), paths(store)) == ([], [])


class TestTables:
    def test_made_and_listed(self, lake: Lake) -> None:
        lake.create_table("d.b", COLUMNS)
        lake.create_table(
            "d.a",
            pa.schema(
                [pa.field("id", pa.int64(), nullable=False, metadata={"comment": "key"}), ("l", pa.list_(pa.int8()))]
            ),
        )
        assert lake.tables("d") == ["a", "b"]
        assert lake.table_exists("d.a")
        assert not lake.table_exists("d.c")
        schema = lake.table("d.a").schema
        assert [(field.name, str(field.type), field.description) for field in schema.fields] == [
            ("id", "BIGINT NOT NULL", "key"),
            ("l", "ARRAY<TINYINT>", None),
        ]
        with pytest.raises(NotFoundError, match=r"table 'd\.c'"):
            lake.table("d.c")
        with pytest.raises(NotFoundError, match="database 'x'"):
            lake.tables("x")
        with pytest.raises(NotFoundError, match="database 'x'"):
            lake.create_table("x.t", COLUMNS)

    def test_fields_options_and_comment(self, lake: Lake) -> None:
        fields = [Field(-1, "id", string(), "the key", "none")]
        made = lake.create_table(
            "d.t", fields, options={"metadata.stats-dense-store": False, "bucket": 2, "bucket-key": "id"}, comment="hi"
        )
        assert made.options == {"metadata.stats-dense-store": "false", "bucket": "2", "bucket-key": "id"}
        assert made.schema.comment == "hi"
        assert (made.schema.field("id").default, made.schema.field("id").description) == ("none", "the key")

    def test_the_same_name_twice(self, lake: Lake) -> None:
        lake.create_table("d.t", COLUMNS).write([{"id": 1}])
        with pytest.raises(AlreadyExistsError, match=r"d\.t"):
            lake.create_table("d.t", COLUMNS)
        assert lake.create_table("d.t", [("other", "INT")], if_not_exists=True).scan().count() == 1

    def test_a_dropped_table_is_gone_and_a_new_one_is_another(self, lake: Lake, store: MemoryStore) -> None:
        uuids = []
        for _ in range(2):
            lake.create_table("d.t", COLUMNS).write([{"id": 1}])
            uuids.append(decode_metadata(store.get("d.db/t/metadata"), path="m").table_uuid)
            assert lake.table("d.t").scan().count() == 1
            lake.drop_table("d.t")
            assert lake.tables("d") == []
            assert not [path for path in paths(store) if path.startswith("d.db/t/")]
        assert uuids[0] != uuids[1]
        lake.drop_table("d.t", if_exists=True)
        with pytest.raises(NotFoundError, match=r"d\.t"):
            lake.drop_table("d.t")

    def test_renamed_with_everything(self, lake: Lake) -> None:
        lake.create_database("e")
        old = lake.create_table("d.t", COLUMNS)
        old.write([{"id": 1}])
        renamed = lake.rename_table("d.t", "e.u")
        assert renamed.name == "e.u"
        renamed.write([{"id": 2}])
        assert (lake.tables("d"), lake.tables("e")) == ([], ["u"])
        assert lake.table("e.u").scan().count() == 2
        assert lake.table("e.u").scan(version=1).count() == 1
        lake.create_table("e.v", COLUMNS)
        for name, new, kind in (
            ("e.x", "e.y", NotFoundError),
            ("e.u", "e.v", AlreadyExistsError),
            ("e.u", "x.u", NotFoundError),
        ):
            with pytest.raises(kind):
                lake.rename_table(name, new)
        assert lake.table("e.u").scan().count() == 2

    def test_what_lies_about_is_no_table(self, lake: Lake, store: MemoryStore) -> None:
        store.put("d.db/stray/readme", b"x")
        store.put("d.db/half/schema/schema-x", b"x")
        store.put("notes/readme", b"x")
        assert lake.tables("d") == []
        assert lake.databases() == ["d"]
        store.put("d.db/t/snapshot/snapshot-1", b"{}")
        with pytest.raises(InvalidError, match="left over"):
            lake.create_table("d.t", COLUMNS)


WEIRD = [
    "",
    " ",
    "a b ",
    ".",
    "..",
    "a/b",
    "a\\b",
    "../x",
    "a\x00b",
    "a\nb",
    "a*",
    "a?",
    "a:b",
    "a$b",
    "a#b",
    "a%2Fb",
    '"a"',
    "x" * 201,
    "<a>",
    "a|b",
]


@pytest.mark.parametrize("name", WEIRD)
def test_names_with_tricks_are_refused(lake: Lake, store: MemoryStore, name: str) -> None:
    before = paths(store)
    with pytest.raises(InvalidError):
        lake.create_database(name)
    for call in (lake.table, lake.drop_table, lambda table: lake.create_table(table, COLUMNS)):
        with pytest.raises(InvalidError):
            call(f"d.{name}")
        with pytest.raises(InvalidError):
            call(f"{name}.t")
    assert paths(store) == before


@pytest.mark.parametrize("name", ["t", "a.b.c", "", ".", "d."])
def test_a_table_is_named_by_two_parts(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidError):
        lake.table(name)


@pytest.mark.parametrize("name", ["Orders_2024", "ünï", "with space", "a-b", "表"])
def test_plain_names_are_taken(lake: Lake, name: str) -> None:
    lake.create_database(name)
    lake.create_table(f"{name}.{name}", COLUMNS).write([{"id": 1}])
    assert lake.tables(name) == [name]
    assert lake.table(f"{name}.{name}").scan().count() == 1


@pytest.mark.parametrize(
    ("columns", "more", "reason"),
    [
        ([], {}, "at least one column"),
        ([("id", "BIGINT"), ("id", "INT")], {}, "given twice"),
        ([("id", "NUMBER")], {}, "known type"),
        ([("id", pa.duration("s"))], {}, "no counterpart"),
        (COLUMNS, {"partitioned_by": ["z"]}, "not a column"),
        (COLUMNS, {"partitioned_by": ["id", "s"]}, "all columns are partition keys"),
        (COLUMNS, {"primary_key": ["missing"]}, "missing"),
        (COLUMNS, {"options": {"bucket": "4"}}, "bucket-key"),
        (COLUMNS, {"options": {"bucket-key": "id"}}, "'bucket'"),
        (COLUMNS, {"options": {"bucket": "0"}}, "bucket"),
        (COLUMNS, {"options": {"bucket": "two", "bucket-key": "id"}}, "bucket"),
        (COLUMNS, {"options": {"file.fromat": "orc"}}, r"file\.format"),
        (COLUMNS, {"options": {"file.format": "csv"}}, "parquet"),
        (COLUMNS, {"options": {"row-tracking.enabled": "true"}}, "row-tracking"),
        (
            [Field(-1, "id", string(), default="x"), Field(-1, "n", string(), default=None)],
            {"options": {"bucket": "-2"}},
            "bucket",
        ),
    ],
)
def test_a_refused_table_leaves_nothing(
    lake: Lake, store: MemoryStore, columns: list[tuple[str, str]], more: dict[str, object], reason: str
) -> None:
    with pytest.raises(InvalidError, match=reason):
        lake.create_table("d.t", columns, **more)  # type: ignore[arg-type]
    assert lake.tables("d") == []
    assert not [path for path in paths(store) if "/t/" in path]


class TestWhatIsNoTable:
    def test_stays_when_its_database_is_dropped(self, lake: Lake, store: MemoryStore) -> None:
        for path in ("d.db/notes/a.txt", "d.db/readme"):
            store.put(path, b"x")
            with pytest.raises(InvalidError, match=r"database 'd' holds no tables, but .*/d.db/(notes|readme)"):
                lake.drop_database("d")
            assert store.get(path) == b"x"
            store.delete_folder("d.db/notes")
        lake.drop_database("d", cascade=True)
        assert paths(store) == []

    def test_is_no_database(self, lake: Lake, store: MemoryStore) -> None:
        for folder in ("a.b.db", "x$y.db", " e.db"):
            store.put(f"{folder}/t/schema/schema-0", b"{}")
        assert lake.databases() == ["d"]

    @pytest.mark.parametrize("path", ["snapshot/LATEST", "tag/tag-a", "branch/branch-b/schema/schema-0"])
    def test_is_not_mixed_with_a_new_table(self, lake: Lake, store: MemoryStore, path: str) -> None:
        store.put(f"d.db/t/{path}", b"1")
        with pytest.raises(InvalidError, match=f"d.db/t/{path} is left over from another table"):
            lake.create_table("d.t", COLUMNS)
        assert lake.tables("d") == []

    @pytest.mark.parametrize("moves", [True, False])
    def test_is_not_renamed_over(self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, moves: bool) -> None:
        monkeypatch.setattr(MemoryStore, "moves_atomically", property(lambda _: moves))
        lake = Lake(store)
        lake.create_database("d")
        lake.create_table("d.t", COLUMNS).write([{"id": 1}])
        store.put("d.db/u/bucket-0/data-1.parquet", b"x")
        before = paths(store)
        with pytest.raises(AlreadyExistsError, match=r"d.db/u/bucket-0/data-1.parquet is in the way of 'd.u'"):
            lake.rename_table("d.t", "d.u")
        assert paths(store) == before
        assert lake.rename_table("d.t", "d.v").scan().count() == 1


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": "BIGINT"}, "expected an Arrow schema or a list of .* pairs, found a dict"),
        (5, "found a int"),
        ("id", "found a str"),
        (["id"], "column 'id': expected a pair of name and type"),
        ([("id",)], r"column \('id',\): expected a pair"),
        ([(5, "INT")], "name of a column: expected text, found 5"),
        ([("id", 5)], "column 'id': expected a type such as 'BIGINT'"),
        ([("id\ud800", "INT")], "not valid Unicode"),
    ],
)
def test_columns_that_are_none(lake: Lake, store: MemoryStore, columns: object, reason: str) -> None:
    before = paths(store)
    with pytest.raises(InvalidError, match=reason):
        lake.create_table("d.t", columns)  # type: ignore[arg-type]
    assert paths(store) == before


def test_a_path_is_refused_by_name(lake: Lake) -> None:
    with pytest.raises(InvalidError, match="option 'path'"):
        lake.create_table("d.t", COLUMNS, options={"path": "/elsewhere"})


@pytest.mark.parametrize(
    ("data_type", "named"),
    [
        ("DATE", "p=2026-01-03"),
        ("TIME(3)", "p=10%3A00%3A00.5"),
        ("TIMESTAMP(3)", "p=2026-01-03 10%3A00%3A00.500"),
        ("STRING", None),
        ("INT", None),
        # Other engines would spell it in the zone of their machine.
        ("TIMESTAMP_LTZ(3)", None),
    ],
)
@pytest.mark.parametrize("key", [[], ["id", "p"]], ids=["append", "keyed"])
def test_partitions_are_named_after_days_and_times(data_type: str, named: str | None, key: list[str]) -> None:
    store = MemoryStore()
    lake = Lake(store)
    lake.create_database("d")
    columns = [("id", "INT"), ("p", data_type)]
    table = lake.create_table("d.t", columns, primary_key=key, partitioned_by=["p"])
    assert table.options.get("partition.legacy-name") == (None if named is None else "false")
    given = lake.create_table("d.u", columns, partitioned_by=["p"], options={"partition.legacy-name": "true"})
    assert given.options["partition.legacy-name"] == "true"
    if named is None:
        return
    moment = dt.datetime(2026, 1, 3, 10, 0, 0, 500000)
    value = {"DATE": moment.date(), "TIME(3)": moment.time()}.get(data_type, moment)
    table.write([{"id": 1, "p": value}])
    folders = {info.path.split("/")[2] for info in store.list("d.db/t") if "/bucket-" in info.path}
    assert folders == {named}
    table.write([{"id": 2, "p": value}], mode="overwrite", partition={"p": value})
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "p": value}]
    # A table that was made before keeps its folders, and its history, when it is replaced.
    given.write([{"id": 1, "p": value}])
    lake.replace_table("d.u", [*columns, ("n", "INT")], partitioned_by=["p"])
    assert (given.options["partition.legacy-name"], len(given.snapshots())) == ("true", 2)


@pytest.mark.parametrize(("given", "kept"), [(None, ()), ((), ()), ("id", ("id",)), (["id", "s"], ("id", "s"))])
def test_keys_are_none_one_name_or_several(lake: Lake, given: object, kept: tuple[str, ...]) -> None:
    by_key = lake.create_table("d.keyed", COLUMNS, primary_key=given)  # type: ignore[arg-type]
    assert by_key.schema.primary_keys == kept
    by_partition = lake.create_table("d.partitioned", [*COLUMNS, ("v", "INT")], partitioned_by=given)  # type: ignore[arg-type]
    assert by_partition.schema.partition_keys == kept
