from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.format.data.data_file_format import WriteSettings
from lakelet.format.data.parquet_file import ParquetFormat, needs_int96, open_parquet
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.types import Array, Map, Row
from lakelet.storage.memory import MemoryStore
from tests.unit.format.every_type import PATH, every_type, field, read, write

FORMAT = ParquetFormat()
_ZONES = ("", " WITH LOCAL TIME ZONE")
_TIMES: dict[str, list[Any]] = {
    f"TIMESTAMP({digits}){zone}": [-1, None, 253402300799 * 10**unit + 999, 0, -62135596800 * 10**unit]
    for digits, unit in ((0, 3), (3, 3), (6, 6))
    for zone in _ZONES
}
_NANOS: dict[str, list[Any]] = {
    f"TIMESTAMP(9){zone}": [-1, None, -999_999_999, 2**63 - 2**20, -(2**63) + 2**20, 0, -86_400_000_000_001]
    for zone in _ZONES
}


def parquet(store: MemoryStore) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(store.get(PATH)))


def column(store: MemoryStore, name: str) -> Any:
    schema = parquet(store).schema
    return next(leaf for leaf in (schema.column(i) for i in range(len(schema))) if leaf.path.split(".")[0] == name)


def stored(values: list[Any], text: str, **options: Any) -> tuple[list[Any], MemoryStore]:
    fields = [field(0, "a", text)]
    return fields, write(FORMAT, fields, [pa.table([values], schema=arrow_schema(fields))], **options)


class TestRoundTrip:
    @pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "none"])
    def test_every_type_comes_back(self, compression: str) -> None:
        fields, table = every_type(60, extra=_TIMES)
        parts = [table.slice(0, 11), table.slice(11)]
        store = write(FORMAT, fields, parts, settings=WriteSettings(compression=compression))
        got = read(FORMAT, store, fields, batch_rows=7)
        assert got.schema.types == table.schema.types
        assert got.to_pylist() == table.to_pylist()
        assert parquet(store).num_row_groups == 2

    def test_every_type_comes_back_beside_nanoseconds(self) -> None:
        """Only TIMESTAMP(9) is INT96; the others keep their years 1 and 9999."""
        fields, table = every_type(60, extra=_TIMES | _NANOS)
        got = read(FORMAT, write(FORMAT, fields, [table]), fields, batch_rows=7)
        assert got.schema.types == table.schema.types
        for name in table.column_names:
            assert got.column(name).combine_chunks().equals(table.column(name).combine_chunks()), name

    def test_nested_nanoseconds_come_back(self) -> None:
        inner = Row((field(1, "n", "TIMESTAMP(9)"), field(2, "m", "TIMESTAMP(3)")))
        fields = [
            field(0, "a", Array(inner)),
            field(3, "b", Map(field(0, "", "STRING").type, field(0, "", "TIMESTAMP(9)").type)),
        ]
        far = 253402300799999
        values = [[{"n": -1, "m": far}, None, {"n": None, "m": -1}], None, [], [{"n": 5, "m": None}]]
        maps = [[("x", -5), ("y", None)], [], None, [("z", 7)]]
        table = pa.table([values * 10, maps * 10], schema=arrow_schema(fields))
        got = read(FORMAT, write(FORMAT, fields, [table]), fields, batch_rows=3)
        assert got.equals(pa.table(table.columns, schema=got.schema))

    def test_columns_are_projected_in_the_order_of_the_fields(self) -> None:
        fields, table = every_type(20, extra=_NANOS)
        got = read(FORMAT, write(FORMAT, fields, [table]), fields, ["c26", "c3", "id"])
        assert got.column_names == ["id", "c3", "c26"]
        assert got.to_pylist() == table.select(got.column_names).to_pylist()

    def test_a_name_with_a_dot_is_one_name(self) -> None:
        fields = [field(0, "a", Row((field(1, "b", "INT"),))), field(2, "a.b", "INT")]
        table = pa.table([[{"b": 1}], [2]], schema=arrow_schema(fields))
        assert read(FORMAT, write(FORMAT, fields, [table]), fields, ["a.b"]).to_pylist() == [{"a.b": 2}]

    def test_rows_are_counted_without_columns(self) -> None:
        fields, table = every_type(10)
        batches = FORMAT.read(write(FORMAT, fields, [table]), PATH, fields, [], batch_rows=4)
        assert [batch.num_rows for batch in batches] == [4, 4, 2]


class TestInt96:
    def test_only_nanoseconds_need_it(self) -> None:
        assert needs_int96([field(0, "a", Array(field(0, "", "TIMESTAMP(7)").type))])
        assert not needs_int96([field(0, "a", "TIMESTAMP(6)"), field(1, "b", "TIME(9)")])
        assert column(stored([1], "TIMESTAMP(9)")[1], "a").physical_type == "INT96"
        assert column(stored([1], "TIMESTAMP(6)")[1], "a").physical_type == "INT64"

    @pytest.mark.parametrize("year", [1, 1600, 2300, 2500, 9999])
    def test_a_time_that_nanoseconds_cannot_hold_is_refused(self, year: int) -> None:
        seconds = (year - 1970) * 31_556_952
        store = MemoryStore()
        with store.open_output(PATH) as output:
            values = pa.array([0, seconds * 1000], pa.timestamp("ms"))
            pq.write_table(pa.table({"a": values}), output, use_deprecated_int96_timestamps=True)
        assert read(FORMAT, store, [field(0, "a", "TIMESTAMP(3)")]).column("a").combine_chunks().equals(values)
        with pytest.raises(InvalidError, match=r"data-0.*column 'a'.*1677-09-21 to 2262-04-11"):
            read(FORMAT, store, [field(0, "a", "TIMESTAMP(9)")])

    def test_nanoseconds_in_int64_are_read_as_well(self) -> None:
        store = MemoryStore()
        with store.open_output(PATH) as output:
            pq.write_table(pa.table({"a": pa.array([-1, None, 5], pa.timestamp("ns"))}), output)
        got = read(FORMAT, store, [field(0, "a", "TIMESTAMP(9)")])
        assert got.column("a").combine_chunks().view(pa.int64()).to_pylist() == [-1, None, 5]


class TestLayout:
    def test_every_field_has_its_id(self) -> None:
        row = Row((field(4, "x", "INT"), field(5, "y", Array(field(0, "", "INT").type))))
        fields = [field(3, "m", Map(field(0, "", "STRING").type, Array(row)))]
        schema = parquet(write(FORMAT, fields, [])).schema_arrow
        entry = schema.field("m").type
        element = entry.item_field.type.value_field

        def number(of: pa.Field) -> int:
            return int(of.metadata[b"PARQUET:field_id"])

        base = 536870911
        assert number(schema.field("m")) == 3
        assert number(entry.key_field) == base - (3 * 1024 + 1)
        assert number(entry.item_field) == base + 3 * 1024 + 1
        assert number(element) == base + 3 * 1024 + 2
        assert [number(element.type.field(i)) for i in range(2)] == [4, 5]
        assert number(element.type.field("y").type.value_field) == base + 5 * 1024 + 1

    @pytest.mark.parametrize(("precision", "physical"), [(1, "INT32"), (9, "INT32"), (10, "INT64"), (18, "INT64")])
    def test_decimals_are_integers_up_to_18_digits(self, precision: int, physical: str) -> None:
        assert column(stored([None], f"DECIMAL({precision}, 0)")[1], "a").physical_type == physical

    def test_longer_decimals_are_bytes(self) -> None:
        assert column(stored([None], "DECIMAL(19, 0)")[1], "a").physical_type == "FIXED_LEN_BYTE_ARRAY"

    def test_columns_with_nan_have_no_ranges(self) -> None:
        """Rule 13: a footer ignores NaN, so that a reader that prunes by it would lose the row."""
        fields = [field(0, "nan", "DOUBLE"), field(1, "plain", "DOUBLE")]
        table = pa.table([[1.0, float("nan"), 3.0], [1.0, 2.0, 3.0]], schema=arrow_schema(fields))
        store = write(FORMAT, fields, [table], without_ranges=frozenset({"nan"}))
        group = parquet(store).metadata.row_group(0)
        nan, plain = group.column(0), group.column(1)
        assert nan.statistics is None or not nan.statistics.has_min_max
        assert (plain.statistics.min, plain.statistics.max) == (1.0, 3.0)

    def test_nested_columns_have_no_ranges(self) -> None:
        """Nobody looks for NaN inside of them."""
        fields = [field(0, "r", Row((field(1, "x", "DOUBLE"),))), field(2, "plain", "DOUBLE")]
        table = pa.table([[{"x": float("nan")}, {"x": 1.0}], [1.0, 2.0]], schema=arrow_schema(fields))
        group = parquet(write(FORMAT, fields, [table])).metadata.row_group(0)
        assert group.column(0).statistics is None
        assert group.column(1).statistics.has_min_max

    def test_all_columns_may_be_without_ranges(self) -> None:
        fields, store = stored([float("nan")], "DOUBLE", without_ranges=frozenset({"a"}))
        assert parquet(store).metadata.row_group(0).column(0).statistics is None
        assert len(read(FORMAT, store, fields)) == 1

    def test_a_wrong_compression_is_refused(self) -> None:
        with pytest.raises(InvalidError, match=r"file\.compression"):
            stored([1], "INT", settings=WriteSettings(compression="zip"))


class TestDamage:
    def test_a_cut_or_foreign_file_is_named(self) -> None:
        fields, table = every_type(50)
        data = write(FORMAT, fields, [table]).get(PATH)
        for damaged in (
            data[: len(data) // 2],
            data[:-1],
            b"no file at all",
            b"",
            data[:4] + bytes(2000) + data[2004:],
        ):
            store = MemoryStore()
            store.put(PATH, damaged)
            with pytest.raises(CorruptionError, match=PATH):
                read(FORMAT, store, fields)

    def test_a_cut_file_cannot_be_opened(self) -> None:
        store = stored([1], "INT")[1]
        store.put(PATH, store.get(PATH)[:-3])
        with pytest.raises(CorruptionError, match=PATH):
            open_parquet(store, PATH)

    def test_a_missing_column_is_named(self) -> None:
        store = write(FORMAT, [field(0, "a", "INT")], [])
        with pytest.raises(CorruptionError, match=r"data-0.*column b"):
            read(FORMAT, store, [field(0, "a", "INT"), field(1, "b", "INT")])

    def test_a_column_of_another_type_is_damage(self) -> None:
        store = stored(["x"], "STRING")[1]
        with pytest.raises(CorruptionError, match=PATH):
            read(FORMAT, store, [field(0, "a", "INT")])

    def test_a_missing_file_is_not_found(self) -> None:
        with pytest.raises(NotFoundError, match=PATH):
            read(FORMAT, MemoryStore(), [field(0, "a", "INT")])
