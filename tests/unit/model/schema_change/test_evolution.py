"""Schema changes: every one that is allowed, every one that is refused."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lakelet.errors import AlreadyExistsError, InvalidError, LakeletError, NotFoundError
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.schema_change import evolution
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, Row, field_ids

COLUMNS = [
    ("id", "BIGINT NOT NULL"),
    ("p", "DATE"),
    ("n", "INT"),
    ("r", "ROW<a INT, b ROW<c STRING NOT NULL, d INT>>"),
    ("l", "ARRAY<ROW<x INT, y INT>>"),
    ("m", "MAP<STRING, ROW<v INT, w INT>>"),
]


@pytest.fixture
def schema() -> TableSchema:
    fields = [Field(-1, name, parse_type(text)) for name, text in COLUMNS]
    options = {"bucket": "2", "bucket-key": "id", "fields.n.stats-mode": "full"}
    return new_schema(fields, partition_keys=["p"], primary_keys=[], options=options, comment=None, time_ms=0)


def texts(schema: TableSchema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema.fields}


def all_ids(schema: TableSchema) -> list[int]:
    return [number for field in schema.fields for number in (field.id, *field_ids(field.type))]


class TestAdd:
    def test_at_the_end_first_and_after(self, schema: TableSchema) -> None:
        for place, names in (
            ({}, ("id", "p", "n", "r", "l", "m", "z")),
            ({"first": True}, ("z", "id", "p", "n", "r", "l", "m")),
            ({"after": "p"}, ("id", "p", "z", "n", "r", "l", "m")),
        ):
            changed = evolution.add_column(schema, "z", parse_type("INT"), comment="new", **place)  # type: ignore[arg-type]
            assert changed.names == names
            assert changed.field("z") == Field(schema.highest_field_id + 1, "z", parse_type("INT"), "new")
            assert changed.highest_field_id == schema.highest_field_id + 1

    def test_before_the_partition_where_the_option_says_so(self, schema: TableSchema) -> None:
        set_up = replace(schema, options={**schema.options, "add-column-before-partition": "true"})
        assert evolution.add_column(set_up, "z", parse_type("INT")).names[:3] == ("id", "z", "p")
        assert evolution.add_column(set_up, "z", parse_type("INT"), after="n").names[3] == "z"

    def test_nested_types_get_fresh_ids(self, schema: TableSchema) -> None:
        changed = evolution.add_column(schema, "z", parse_type("ROW<a INT, b ARRAY<ROW<c INT>>>"))
        top = schema.highest_field_id
        assert changed.field("z").id == top + 1
        assert sorted(field_ids(changed.field("z").type)) == [top + 2, top + 3, top + 4]
        assert changed.highest_field_id == top + 4
        assert len(set(all_ids(changed))) == len(all_ids(changed))

    @pytest.mark.parametrize(
        ("path", "column", "text"),
        [
            ("r.z", "r", "ROW<`a` INT, `b` ROW<`c` STRING NOT NULL, `d` INT>, `z` INT>"),
            (("r", "b", "z"), "r", "ROW<`a` INT, `b` ROW<`c` STRING NOT NULL, `d` INT, `z` INT>>"),
            ("l.element.z", "l", "ARRAY<ROW<`x` INT, `y` INT, `z` INT>>"),
            ("m.value.z", "m", "MAP<STRING, ROW<`v` INT, `w` INT, `z` INT>>"),
        ],
    )
    def test_inside_other_columns(self, schema: TableSchema, path: evolution.Path, column: str, text: str) -> None:
        changed = evolution.add_column(schema, path, parse_type("INT"))
        assert texts(changed)[column] == text
        assert changed.highest_field_id == schema.highest_field_id + 1
        assert schema.highest_field_id + 1 in field_ids(changed.field(column).type)

    def test_a_default_is_checked(self, schema: TableSchema) -> None:
        assert evolution.add_column(schema, "z", parse_type("INT"), default="7").field("z").default == "7"
        with pytest.raises(InvalidError, match="expected a value of type INT, found 'x'"):
            evolution.add_column(schema, "z", parse_type("INT"), default="x")
        with pytest.raises(InvalidError, match="not a field inside another"):
            evolution.add_column(schema, "r.z", parse_type("INT"), default="7")

    @pytest.mark.parametrize(
        ("path", "text", "place", "kind", "reason"),
        [
            ("z", "INT NOT NULL", {}, InvalidError, "must be nullable"),
            ("n", "INT", {}, AlreadyExistsError, "column 'n' exists"),
            ("r.a", "INT", {}, AlreadyExistsError, "exists"),
            ("z", "INT", {"after": "zz"}, NotFoundError, "'zz', after which"),
            ("zz.a", "INT", {}, NotFoundError, "not in the table"),
            ("n.a", "INT", {}, NotFoundError, "has no field"),
            ("l.a", "INT", {}, NotFoundError, "has no field"),
            ("m.values.a", "INT", {}, NotFoundError, "has no field"),
            ("r..a", "INT", {}, InvalidError, "empty part"),
            ("", "INT", {}, InvalidError, "empty part"),
            ("_KEY_x", "INT", {}, InvalidError, "reserved"),
        ],
    )
    def test_refused(
        self, schema: TableSchema, path: str, text: str, place: dict[str, str], kind: type[LakeletError], reason: str
    ) -> None:
        with pytest.raises(kind, match=reason):
            evolution.add_column(schema, path, parse_type(text), **place)  # type: ignore[arg-type]


class TestRename:
    def test_keeps_the_id_and_follows_options(self, schema: TableSchema) -> None:
        changed = evolution.rename_column(schema, "n", "number")
        assert changed.field("number").id == schema.field("n").id
        assert changed.options["fields.number.stats-mode"] == "full"
        assert "fields.n.stats-mode" not in changed.options
        assert evolution.rename_column(schema, "id", "key").options["bucket-key"] == "key"

    def test_inside_other_columns(self, schema: TableSchema) -> None:
        changed = evolution.rename_column(schema, "l.element.x", "xx")
        assert texts(changed)["l"] == "ARRAY<ROW<`xx` INT, `y` INT>>"
        assert all_ids(changed) == all_ids(schema)
        # A field may have the name of a column elsewhere, and of a partition key.
        assert texts(evolution.rename_column(schema, "r.a", "p"))["r"].startswith("ROW<`p` INT")

    def test_a_name_with_a_dot_is_a_column_of_that_name(self, schema: TableSchema) -> None:
        dotted = evolution.rename_column(schema, "n", "r.z")
        assert evolution.rename_column(dotted, "r.z", "n").names == schema.names

    @pytest.mark.parametrize(
        ("path", "name", "kind", "reason"),
        [
            ("p", "q", InvalidError, "belongs to the partition key and cannot be renamed"),
            ("n", "id", AlreadyExistsError, "column 'id' exists"),
            ("l.element.x", "y", AlreadyExistsError, "column 'y' exists"),
            ("zz", "z", NotFoundError, "not in the table"),
            ("r.zz", "z", NotFoundError, "not in the table"),
            ("n", "", InvalidError, "empty name"),
            ("n", "_VALUE_KIND", InvalidError, "reserved"),
        ],
    )
    def test_refused(self, schema: TableSchema, path: str, name: str, kind: type[LakeletError], reason: str) -> None:
        with pytest.raises(kind, match=reason):
            evolution.rename_column(schema, path, name)


class TestDrop:
    def test_ids_are_never_used_again(self, schema: TableSchema) -> None:
        dropped = evolution.drop_column(schema, "m")
        again = evolution.add_column(dropped, "m", parse_type("MAP<STRING, ROW<v INT, w INT>>"))
        assert again.field("m").id > schema.highest_field_id
        assert not set(field_ids(again.field("m").type)) & set(all_ids(schema))

    def test_inside_other_columns_and_with_its_options(self, schema: TableSchema) -> None:
        assert texts(evolution.drop_column(schema, "r.b.d"))["r"] == "ROW<`a` INT, `b` ROW<`c` STRING NOT NULL>>"
        assert "fields.n.stats-mode" not in evolution.drop_column(schema, "n").options

    @pytest.mark.parametrize(
        ("path", "kind", "reason"),
        [
            ("p", InvalidError, "belongs to the partition key and cannot be dropped"),
            ("id", InvalidError, "belongs to the bucket key and cannot be dropped"),
            ("zz", NotFoundError, "not in the table"),
            ("m.key.v", NotFoundError, "has no field"),
        ],
    )
    def test_refused(self, schema: TableSchema, path: str, kind: type[LakeletError], reason: str) -> None:
        with pytest.raises(kind, match=reason):
            evolution.drop_column(schema, path)

    def test_the_last_one_stays(self, schema: TableSchema) -> None:
        once = evolution.drop_column(schema, "l.element.x")
        with pytest.raises(InvalidError, match="the only one"):
            evolution.drop_column(once, "l.element.y")


class TestChangeType:
    def test_nullability_and_id_stay(self, schema: TableSchema) -> None:
        plain = replace(schema, options={})
        changed = evolution.change_type(plain, "id", parse_type("DECIMAL(19, 0)"))
        assert str(changed.field("id").type) == "DECIMAL(19, 0) NOT NULL"
        assert all_ids(changed) == all_ids(schema)

    def test_inside_other_columns(self, schema: TableSchema) -> None:
        assert (
            texts(evolution.change_type(schema, "m.value.v", parse_type("BIGINT")))["m"]
            == "MAP<STRING, ROW<`v` BIGINT, `w` INT>>"
        )

    def test_of_a_nested_type_keeps_ids_and_numbers_what_is_new(self, schema: TableSchema) -> None:
        changed = evolution.change_type(
            schema, "r", parse_type("ROW<a BIGINT COMMENT 'wider', z ROW<q INT>, b ROW<c STRING, d INT, e DATE>>")
        )
        assert texts(changed)["r"] == "ROW<`a` BIGINT, `z` ROW<`q` INT>, `b` ROW<`c` STRING, `d` INT, `e` DATE>>"
        old, new = schema.field("r").type, changed.field("r").type
        assert isinstance(old, Row)
        assert isinstance(new, Row)
        highest = schema.highest_field_id
        assert [(field.name, field.id, field.description) for field in new.fields] == [
            ("a", old.fields[0].id, "wider"),
            ("z", highest + 1, None),
            ("b", old.fields[1].id, None),
        ]
        assert field_ids(new.fields[2].type) == [*field_ids(old.fields[1].type), highest + 3]
        assert changed.highest_field_id == highest + 3 == max(all_ids(changed))
        assert len(set(all_ids(changed))) == len(all_ids(changed))

    def test_of_a_nested_type_to_itself_changes_nothing(self, schema: TableSchema) -> None:
        for name in ("r", "l", "m"):
            assert evolution.change_type(schema, name, parse_type(texts(schema)[name])) == schema

    def test_of_elements_and_values(self, schema: TableSchema) -> None:
        lists = evolution.add_column(schema, "v", parse_type("ARRAY<INT>"))
        maps = evolution.add_column(lists, "w", parse_type("MAP<STRING, INT NOT NULL>"))
        changed = evolution.change_type(maps, "v", parse_type("ARRAY<DOUBLE>"))
        changed = evolution.change_type(changed, "w", parse_type("MAP<STRING, BIGINT>"))
        assert (texts(changed)["v"], texts(changed)["w"]) == ("ARRAY<DOUBLE>", "MAP<STRING, BIGINT>")
        assert all_ids(changed) == all_ids(maps)
        for name, text, reason in (
            ("v", "ARRAY<SMALLINT>", "'v.element' cannot change from INT to SMALLINT"),
            ("v", "ARRAY<INT NOT NULL>", "'v.element' is nullable"),
            ("v", "INT", "only a type that holds every"),
            ("w", "MAP<INT, INT>", "the type of its keys must stay"),
            ("r", "ROW<b ROW<c STRING NOT NULL, d INT>, a INT>", "must keep their order"),
            ("r", "ROW<a INT, b ROW<c STRING NOT NULL, d INT, e INT NOT NULL>>", "must be nullable"),
            ("r", "ROW<a INT, b ROW<d INT>>", "field 'c' is left out; drop 'r.b.c'"),
        ):
            with pytest.raises(InvalidError, match=reason):
                evolution.change_type(maps, name, parse_type(text))

    @pytest.mark.parametrize(
        ("path", "text", "reason"),
        [
            ("n", "SMALLINT", "only a type that holds every"),
            ("n", "STRING", "only a type that holds every"),
            ("n", "BIGINT NOT NULL", "cannot become NOT NULL"),
            ("r", "ROW<a BIGINT>", "only a type that holds every"),
            ("p", "TIMESTAMP(3)", "belongs to the partition key"),
            ("id", "DECIMAL(19, 0)", "belongs to the bucket key"),
        ],
    )
    def test_refused(self, schema: TableSchema, path: str, text: str, reason: str) -> None:
        with pytest.raises(InvalidError, match=reason):
            evolution.change_type(schema, path, parse_type(text))

    def test_primary_keys_are_refused(self) -> None:
        fields = [Field(-1, "k", parse_type("INT")), Field(-1, "v", parse_type("INT"))]
        keyed = new_schema(fields, partition_keys=[], primary_keys=["k"], options={}, comment=None, time_ms=0)
        for change in (
            lambda: evolution.change_type(keyed, "k", parse_type("BIGINT")),
            lambda: evolution.drop_column(keyed, "k"),
            lambda: evolution.change_nullability(keyed, "k", nullable=True),
        ):
            with pytest.raises(InvalidError, match="belongs to the primary key"):
                change()
        assert evolution.rename_column(keyed, "k", "key").primary_keys == ("key",)


class TestTheRest:
    def test_nullability_only_loosens(self, schema: TableSchema) -> None:
        assert str(evolution.change_nullability(schema, "id", nullable=True).field("id").type) == "BIGINT"
        assert "`c` STRING," in texts(evolution.change_nullability(schema, "r.b.c", nullable=True))["r"]
        assert evolution.change_nullability(schema, "id", nullable=False) == schema
        with pytest.raises(InvalidError, match="cannot become NOT NULL"):
            evolution.change_nullability(schema, "n", nullable=False)

    def test_comments(self, schema: TableSchema) -> None:
        assert evolution.change_comment(schema, "n", "how many").field("n").description == "how many"
        row = evolution.change_comment(schema, "r.a", "inner").field("r").type
        assert isinstance(row, Row)
        assert row.fields[0].description == "inner"
        assert evolution.change_table_comment(schema, "all").comment == "all"

    def test_defaults(self, schema: TableSchema) -> None:
        changed = evolution.change_default(schema, "n", "3")
        assert changed.field("n").default == "3"
        assert evolution.change_default(changed, "n", None) == schema
        with pytest.raises(InvalidError, match="default of column 'n'"):
            evolution.change_default(schema, "n", "three")
        with pytest.raises(InvalidError, match="not a field inside another"):
            evolution.change_default(schema, "r.a", "3")

    def test_moving(self, schema: TableSchema) -> None:
        assert evolution.move_column(schema, "m", first=True).names == ("m", "id", "p", "n", "r", "l")
        assert evolution.move_column(schema, "id", after="l").names == ("p", "n", "r", "l", "id", "m")
        assert texts(evolution.move_column(schema, "l.element.y", first=True))["l"] == "ARRAY<ROW<`y` INT, `x` INT>>"
        for wrong, kind in (({}, InvalidError), ({"after": "m"}, InvalidError), ({"after": "zz"}, NotFoundError)):
            with pytest.raises(kind):
                evolution.move_column(schema, "m", **wrong)  # type: ignore[arg-type]

    def test_options(self, schema: TableSchema) -> None:
        changed = evolution.change_options(schema, {"file.format": "orc", "fields.n.stats-mode": None})
        assert changed.options == {"bucket": "2", "bucket-key": "id", "file.format": "orc"}
        with pytest.raises(InvalidError, match="'zz' is not a column"):
            evolution.change_options(schema, {"bucket-key": "zz"})


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("n.x", r"column 'n' is INT, which has no fields inside it"),
        ("m.values.a", r"column 'm.values' is MAP<.*>, which has no field 'values'"),
    ],
)
def test_a_column_without_fields_says_so(schema: TableSchema, path: str, reason: str) -> None:
    with pytest.raises(NotFoundError, match=reason):
        evolution.add_column(schema, path, parse_type("INT"))


class TestDefaultExpressions:
    KEY = "fields.n.default-expression"

    def test_takes_the_place_of_a_literal_and_back(self, schema: TableSchema) -> None:
        literal = evolution.change_default(schema, "n", "5")
        expression = evolution.change_default_expression(literal, "n", "1 + random()")
        assert expression.field("n").default is None
        assert expression.options[self.KEY] == "1 + random()"
        assert evolution.change_default(expression, "n", "5") == literal
        assert evolution.change_default(expression, "n", None) == schema

    def test_goes_along_with_its_column(self, schema: TableSchema) -> None:
        expression = evolution.change_default_expression(schema, "n", "uuid()")
        renamed = evolution.rename_column(expression, "n", "other")
        assert renamed.options["fields.other.default-expression"] == "uuid()"
        assert self.KEY not in renamed.options
        assert self.KEY not in evolution.drop_column(expression, "n").options

    def test_options_of_columns_with_dots_are_not_those_of_their_beginnings(self, schema: TableSchema) -> None:
        dotted = evolution.add_column(schema, ["n.stats"], parse_type("STRING"))
        both = evolution.change_default_expression(dotted, ["n.stats"], "uuid()")
        key = "fields.n.stats.default-expression"
        assert evolution.drop_column(both, "n").options[key] == "uuid()"
        assert evolution.rename_column(both, "n", "other").options[key] == "uuid()"
        assert key not in evolution.drop_column(both, ["n.stats"]).options
        assert evolution.drop_column(both, ["n.stats"]).options["fields.n.stats-mode"] == "full"

    def test_only_for_columns_of_their_own(self, schema: TableSchema) -> None:
        with pytest.raises(InvalidError, match="only a column of its own"):
            evolution.change_default_expression(schema, "r.a", "1")


@pytest.mark.parametrize("path", ["l.element", "m.value", ("l", "element")])
@pytest.mark.parametrize(
    "change",
    [
        evolution.drop_column,
        lambda schema, path: evolution.rename_column(schema, path, "z"),
        lambda schema, path: evolution.change_comment(schema, path, "z"),
        lambda schema, path: evolution.change_default(schema, path, "1"),
        lambda schema, path: evolution.move_column(schema, path, first=True),
    ],
)
def test_what_a_list_or_map_holds_is_no_field(
    schema: TableSchema, path: evolution.Path, change: Callable[[TableSchema, evolution.Path], object]
) -> None:
    with pytest.raises(NotFoundError, match=r"holds, and no field of its own; its fields are (x, y|v, w)"):
        change(schema, path)
