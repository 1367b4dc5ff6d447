"""Functions that assemble values: random tables fold as the row model says, by machine code and by the interpreter."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.element_loops import element_loop, row_loop
from lakelet.lsm.engine.key_groups import KeyGroups
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.lsm.key_value_columns import VALUE_KIND
from lakelet.model.arrow.arrow_types import arrow_schema
from tests.property.engine_tables import KEY, SPECIAL, EngineTable
from tests.unit.read.key_value_table import schema_of_columns

KINDS = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}


class _Special(EngineTable):
    """A table with a column for each of the types that functions assemble."""

    def _columns(self, prefix: str, count: int, *, aggregated: bool) -> list[str]:
        names = []
        for number, type_ in enumerate(SPECIAL):
            name = f"{prefix}{number}"
            self.types[name] = type_
            self.functions[name] = self.random.choice(SPECIAL[type_])
            self.options[f"fields.{name}.aggregate-function"] = self.functions[name]
            self._set(name, self.functions[name])
            names.append(name)
        return names


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_random_columns_fold_as_the_model_says(seed: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for loop in (element_loop, row_loop):
        monkeypatch.setattr(loop, "enabled", compiled)
        loop.load_if_enabled()
    table = _Special(seed, "aggregation")
    schema = schema_of_columns(dict(table.columns), [KEY])
    schema = replace(schema, options={**schema.options, **table.options})
    engine = table_engine(schema)
    rows = sorted([row for _ in range(12) for row in table.rows()], key=lambda row: row[KEY])
    starts = np.flatnonzero(np.diff([row[KEY] for row in rows], prepend=-1))
    types = arrow_schema(schema.fields)
    columns = {name: pa.array([row[name] for row in rows], types.field(name).type) for name in types.names}
    kinds = pa.array([KINDS[row["_kind"]] for row in rows], pa.int8())
    batch = pa.record_batch({VALUE_KIND: kinds, **columns})
    names = [name for name in types.names if name != KEY]
    folded = engine.fold(KeyGroups(batch, np.arange(len(rows)), starts), names)  # type: ignore[union-attr]
    for at, (start, end) in enumerate(zip(starts, [*starts[1:], len(rows)], strict=True)):
        wanted = table.rules.fold(rows[start:end])
        found = {name: column[at].as_py() for name, column in zip(names, folded.columns, strict=True)}
        assert found == {name: wanted[name] for name in names}, (table.options, rows[start:end])


def _decimals(values: list[tuple[str, str]]) -> Any:
    options = {"merge-engine": "aggregation", "fields.p.aggregate-function": "product"}
    schema = replace(schema_of_columns({"k": "INT NOT NULL", "p": "DECIMAL(5, 2)"}, ["k"]), options=options)
    rows = pa.record_batch(
        {
            VALUE_KIND: pa.array([KINDS[kind] for kind, _ in values], pa.int8()),
            "p": pa.array([Decimal(text) for _, text in values], pa.decimal128(5, 2)),
        }
    )
    groups = KeyGroups(rows, np.arange(len(values)), np.array([0]))
    return table_engine(schema).fold(groups, ["p"]).columns[0][0].as_py()  # type: ignore[union-attr]


def test_products_of_decimals_are_rounded_half_up() -> None:
    assert _decimals([("+I", "1.05"), ("+I", "-0.50")]) == Decimal("-0.53")
    assert _decimals([("+I", "1.00"), ("-U", "8.00")]) == Decimal("0.13")
    assert _decimals([("+I", "999.99"), ("+I", "2.00")]) is None


def test_a_decimal_that_leaves_digits_without_end_cannot_be_taken_back() -> None:
    with pytest.raises(InvalidError, match="cannot take 3 back"):
        _decimals([("+I", "1.00"), ("-U", "3.00")])


def test_products_of_many_digits_are_exact() -> None:
    options = {"merge-engine": "aggregation", "fields.p.aggregate-function": "product"}
    schema = replace(schema_of_columns({"k": "INT NOT NULL", "p": "DECIMAL(38, 3)"}, ["k"]), options=options)
    values = [Decimal("9" * 35 + ".999"), Decimal("-1.000"), None, Decimal("1.000")]
    rows = pa.record_batch({"p": pa.array(values, pa.decimal128(38, 3))})
    groups = KeyGroups(rows, np.arange(4), np.array([0]))
    folded = table_engine(schema).fold(groups, ["p"])  # type: ignore[union-attr]
    assert str(folded.columns[0][0].as_py()) == "-" + "9" * 35 + ".999"
