"""Which engine a table's options ask for, and which options are refused."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregation import AggregationEngine
from lakelet.lsm.engine.merge_engine import DEDUPLICATE, FIRST_ROW, MergeEngine
from lakelet.lsm.engine.partial_update import PartialUpdateEngine
from lakelet.lsm.engine.table_engine import ENGINES, check_rule_columns, table_engine
from lakelet.lsm.merge_spec import MergeSpec
from tests.unit.lsm.engine.column_fold import ColumnFold, sums_by_name
from tests.unit.read.key_value_table import schema_of_columns

COLUMNS = {
    "k": "INT NOT NULL",
    "sum_a": "INT",
    "text": "STRING",
    "flag": "BOOLEAN",
    "tags": "ARRAY<INT>",
    "money": "DECIMAL(10, 2)",
    "nested": "ARRAY<ROW<k INT, v INT>>",
    "times": "MAP<STRING, ROW<v INT, ts STRING>>",
    "g": "INT",
    "h": "INT",
}
SCHEMA = schema_of_columns(COLUMNS, ["k"])


def with_engine(name: str) -> MergeEngine:
    return table_engine(replace(SCHEMA, options={**SCHEMA.options, "merge-engine": name}))


def test_the_option_names_the_engine() -> None:
    assert table_engine(SCHEMA) is DEDUPLICATE
    assert with_engine("first-row") is FIRST_ROW
    assert isinstance(with_engine("aggregation"), AggregationEngine)
    assert isinstance(with_engine("partial-update"), PartialUpdateEngine)
    assert MergeSpec.of(SCHEMA).engine is DEDUPLICATE


def test_an_engine_that_nobody_makes_is_refused() -> None:
    with pytest.raises(InvalidError, match="'merge-engine': expected"):
        with_engine("dedup")


def test_makers_look_at_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "aggregation", sums_by_name)
    assert with_engine("aggregation") == ColumnFold(("sum_a",))


@pytest.mark.parametrize("name", ["aggregation", "partial-update"])
def test_engines_are_values_that_travel(name: str) -> None:
    engine = with_engine(name)
    assert pickle.loads(pickle.dumps(engine)) == engine


def refused(engine: str, options: dict[str, str]) -> str:
    with pytest.raises(InvalidError) as found:
        table_engine(replace(SCHEMA, options={**SCHEMA.options, "merge-engine": engine, **options}))
    return str(found.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields.sum_a.aggregate-function": "summ"}, "no aggregate function 'summ'; did you mean 'sum'?"),
        ({"fields.default-aggregate-function": "median"}, "'fields.default-aggregate-function': there is no"),
        ({"fields.text.aggregate-function": "sum"}, "column 'text' is STRING, expected a number"),
        ({"fields.flag.aggregate-function": "max"}, "column 'flag' is BOOLEAN, expected a type without children"),
        ({"fields.tags.aggregate-function": "min"}, "column 'tags' is ARRAY<INT>, expected a type"),
        ({"fields.sum_a.aggregate-function": "bool_or"}, "column 'sum_a' is INT, expected BOOLEAN"),
        ({"fields.money.aggregate-function": "listagg"}, "column 'money' is DECIMAL(10, 2), expected STRING"),
        ({"fields.text.aggregate-function": "theta_sketch"}, "column 'text' is STRING, expected VARBINARY or BYTES"),
        ({"fields.text.aggregate-function": "rbm64"}, "column 'text' is STRING, expected VARBINARY or BYTES"),
        ({"fields.text.aggregate-function": "rbm32"}, "column 'text' is STRING, expected VARBINARY or BYTES"),
        ({"fields.tags.aggregate-function": "nested_update"}, "column 'tags' is ARRAY<INT>, expected an ARRAY of rows"),
        ({"fields.nested.aggregate-function": "nested_partial_update"}, "it needs 'fields.nested.nested-key'"),
        (
            {"fields.nested.aggregate-function": "nested_update", "fields.nested.nested-key": "x"},
            "'fields.nested.nested-key': 'x' is not in ARRAY<ROW",
        ),
        ({"fields.nested.aggregate-function": "merge_map"}, "expected a MAP whose keys"),
        (
            {"fields.times.aggregate-function": "merge_map_with_keytime", "fields.times.ts-field": "at"},
            "'fields.times.ts-field': 'at' is not in ROW",
        ),
        (
            {"fields.times.aggregate-function": "merge_map_with_keytime", "fields.times.ts-field": "v"},
            "'fields.times.ts-field': 'v' is INT, expected STRING",
        ),
        (
            {
                "fields.text.aggregate-function": "listagg",
                "fields.text.distinct": "true",
                "fields.text.list-agg-delimiter": "",
            },
            "'fields.text.list-agg-delimiter' has no characters",
        ),
        (
            {"sequence.field": "sum_a", "fields.sum_a.aggregate-function": "sum"},
            "'sum_a' is in 'sequence.field', whose columns have no function",
        ),
        (
            {"aggregation.remove-record-on-delete": "true", "fields.text.ignore-retract": "true"},
            "'aggregation.remove-record-on-delete' and 'fields.text.ignore-retract' exclude each other",
        ),
    ],
    ids=range(19),
)
def test_functions_that_columns_cannot_have_are_refused(options: dict[str, str], message: str) -> None:
    assert message in refused("aggregation", options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields.g.sequence-group": "text,nothing"}, "'nothing' is not a column"),
        ({"fields.x.sequence-group": "text"}, "'x' is not a column"),
        ({"fields.g.sequence-group": "k"}, "'k' is in the primary key"),
        ({"fields.g.sequence-group": "text", "fields.h.sequence-group": "text"}, "'text' is in the sequence group"),
        ({"fields.g.sequence-group": "text", "fields.g,h.sequence-group": "flag"}, "'g' is in the sequence group"),
        ({"fields.tags.sequence-group": "text"}, "'tags' is ARRAY<INT>, expected a type without children"),
        ({"fields.sum_a.aggregate-function": "sum"}, "column 'sum_a' is in no sequence group"),
        ({"fields.default-aggregate-function": "max"}, "is in no sequence group"),
        (
            {"fields.g.sequence-group": "text", "partial-update.remove-record-on-delete": "true"},
            "'partial-update.remove-record-on-delete' and 'fields.<column>.sequence-group' exclude each other",
        ),
        (
            {"ignore-delete": "true", "partial-update.remove-record-on-delete": "true"},
            "'partial-update.remove-record-on-delete' and 'ignore-delete' exclude each other",
        ),
        (
            {"fields.g.sequence-group": "text", "partial-update.remove-record-on-sequence-group": "h"},
            "'h' is no sequence column; there are g",
        ),
    ],
    ids=range(11),
)
def test_groups_that_columns_cannot_have_are_refused(options: dict[str, str], message: str) -> None:
    assert message in refused("partial-update", options)


def test_a_new_table_has_the_columns_that_its_options_name() -> None:
    wrong = replace(SCHEMA, options={**SCHEMA.options, "fields.sum_b.aggregate-function": "sum"})
    with pytest.raises(InvalidError, match="'sum_b' is not a column; did you mean sum_a"):
        check_rule_columns(wrong)


def test_results_depend_on_the_sequence_columns_of_their_groups() -> None:
    engine = table_engine(
        replace(
            SCHEMA,
            options={
                **SCHEMA.options,
                "merge-engine": "partial-update",
                "fields.g.sequence-group": "text",
                "fields.h.sequence-group": "flag",
                "partial-update.remove-record-on-sequence-group": "h",
            },
        )
    )
    assert set(engine.columns_for(["sum_a"])) == {"sum_a", "h"}
    assert set(engine.columns_for(["text"])) == {"text", "g", "h"}
    assert set(engine.columns_for([])) == {"h"}
