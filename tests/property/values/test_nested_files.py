"""Nested rows with NULLs at every depth come back from every file format, from the start of an array and from its middle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.format.data.data_file_format import WriteSettings
from lakelet.format.data.data_file_formats import data_file_format
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, renumber
from lakelet.storage.memory import MemoryStore
from tests.property import strategies
from tests.property.table_model import Column, Leaf, ListOf, MapOf, Struct, Type, found, plain, show, type_text
from tests.tiers.examples import examples

_LEAVES = ["INT", "STRING", "BOOLEAN", "DOUBLE", "DECIMAL(20, 4)", "TIMESTAMP(3)"]


def _deep_types() -> st.SearchStrategy[Type]:
    leaf: st.SearchStrategy[Type] = st.sampled_from(_LEAVES).map(Leaf)
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            inner.map(ListOf),
            inner.map(MapOf),
            st.lists(inner, min_size=1, max_size=2).map(
                lambda members: Struct([Column("ab"[index], member) for index, member in enumerate(members)])
            ),
        ),
        max_leaves=4,
    )


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_nested_values_survive(file_format: str, data: st.DataObject) -> None:
    kind = data.draw(_deep_types(), label="type")
    values: list[Any] = data.draw(st.lists(strategies.values(kind), min_size=1, max_size=8), label="values")
    start = data.draw(st.integers(0, len(values) - 1), label="start")
    fields = [Field(0, "c", renumber(parse_type(type_text(kind)), 1)[0])]
    table = pa.Table.from_pylist([{"c": plain(value, kind)} for value in values], schema=arrow_schema(fields))
    store = MemoryStore()
    output = store.open_output("t/f")
    writer = data_file_format(file_format).open_writer(output, fields, WriteSettings(), without_ranges=frozenset())
    writer.write(table.slice(start))
    writer.close()
    output.close()
    batches = data_file_format(file_format).read(store, "t/f", fields, ["c"], batch_rows=3)
    rows = [found(row["c"], kind) for batch in batches for row in batch.to_pylist()]
    assert rows == [show(value, kind) for value in values[start:]]
