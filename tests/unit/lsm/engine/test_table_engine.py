"""Which engine a table's options ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelet.errors import InvalidError
from lakelet.lsm.engine.merge_engine import DEDUPLICATE, FIRST_ROW
from lakelet.lsm.engine.table_engine import ENGINES, table_engine
from lakelet.lsm.merge_spec import MergeSpec
from tests.unit.lsm.engine.column_fold import ColumnFold, sums_by_name
from tests.unit.read.key_value_table import schema_of_columns

SCHEMA = schema_of_columns({"k": "INT NOT NULL", "sum_a": "INT"}, ["k"])


def with_engine(name: str) -> object:
    return table_engine(replace(SCHEMA, options={**SCHEMA.options, "merge-engine": name}))


def test_the_option_names_the_engine() -> None:
    assert table_engine(SCHEMA) is DEDUPLICATE
    assert with_engine("first-row") is FIRST_ROW
    assert MergeSpec.of(SCHEMA).engine is DEDUPLICATE


@pytest.mark.parametrize("name", ["aggregation", "partial-update"])
def test_an_engine_that_nobody_makes_is_refused(name: str) -> None:
    with pytest.raises(InvalidError, match=f"'merge-engine': expected deduplicate or first-row, found '{name}'"):
        with_engine(name)


def test_makers_look_at_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "aggregation", sums_by_name)
    assert with_engine("aggregation") == ColumnFold(("sum_a",))
