"""Types, evolution, routes and rules of columns: pure functions, no session."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, with_nullable
from lakelet.spark.cdc.envelope import debezium
from lakelet.spark.cdc.evolution import EvolutionPolicy, evolved
from lakelet.spark.cdc.route import Route, SourceTable
from lakelet.spark.cdc.rows.column_rule import computed_columns, metadata_columns
from lakelet.spark.cdc.value.debezium_types import debezium_field
from lakelet.spark.cdc.value.mysql_types import mysql_field
from lakelet.spark.cdc.value.type_rules import TypeRules
from lakelet.spark.cdc.value.wire_field import Codec, WireField
from tests.spark.cdc.sample_events import DECIMAL, FIELDS
from tests.spark.cdc.sample_events import debezium as event
from tests.spark.cdc.sample_events import text as text_of
from tests.tiers.examples import examples

PLAIN = TypeRules()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("bigint", "BIGINT"),
        ("bigint(20) unsigned", "DECIMAL(20, 0)"),
        ("int unsigned", "BIGINT"),
        ("tinyint(1)", "BOOLEAN"),
        ("tinyint(4)", "TINYINT"),
        ("tinyint(3) unsigned", "SMALLINT"),
        ("mediumint", "INT"),
        ("decimal(10,2)", "DECIMAL(10, 2)"),
        ("DECIMAL(12, 4) unsigned", "DECIMAL(12, 4)"),
        ("decimal", "DECIMAL(20, 0)"),
        ("decimal(65,30)", "STRING"),
        ("varchar(50)", "VARCHAR(50)"),
        ("char(3)", "CHAR(3)"),
        ("longtext", "STRING"),
        ("enum('a','b)')", "STRING"),
        ("datetime(6)", "TIMESTAMP(6)"),
        ("timestamp", "TIMESTAMP(0)"),
        ("time(3)", "TIME(3)"),
        ("date", "DATE"),
        ("year(4)", "INT"),
        ("bit(1)", "BOOLEAN"),
        ("bit(64)", "DECIMAL(20, 0)"),
        ("double precision", "DOUBLE"),
        ("blob", "BYTES"),
        ("geometry", "STRING"),
    ],
)
def test_mysql_types(text: str, kind: str) -> None:
    assert str(mysql_field("c", text, PLAIN).type) == kind


def test_type_mapping() -> None:
    rules = TypeRules.of("tinyint1-not-bool,char-to-string, longtext-to-bytes,bigint-unsigned-to-bigint")
    found = [
        str(mysql_field("c", text, rules).type) for text in ("tinyint(1)", "char(3)", "longtext", "bigint unsigned")
    ]
    assert found == ["TINYINT", "STRING", "BYTES", "BIGINT"]
    assert str(mysql_field("c", "decimal(3,1)", TypeRules.of(["to-string"])).type) == "STRING"
    with pytest.raises(InvalidError, match="to-number"):
        TypeRules.of(["to-number"])


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"scale": "2", "connect.decimal.precision": "10"}, "DECIMAL(10, 2)"),
        ({"scale": "0"}, "DECIMAL(20, 0)"),
        ({"scale": "5"}, "DECIMAL(38, 5)"),
        ({"scale": "30", "connect.decimal.precision": "65"}, "STRING"),
    ],
)
def test_decimals_of_debezium(parameters: dict[str, str], kind: str) -> None:
    found = debezium_field({"field": "c", "type": "bytes", "name": DECIMAL, "parameters": parameters}, PLAIN)
    assert (str(found.type), found.codec, found.scale) == (kind, Codec.DECIMAL_BYTES, int(parameters["scale"]))


def test_a_cut_that_was_wrong_is_found() -> None:
    text = text_of(event("c", None, {}, fields=FIELDS))
    right = text.split(',"payload":')[0]
    assert [one.name for one in debezium.layout_of(right, PLAIN)] == [one["field"] for one in FIELDS]
    with pytest.raises(debezium.CutError):
        debezium.layout_of(right[:-3], PLAIN)


KINDS = [
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(10, 2)",
    "DECIMAL(20, 0)",
    "DECIMAL(38, 5)",
]
KINDS += [
    "VARCHAR(3)",
    "VARCHAR(9)",
    "STRING",
    "VARBINARY(3)",
    "BYTES",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "DATE",
    "BOOLEAN",
]


def schema(**columns: str) -> TableSchema:
    fields = [Field(0, "id", parse_type("INT NOT NULL"))]
    fields += [Field(place + 1, name, parse_type(kind)) for place, (name, kind) in enumerate(columns.items())]
    return TableSchema(0, tuple(fields), len(fields) - 1, (), ("id",), {"bucket": "1"}, None, 0)


def column(name: str, kind: str) -> WireField:
    found: Any = parse_type(kind)
    return WireField(name, Codec.TEXT, found)


def kinds(found: TableSchema) -> dict[str, str]:
    return {field.name: str(with_nullable(field.type, True)) for field in found.fields}


@pytest.mark.parametrize(
    ("old", "new", "then"),
    [
        ("INT", "BIGINT", "BIGINT"),
        ("BIGINT", "INT", "BIGINT"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("DECIMAL(10, 2)", "DECIMAL(8, 4)", "DECIMAL(12, 4)"),
        ("VARCHAR(9)", "VARCHAR(3)", "VARCHAR(9)"),
        ("VARCHAR(3)", "STRING", "STRING"),
        ("STRING", "INT", "STRING"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6)"),
        ("INT", "STRING", None),
        ("DATE", "INT", None),
        ("BYTES", "STRING", None),
    ],
)
def test_types_evolve(old: str, new: str, then: str | None) -> None:
    if then is None:
        with pytest.raises(InvalidError, match="column 'c' is"):
            evolved(schema(c=old), [column("c", new)], EvolutionPolicy())
    else:
        assert kinds(evolved(schema(c=old), [column("c", new)], EvolutionPolicy()))["c"] == then


def test_columns_are_added_and_keys_stay() -> None:
    before = schema()
    after = evolved(before, [column("id", "BIGINT"), column("Id", "STRING"), WireField("n. b")], EvolutionPolicy())
    assert kinds(after) == {"id": "INT", "Id": "STRING", "n. b": "STRING"}
    assert evolved(before, [column("x", "INT")], EvolutionPolicy(columns=False)) is before


def test_a_conflict_becomes_text_where_that_is_asked_for() -> None:
    policy = EvolutionPolicy(on_conflict="string")
    for old in ("INT", "BIGINT", "BOOLEAN", "DECIMAL(10, 2)", "DATE", "TIMESTAMP(3)"):
        after = evolved(schema(c=old), [column("c", "STRING")], policy)
        assert kinds(after)["c"] == "STRING"
        assert evolved(after, [column("c", old), column("c", "BYTES")], policy) is after
    for old in ("DOUBLE", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "BYTES"):
        with pytest.raises(InvalidError, match=r"keeps no .* of older files as text"):
            evolved(schema(c=old), [column("c", "STRING")], policy)
    ordered = replace(schema(c="BIGINT"), options={"sequence.field": "c"})
    with pytest.raises(InvalidError, match="ordered by it as BIGINT"):
        evolved(ordered, [column("c", "STRING")], policy)


def test_no_column_that_a_merge_compares_becomes_text() -> None:
    # As texts, 10 would be less than 9, and the older value would stay.
    policy, coming = EvolutionPolicy(on_conflict="string"), [column("c", "STRING")]
    partial = {"merge-engine": "partial-update", "fields.c.sequence-group": "d"}
    with pytest.raises(InvalidError, match="ordered by it as BIGINT"):
        evolved(replace(schema(c="BIGINT", d="INT"), options=partial), coming, policy)
    assert (
        kinds(evolved(replace(schema(c="INT", d="INT"), options=partial), [column("d", "STRING")], policy))["d"]
        == "STRING"
    )
    for function in ("max", "sum"):
        folding = {"merge-engine": "aggregation", "fields.c.aggregate-function": function}
        with pytest.raises(InvalidError, match=rf"aggregated \('{function}'\) as BIGINT"):
            evolved(replace(schema(c="BIGINT"), options=folding), coming, policy)
    replacing = {"merge-engine": "aggregation", "fields.c.aggregate-function": "last_value"}
    assert kinds(evolved(replace(schema(c="BIGINT"), options=replacing), coming, policy))["c"] == "STRING"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(KINDS)), max_size=8), st.sampled_from(["fail", "string"])
)
@settings(max_examples=examples(100), deadline=None)
def test_evolution_is_idempotent(history: list[tuple[str, str]], on_conflict: str) -> None:
    """Whatever came, the same columns again change nothing: a repeated batch finds the schema that it made."""
    policy = EvolutionPolicy(on_conflict=on_conflict)
    found = schema()
    seen: list[WireField] = []
    for name, kind in history:
        try:
            found = evolved(found, [column(name, kind)], policy)
        except InvalidError:
            continue
        seen.append(column(name, kind))
    assert evolved(found, seen, policy) is found


def test_routes() -> None:
    route = Route(database="ods", excluding="tmp_.*|shop.secret", mapping={"Item": "things"}, prefix="p_", suffix="_s")
    found = [route.target(SourceTable("shop", None, name)) for name in ("item", "Item", "tmp_a", "secret", "atmp_")]
    assert found == ["ods.p_item_s", "ods.things", None, None, "ods.p_atmp__s"]
    assert Route(table="a.b", including="x.*").target(SourceTable(None, None, "y")) is None
    for wrong in ("item", ".item", "shop."):
        with pytest.raises(InvalidError, match=r"expected database\.table"):
            Route(table=wrong)
    for name in ("a.b", "", "a/b"):
        with pytest.raises(InvalidError):
            Route(database="ods").target(SourceTable("shop", None, name))


def test_rules_of_columns() -> None:
    found = computed_columns({"y": "year(born)", "p": "substring(`a,b`, 0, 3)", "c": "cast('1.5', DECIMAL(3, 1))"})
    assert [str(rule.type) for rule in found.values()] == ["INT", "STRING", "DECIMAL(3, 1)"]
    assert list(metadata_columns(["op_ts"], "m_")) == ["m_op_ts"]
    for wrong in ("born", "year()", "year(born, 1)", "nosuch(a)", "substring(a, b)"):
        with pytest.raises(InvalidError, match="computed column 'y'"):
            computed_columns({"y": wrong})
