"""Rows by key, against what a dictionary says, from files of every shape."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.schema_change.evolution import add_column, change_type, rename_column
from lakelet.model.type_parser import parse_type
from lakelet.read.lookup.block_cache import BlockCache
from lakelet.read.lookup.point_reader import PointReader
from tests.tiers.examples import examples
from tests.unit.read.key_value_table import FOLDER, KeyValueTable, schema_of_columns

COLUMNS = {"id": "BIGINT", "name": "STRING", "v": "INT"}


def keys_of(table: KeyValueTable, keys: Sequence[Sequence[Any]]) -> pa.Table:
    fields = table.schema.trimmed_key_fields
    return pa.table(
        {field.name: pa.array([key[place] for key in keys], to_arrow(field.type)) for place, field in enumerate(fields)}
    )


def get_many(
    table: KeyValueTable,
    keys: Sequence[Sequence[Any]],
    columns: Sequence[str] | None = None,
    cache: BlockCache | None = None,
) -> dict[int, dict[str, Any]]:
    """The rows found, by the place of their key; the same rows are found one by one."""
    reader = PointReader(
        table.home, table.schema, columns or table.schema.names, table.schema_of, cache=cache or BlockCache()
    )
    asked = keys_of(table, keys)
    rows, places = reader.get_many([(table.split(), np.arange(asked.num_rows))], asked)
    assert rows.schema == reader.schema
    assert (np.diff(places) > 0).all()
    found = dict(zip(places.tolist(), rows.to_pylist(), strict=True))
    for number, place in enumerate(range(0, asked.num_rows, asked.num_rows // 6 + 1)):
        if cache is None and number < 2:
            # From the files, rather than with what is in memory by now.
            reader = PointReader(
                table.home, table.schema, columns or table.schema.names, table.schema_of, cache=BlockCache()
            )
        one = reader.get([(table.split(), np.arange(1))], asked.slice(place, 1))
        assert repr(one) == repr(found.get(place))
    return found


def row(key: int, v: int | None = None, name: str = "n") -> dict[str, Any]:
    return {"id": key, "name": name, "v": v}


def simple(**options: str) -> KeyValueTable:
    return KeyValueTable(schema_of_columns(COLUMNS, ["id"], **options))


class TestNewest:
    def test_the_greatest_sequence_wins_whatever_the_order_of_files(self) -> None:
        table = simple()
        table.write([(7, 0, row(1, 70)), (1, 0, row(2, 10))])
        table.write([(3, 0, row(1, 30)), (4, 0, row(2, 40)), (5, 0, row(3, 50))])
        found = get_many(table, [[1], [2], [3], [4]])
        assert {place: found[place]["v"] for place in found} == {0: 70, 1: 40, 2: 50}

    def test_a_delete_hides_older_rows_and_only_those(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 1)), (2, 0, row(2, 2)), (3, 0, row(3, 3))])
        table.write([(4, 3, row(1)), (0, 3, row(2)), (5, 1, row(3))])
        assert get_many(table, [[1], [2], [3]]) == {1: row(2, 2)}

    def test_an_unknown_number_of_deletes_is_looked_up(self) -> None:
        table = simple()
        table.write([(1, 3, row(1, 1)), (2, 2, row(2, 2))], deletes_known=False)
        assert get_many(table, [[1], [2]]) == {1: row(2, 2)}

    def test_ignored_deletes_do_nothing(self) -> None:
        table = simple(ignore__delete="true")
        table.write([(1, 0, row(1, 1))])
        table.write([(2, 3, row(1, 2)), (3, 3, row(2, 3))])
        assert get_many(table, [[1], [2]]) == {0: row(1, 1)}

    @pytest.mark.parametrize(("order", "winner"), [("ascending", 9), ("descending", 3)])
    def test_rule_16_sequence_fields_go_before_the_sequence_and_null_loses(self, order: str, winner: int) -> None:
        table = simple(sequence_field="v", sequence_field_sort__order=order)
        table.write([(1, 0, row(1, 9)), (2, 0, row(2, 5, "old")), (1, 0, row(3, None))])
        table.write([(5, 0, row(1, 3)), (9, 0, row(2, 5, "new")), (2, 0, row(3, 1))])
        table.write([(8, 3, row(1, None)), (7, 3, row(3, None))])
        found = get_many(table, [[1], [2], [3]])
        assert found == {0: row(1, winner), 1: row(2, 5, "new"), 2: row(3, 1)}

    def test_a_file_may_hold_a_key_more_than_once(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 1)), (2, 0, row(1, 2)), (3, 0, row(1, 3)), (4, 0, row(2, 4))], group_rows=2)
        assert get_many(table, [[1], [2]]) == {0: row(1, 3), 1: row(2, 4)}

    @pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
    def test_deletion_vectors_count_rows_of_the_file(self, file_format: str) -> None:
        table = simple()
        file = table.write([(n, 0, row(n, n)) for n in range(10)], level=1, group_rows=3, file_format=file_format)
        table.hide(file, [0, 4, 9])
        assert sorted(get_many(table, [[n] for n in range(10)])) == [1, 2, 3, 5, 6, 7, 8]


class TestKeys:
    def test_the_same_key_may_be_asked_twice(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 1))])
        assert get_many(table, [[1], [9], [1]]) == {0: row(1, 1), 2: row(1, 1)}

    def test_some_columns_in_any_order(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 5, "x"))])
        assert get_many(table, [[1]], ["v", "id"]) == {0: {"v": 5, "id": 1}}

    def test_null_is_no_key(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 1))])
        with pytest.raises(InvalidError, match="never NULL"):
            get_many(table, [[None]])

    def test_a_table_without_a_key_is_refused(self) -> None:
        table = simple()
        with pytest.raises(InvalidError, match="no primary key"):
            PointReader(table.home, replace(table.schema, primary_keys=()), ["v"], table.schema_of)

    def test_text_that_begins_alike_or_holds_zeros(self) -> None:
        table = KeyValueTable(schema_of_columns({"a": "STRING", "b": "STRING", "v": "INT"}, ["a", "b"]))
        texts = ["", "a", "a\0", "a\0\0", "a\0b", "ab", "x" * 300, "x" * 300 + "y"]
        pairs = [(a, b) for a in texts for b in texts]
        held = sorted((a.encode(), b.encode()) for a, b in pairs[::2])
        rows = [(n, 0, {"a": a.decode(), "b": b.decode(), "v": n}) for n, (a, b) in enumerate(held)]
        table.write(rows, group_rows=5)
        expected = {(row[2]["a"], row[2]["b"]): row[2] for row in rows}
        found = get_many(table, pairs)
        assert found == {place: expected[pair] for place, pair in enumerate(pairs) if pair in expected}


class TestBlocks:
    @pytest.mark.parametrize(("text", "kept"), [("k", False), ("k\0", True), ("x" * 300, True)])
    def test_keys_are_kept_beside_their_codes_only_where_those_do_not_tell_them_apart(
        self, text: str, *, kept: bool
    ) -> None:
        table = KeyValueTable(schema_of_columns({"a": "STRING", "b": "INT", "v": "INT"}, ["a", "b"]))
        table.write([(n, 0, {"a": f"{n}", "b": n, "v": n}) for n in range(9)] + [(9, 0, {"a": text, "b": 9, "v": 9})])
        cache = BlockCache()
        asked = [("3", 3), (text, 9), (text, 8), (f"{text}\0", 9), ("3\0", 3)]
        assert get_many(table, asked, cache=cache) == {0: {"a": "3", "b": 3, "v": 3}, 1: {"a": text, "b": 9, "v": 9}}
        ((block, nbytes),) = [value for name, value in cache._values.items() if name[2:3] == ("keys",)]
        assert (block.columns is not None) == kept
        assert nbytes > block.codes.nbytes
        # The values of a key are those that were asked for: its columns are not read a second time.
        assert {name[4] for name in cache._values if name[2:3] == ("column",)} == {"v"}

    def test_other_row_groups_are_not_read(self) -> None:
        table = simple()
        table.write([(n, 0, row(n, n)) for n in range(2000)], group_rows=100)
        cache = BlockCache()
        assert get_many(table, [[150], [151]], cache=cache) == {0: row(150, 150), 1: row(151, 151)}
        groups = {name[3] for name in cache._values if name[2:3] == ("keys",)}
        assert groups == {1}

    def test_a_row_group_without_statistics_takes_all_keys(self) -> None:
        """Arrow writes no range of text as long as this."""
        table = KeyValueTable(schema_of_columns({"a": "STRING", "v": "INT"}, ["a"]))
        texts = sorted(["a", "b", "k" * 5000, "m", "x", "z"])
        table.write([(n, 0, {"a": text, "v": n}) for n, text in enumerate(texts)], group_rows=2)
        footer = pq.read_metadata(io.BytesIO(table.store.get(f"{FOLDER}/{table.files[0].name}")))
        ranged = [footer.row_group(group).column(3).statistics.has_min_max for group in range(3)]
        assert ranged == [True, False, True]
        found = get_many(table, [[text] for text in texts], ["v"])
        assert found == {n: {"v": n} for n in range(6)}

    def test_what_is_in_memory_is_not_read_again(self) -> None:
        table, cache = simple(), BlockCache()
        table.write([(n, 0, row(n, n)) for n in range(20)])
        assert get_many(table, [[3]], cache=cache) == {0: row(3, 3)}
        table.store.delete([f"{FOLDER}/{file.name}" for file in table.files])
        assert get_many(table, [[4], [40]], cache=cache) == {0: row(4, 4)}

    def test_the_cache_stays_within_its_limit(self) -> None:
        table, cache = simple(lookup_cache__max__memory__size="20 kb"), BlockCache()
        table.write([(n, 0, row(n, n)) for n in range(5000)], group_rows=500)
        for key in range(0, 5000, 250):
            assert get_many(table, [[key]], cache=cache) == {0: row(key, key)}
            assert cache.weight <= 20 << 10

    def test_a_row_group_that_a_bloom_filter_rules_out_is_not_read(self) -> None:
        table, cache = (
            KeyValueTable(schema_of_columns({"a": "STRING", "b": "INT", "v": "INT"}, ["a", "b"])),
            BlockCache(),
        )
        rows = [(n, 0, {"a": f"k{n // 2:03}", "b": n % 2 * 10, "v": n}) for n in range(100)]
        file = table.write(rows)
        path = f"{FOLDER}/{file.name}"
        data = io.BytesIO()
        with_filters = {name: {"ndv": 100, "fpp": 0.001} for name in ("a", "b")}
        pq.write_table(pq.read_table(io.BytesIO(table.store.get(path))), data, bloom_filter_options=with_filters)
        table.store.put(path, data.getvalue())
        table.files[0] = replace(file, size=len(data.getvalue()))
        assert get_many(table, [["k001x", 0], ["k010", 5]], cache=cache) == {}
        assert not [name for name in cache._values if "keys" in name]
        assert get_many(table, [["k001x", 0], ["k010", 10]], cache=cache) == {1: rows[21][2]}

    @pytest.mark.parametrize("file_format", ["orc", "avro"])
    def test_other_formats(self, file_format: str) -> None:
        table = simple()
        table.write([(n, 0, row(n, n)) for n in range(0, 20, 2)], file_format=file_format)
        table.write([(n + 100, n % 4, row(n, -n)) for n in range(0, 20, 3)], file_format="parquet")
        expected = {n: row(n, n) for n in range(0, 20, 2)}
        for n in range(0, 20, 3):
            expected[n] = row(n, -n)
            if n % 4 % 2:
                del expected[n]
        assert get_many(table, [[n] for n in range(20)]) == expected

    def test_a_file_that_is_gone_is_named(self) -> None:
        table = simple()
        file = table.write([(1, 0, row(1, 1))])
        table.store.delete([f"{FOLDER}/{file.name}"])
        with pytest.raises(NotFoundError, match=r"data-0\.parquet is gone: snapshot 1 was expired"):
            get_many(table, [[1]])

    def test_damage_is_named(self) -> None:
        table = simple()
        file = table.write([(1, 0, row(1, 1))])
        path = f"{FOLDER}/{file.name}"
        table.store.put(path, b"PAR1" + bytes(file.size - 8) + b"PAR1")
        with pytest.raises(CorruptionError, match=r"data-0\.parquet"):
            get_many(table, [[1]])


class TestEvolved:
    def test_a_key_column_has_another_name_than_in_older_files(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 10)), (2, 0, row(2, 20))])
        table.evolve(rename_column(table.schema, ["id"], "key"))
        assert get_many(table, [[2], [3]]) == {0: {"key": 2, "name": "n", "v": 20}}

    def test_older_files_are_read_in_the_columns_of_now(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 10, "one")), (2, 0, row(2, 20, "two"))])
        schema = rename_column(table.schema, ("id",), "key")
        schema = change_type(schema, ("v",), parse_type("BIGINT"))
        schema = rename_column(schema, ("name",), "title")
        table.evolve(add_column(schema, ("extra",), parse_type("STRING")))
        table.write([(3, 0, {"key": 2, "v": 2**40, "title": "deux", "extra": "e"})])
        assert get_many(table, [[1], [2]]) == {
            0: {"key": 1, "title": "one", "v": 10, "extra": None},
            1: {"key": 2, "title": "deux", "v": 2**40, "extra": "e"},
        }
        assert get_many(table, [[1]], ["extra"]) == {0: {"extra": None}}

    def test_a_column_swapped_for_one_of_its_name_is_another(self) -> None:
        table = simple()
        table.write([(1, 0, row(1, 10, "one"))])
        schema = rename_column(table.schema, ("v",), "w")
        table.evolve(add_column(schema, ("v",), parse_type("INT")))
        assert get_many(table, [[1]]) == {0: {"id": 1, "name": "one", "w": 10, "v": None}}


KEY_TYPES: dict[str, st.SearchStrategy[Any]] = {
    "TINYINT": st.integers(-5, 5),
    "INT": st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3),
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "STRING": st.text(max_size=12) | st.sampled_from(["", "a", "a\0", "ab"]),
    "BYTES": st.binary(max_size=6),
    "BOOLEAN": st.booleans(),
    "DATE": st.dates(),
    "DECIMAL(9, 2)": st.decimals(-999, 999, places=2),
    "DECIMAL(30, 1)": st.decimals(-(10**27), 10**27, places=1),
    "DOUBLE": st.sampled_from([float("-inf"), -1.5, -0.0, 1e-300, 2.5, float("inf")]),
    "TIMESTAMP(3)": st.datetimes(),
    "TIMESTAMP(6)": st.datetimes(),
}


def _storable(value: Any, text: str) -> Any:
    return value.replace(microsecond=value.microsecond // 1000 * 1000) if text == "TIMESTAMP(3)" else value


@st.composite
def tables(draw: st.DrawFn) -> tuple[KeyValueTable, list[Any], dict[Any, Any]]:
    """Files of random keys and kinds, keys to ask for, and what a dictionary has in the end."""
    types = draw(st.lists(st.sampled_from(list(KEY_TYPES)), min_size=1, max_size=3))
    key = st.tuples(*(KEY_TYPES[text].map(lambda value, text=text: _storable(value, text)) for text in types))
    pool = draw(st.lists(key, min_size=1, max_size=40, unique_by=repr))
    names = [f"k{place}" for place in range(len(types))]
    options = {"lookup_cache__max__memory__size": draw(st.sampled_from(["0 b", "2 kb", "256 mb"]))}
    table = KeyValueTable(schema_of_columns({**dict(zip(names, types, strict=True)), "v": "INT"}, names, **options))
    arrow = [to_arrow(field.type) for field in table.schema.trimmed_key_fields]
    model: dict[Any, Any] = {}
    sequence = 0
    for _ in range(draw(st.integers(1, 5))):
        written = draw(st.lists(st.sampled_from(pool), min_size=1, unique_by=repr))
        columns = [pa.array([one[place] for one in written], data_type) for place, data_type in enumerate(arrow)]
        order = pa.compute.sort_indices(
            pa.table([column.view(pa.binary()) if column.type == pa.string() else column for column in columns], names),
            sort_keys=[(name, "ascending") for name in names],
        ).to_pylist()
        rows = []
        for place in order:
            kind = draw(st.sampled_from([0, 0, 2, 3]))
            values = {**dict(zip(names, written[place], strict=True)), "v": sequence}
            rows.append((sequence, kind, values))
            model[repr(written[place])] = None if kind & 1 else sequence
            sequence += 1
        table.write(
            rows,
            thin=draw(st.booleans()),
            group_rows=draw(st.sampled_from([1, 3, None])),
            file_format=draw(st.sampled_from(["parquet", "parquet", "avro"])),
        )
    return table, draw(st.lists(st.sampled_from(pool), min_size=1)), model


@settings(max_examples=examples(200), deadline=None)
@given(tables())
def test_lookups_give_what_a_dictionary_has(drawn: tuple[KeyValueTable, list[Any], dict[Any, Any]]) -> None:
    table, asked, model = drawn
    cache = BlockCache()
    expected = {place: model[repr(key)] for place, key in enumerate(asked) if model.get(repr(key)) is not None}
    for _ in range(2):
        found = get_many(table, asked, ["v"], cache)
        assert {place: row["v"] for place, row in found.items()} == expected
