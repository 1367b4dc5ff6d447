"""Keys of every type: order, bucket and merge are those of Java Paimon, for single and for composite keys."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelet.sink.bucket.extractors import extractor_for
from tests.conformance import every_type
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.tables import (
    JAVA,
    LAKELET,
    NATIVE,
    PYTHON,
    Rows,
    Warehouse,
    arrow_rows,
    spell_table,
)
from tests.tiers.examples import examples

FORMATS = ("parquet", "orc", "avro")
EXAMPLES = examples(60)


def key_columns(file_format: str) -> list[tuple[str, str, list[Any]]]:
    """Every type that can be a key, with its edge values."""
    nested = ("ARRAY", "MAP", "ROW", "MULTISET")
    return [column for column in every_type.columns(file_format) if not column[1].startswith(nested)]


def key_values(values: list[Any]) -> list[Any]:
    """Without what Java takes for other keys: see `test_java_mixes_up_floats`."""
    return [value for value in values if str(value) not in ("nan", "-0.0")]


@pytest.mark.parametrize("file_format", FORMATS)
def test_one_column_of_every_type(warehouse: Warehouse, file_format: str) -> None:
    """A table per key type, written in turns by Java and Lakelet: one row per key, the later one's."""
    chosen = key_columns(file_format)
    # The types of keys are the same code for all formats; a third of them is sample enough of the others.
    chosen = [
        column for number, column in enumerate(chosen) if file_format == "parquet" or number % 3 == len(file_format) % 2
    ]
    for name, text, values in chosen:
        try:
            check_key_type(warehouse, name, text, key_values(values), file_format)
        except AssertionError as error:
            raise AssertionError(f"key of type {text}") from error


def check_key_type(warehouse: Warehouse, name: str, text: str, values: list[Any], file_format: str) -> None:
    made = KeyedTable(
        warehouse,
        LAKELET,
        name,
        [("k", text), ("v", "INT")],
        ["k"],
        options={"bucket": "2", "file.format": file_format},
        readers=(LAKELET, JAVA),
    )
    made.write(JAVA, [{"k": value, "v": 1} for value in values])
    made.write(LAKELET, [{"k": value, "v": 2} for value in values[::2]])
    made.write(LAKELET, [{"k": value, "v": 3} for value in values[:2]], ["-D", "+U"])
    made.check()
    made.check_get([{"k": value} for value in reversed(values)])
    made.compact()
    made.write(LAKELET, [{"k": value, "v": 4} for value in values[1:]])
    made.check()
    made.buckets()


PYPAIMON_KEYS = ("tiny", "small", "int", "big", "text", "varchar", "date", "dec9", "ts3", "ts6", "yes")


@pytest.mark.parametrize("name", PYPAIMON_KEYS)
def test_keys_that_pypaimon_reads_and_writes(warehouse: Warehouse, name: str) -> None:
    (text, values) = next((text, values) for known, text, values in key_columns("parquet") if known == name)
    made = KeyedTable(warehouse, LAKELET, "t", [("k", text), ("v", "INT")], ["k"], options={"bucket": "2"})
    for number, writer in enumerate((LAKELET, PYTHON, NATIVE, LAKELET, PYTHON)):
        made.write(writer, [{"k": value, "v": number} for value in values[number % 2 :]])
        made.check()


@pytest.mark.parametrize("file_format", FORMATS)
def test_composite_keys(warehouse: Warehouse, file_format: str) -> None:
    """Three columns of unlike types, in an order that is not that of the columns, part of them the partition."""
    pool = [column for column in key_columns(file_format) if column[0] not in ("bytes", "text")]
    source = random.Random(4)
    for number in range(3):
        chosen = source.sample(pool, 3)
        columns = [("v", "INT"), *((f"k{place}", text) for place, (_, text, _) in enumerate(chosen)), ("p", "INT")]
        made = KeyedTable(
            warehouse,
            JAVA,
            f"t{number}",
            columns,
            ["k2", "p", "k0", "k1"],
            partitioned_by=["p"],
            options={"bucket": "2", "file.format": file_format},
            readers=(LAKELET, JAVA),
        )
        values = [key_values(values)[:3] for name, _, values in chosen]
        keys = [{f"k{place}": value for place, value in enumerate(key)} for key in itertools.product(*values)]
        for step, writer in enumerate((LAKELET, JAVA, LAKELET)):
            rows = [{"v": step, **key, "p": place % 2} for place, key in enumerate(source.sample(keys, len(keys) // 2))]
            made.write(writer, rows, [source.choice(["+I", "+I", "-D"]) for _ in rows])
            try:
                made.check()
                made.check_get(rows)
            except AssertionError as error:
                raise AssertionError(f"{columns}") from error
        made.check_ordered()


def test_rows_come_in_the_order_that_java_sorts_keys(warehouse: Warehouse) -> None:
    """Java gives the rows of one file as they stand in it, which is its order of the keys."""
    for name, text, values in key_columns("parquet"):
        rows = [{"k": value, "n": number} for number, value in enumerate(key_values(values))]
        warehouse.create(LAKELET, name, [("k", text), ("n", "INT")], primary_key=["k"], options={"bucket": "1"})
        warehouse.write(JAVA, name, rows)
        expected = warehouse.java.read(warehouse.folder, f"db.{name}", columns=["n"])
        assert len(expected) == len(rows)
        assert warehouse.table(name).scan(["n"], ordered=True).to_arrow().to_pylist() == expected, text
        warehouse.write(LAKELET, name, rows[1:])
        assert warehouse.table(name).scan(["n"], ordered=True).to_arrow().to_pylist() == expected, text


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_java_mixes_up_floats(warehouse: Warehouse, kind: str) -> None:
    """Java's comparison of floats takes NaN for every other key and -0.0 for 0.0, so that it loses rows; Lakelet does not."""
    values = [-0.0, 0.0, 1.0, float("nan"), 2.0, float("inf")]
    for writer in (LAKELET, JAVA):
        columns = [("k", kind), ("v", "INT")]
        warehouse.create(LAKELET, writer, columns, primary_key=["k"], options={"bucket": "1"})
        warehouse.write(writer, writer, [{"k": value, "v": number} for number, value in enumerate(values)])
    assert [row["v"] for row in warehouse.table(LAKELET).scan(ordered=True).to_arrow().to_pylist()] == [
        0,
        1,
        2,
        4,
        5,
        3,
    ]
    assert len(warehouse.rows(JAVA, JAVA)) < len(values)
    warehouse.write(LAKELET, LAKELET, [{"k": value, "v": 10} for value in values[3:]])
    found = {row["k"]: row["v"] for row in warehouse.rows(LAKELET, LAKELET)}
    assert found == {"-0.0": 0, "0.0": 1, "1.0": 2, "NaN": 10, "2.0": 10, "Infinity": 10}


# ---------------------------------------------------------------- hashes


def _one_nan(value: float) -> float:
    """Java is given a NaN as text, which has one form; Hypothesis draws others, and a hash tells them apart."""
    return math.nan if math.isnan(value) else value


_ATOMS: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32).map(_one_nan),
    "DOUBLE": st.floats().map(_one_nan),
    "DECIMAL(9, 2)": st.decimals(-9999999, 9999999, places=2),
    "DECIMAL(18, 4)": st.decimals(-99999999999999, 99999999999999, places=4),
    "DECIMAL(38, 10)": st.decimals(-(10**27), 10**27, places=10),
    "STRING": st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    "CHAR(8)": st.text("abz数é ", min_size=8, max_size=8),
    "VARCHAR(9)": st.text("abz数é ", max_size=9),
    "BYTES": st.binary(max_size=20),
    "BINARY(7)": st.binary(min_size=7, max_size=7),
    "VARBINARY(9)": st.binary(max_size=9),
    "DATE": st.dates(),
    "TIME(3)": st.times().map(lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000)),
    "TIMESTAMP(0)": st.integers(-(10**10), 10**11).map(lambda value: value * 1000),
    "TIMESTAMP(3)": st.integers(-(10**13), 10**14),
    "TIMESTAMP(6)": st.integers(-(10**16), 10**17),
    "TIMESTAMP(9)": st.integers(-(2**63) + 1, 2**63 - 1),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": st.integers(-(10**13), 10**14),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": st.integers(-(10**16), 10**17),
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": st.integers(-(2**63) + 1, 2**63 - 1),
}


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[str], Rows]:
    """The types of one to four key columns, and rows of them."""
    types = draw(st.lists(st.sampled_from(list(_ATOMS)), min_size=1, max_size=4))
    row = st.fixed_dictionaries({f"k{place}": _ATOMS[text] for place, text in enumerate(types)})
    return types, draw(st.lists(row, min_size=8, max_size=8))


def test_random_keys_hash_as_in_java(warehouse: Warehouse) -> None:
    """The hash that dynamic buckets index, and the bucket that a fixed number of them gives, asked of Java itself."""
    numbers = itertools.count()

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(keys(), st.booleans())
    def check(drawn: tuple[list[str], Rows], dynamic: bool) -> None:
        types, rows = drawn
        name = f"t{next(numbers)}"
        columns = [(f"k{place}", text) for place, text in enumerate(types)]
        # The order of the key is not that of the columns.
        key = [column for column, _ in reversed(columns)]
        options = {} if dynamic else {"bucket": "1013"}
        warehouse.create(LAKELET, name, columns, primary_key=key, options=options)
        schema = warehouse.table(name).schema
        data = arrow_rows(rows, schema.fields)
        extracted = extractor_for(schema).extract(data.to_batches()[0])
        found = extracted.key_hashes if dynamic else extracted.buckets
        assert found is not None
        expected = warehouse.java.buckets(warehouse.folder, f"db.{name}", spell_table(data, schema.fields))
        assert found.tolist() == expected, (types, key)

    check()
