import itertools
import random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.format.data.data_file_format import WriteSettings
from lakelet.format.data.orc_file import OrcFormat
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.types import Array, Field, Row
from lakelet.storage.memory import MemoryStore
from tests.unit.format.every_type import PATH, every_type, field, read, write

FORMAT = OrcFormat()
_EARLY = -86400 * 365 * 60
_TIMES: dict[str, list[Any]] = {
    f"TIMESTAMP({digits}){zone}": [_EARLY * 10**unit, None, 1_700_000_000 * 10**unit + 1, 0, -(10**unit)]
    for digits, unit in ((0, 3), (3, 3), (6, 6), (9, 9))
    for zone in ("", " WITH LOCAL TIME ZONE")
}


def orc_file(store: MemoryStore) -> orc.ORCFile:
    return orc.ORCFile(pa.BufferReader(store.get(PATH)))


class TestRoundTrip:
    @pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "zlib", "none", "ZSTD"])
    def test_every_type_comes_back(self, compression: str) -> None:
        fields, table = every_type(60, extra=_TIMES)
        store = write(FORMAT, fields, [table], settings=WriteSettings(compression=compression))
        got = read(FORMAT, store, fields, batch_rows=7)
        assert got.schema.types == table.schema.types
        assert got.to_pylist() == table.to_pylist()

    def test_slices_of_nested_columns_are_written_as_they_are(self) -> None:
        fields, table = every_type(5000)
        bounds = [0, 3, 1030, 4000, 5000]
        parts = [table.slice(begin, end - begin) for begin, end in itertools.pairwise(bounds)]
        store = write(FORMAT, fields, [*parts[:2], pa.concat_tables(parts[2:])])
        assert read(FORMAT, store, fields).to_pylist() == table.to_pylist()

    def test_columns_are_projected_in_the_order_of_the_fields(self) -> None:
        fields, table = every_type(20)
        got = read(FORMAT, write(FORMAT, fields, [table]), fields, ["c26", "c3", "id"])
        assert got.column_names == [name for name in table.column_names if name in ("id", "c3", "c26")]
        assert got.to_pylist() == table.select(got.column_names).to_pylist()

    def test_a_name_with_a_dot_is_one_name(self) -> None:
        fields = [field(0, "a", Row((field(1, "b", "INT"),))), field(2, "a.b", "INT")]
        table = pa.table([[{"b": 1}], [2]], schema=arrow_schema(fields))
        assert read(FORMAT, write(FORMAT, fields, [table]), fields, ["a.b"]).to_pylist() == [{"a.b": 2}]

    def test_rows_are_counted_without_columns(self) -> None:
        fields, table = every_type(10)
        batches = FORMAT.read(write(FORMAT, fields, [table]), PATH, fields, [], batch_rows=4)
        assert [batch.num_rows for batch in batches] == [4, 4, 2]

    def test_a_file_without_rows_has_its_columns(self) -> None:
        fields, table = every_type(5)
        for tables in ([], [table.slice(0, 0)]):
            store = write(FORMAT, fields, tables)
            assert read(FORMAT, store, fields).num_rows == 0
            assert orc_file(store).schema.names == table.column_names

    def test_stripes_are_read_one_after_another(self) -> None:
        fields = [field(0, "s", "STRING")]
        randomness = random.Random(7)
        table = pa.table([[randomness.randbytes(500).hex() for _ in range(4000)]], schema=arrow_schema(fields))
        settings = WriteSettings(extra={"orc.stripe.size": "100000"})
        store = write(FORMAT, fields, [table.slice(0, 2000), table.slice(2000)], settings=settings)
        assert orc_file(store).nstripes > 1
        assert read(FORMAT, store, fields, batch_rows=300).equals(table)


class TestLayout:
    def test_ids_are_attributes(self) -> None:
        fields = [field(3, "a", Array(Row((field(7, "x", "INT"),)))), field(4, "t", "TIME(3)")]
        schema = orc_file(write(FORMAT, fields, [arrow_schema(fields).empty_table()])).schema
        element = schema.field("a").type.value_field
        assert schema.field("a").metadata == {b"paimon.id": b"3"}
        assert element.metadata == {b"paimon.id": b"%d" % (536870911 + 3 * 1024 + 1)}
        assert element.type.field("x").metadata == {b"paimon.id": b"7"}
        assert schema.field("t").type == pa.int32()

    def test_a_local_time_zone_is_an_instant(self) -> None:
        fields = [field(0, "a", "TIMESTAMP(3)"), field(1, "b", "TIMESTAMP(3) WITH LOCAL TIME ZONE")]
        schema = orc_file(write(FORMAT, fields, [arrow_schema(fields).empty_table()])).schema
        assert [schema.field(i).type.tz for i in range(2)] == [None, "UTC"]

    @pytest.mark.parametrize("by_java", [False, True])
    def test_spaces_are_cut_off_a_char_where_java_padded_it(self, by_java: bool) -> None:
        fields = [
            field(0, "c", "CHAR(5)"),
            field(1, "v", "VARCHAR(5)"),
            field(2, "n", Array(field(0, "", "CHAR(5)").type)),
        ]
        table = pa.table(
            [["ab   ", None, " a"], ["ab ", None, ""], [["x ", None], None, []]], schema=arrow_schema(fields)
        )
        store = write(FORMAT, fields, [table], settings=WriteSettings(compression="none"))
        if by_java:
            self.say_java_wrote_it(store)
        got = read(FORMAT, store, fields)
        padded = {"c": ["ab", None, " a"], "v": ["ab ", None, ""], "n": [["x", None], None, []]}
        assert got.to_pydict() == (padded if by_java else table.to_pydict())

    def say_java_wrote_it(self, store: MemoryStore) -> None:
        data = store.get(PATH)
        # Field 9 of the footer, which is the last but for the postscript: 0 is Java, 1 is C++.
        place = data.rindex(b"\x48\x01")
        store.delete([PATH])
        store.put(PATH, data[:place] + b"\x48\x00" + data[place + 2 :])
        assert orc_file(store).writer == "ORC_JAVA"

    def test_the_size_grows_before_a_stripe_is_written(self) -> None:
        fields, table = every_type(1000)
        with MemoryStore().open_output(PATH) as output:
            writer = FORMAT.open_writer(output, fields, WriteSettings(), without_ranges=frozenset())
            writer.write(table)
            once = writer.size()
            writer.write(table)
            assert 0 < once < writer.size()


class TestRefusals:
    @pytest.mark.parametrize("digits", [3, 6, 9])
    @pytest.mark.parametrize("value", [-1, -1001, -(10**9) - 1])
    def test_a_fraction_before_1970_is_refused(self, digits: int, value: int) -> None:
        self.refused(f"TIMESTAMP({digits})", value, "before 1970 with a fraction")

    @pytest.mark.parametrize("seconds", [253402300799, -62135596800])
    def test_a_time_that_could_not_be_read_is_refused(self, seconds: int) -> None:
        self.refused("TIMESTAMP(3)", seconds * 1000, "1677-09-22 to 2262-04-11")

    def refused(self, text: str, value: int, message: str) -> None:
        inner = field(1, "x", text)
        fields = [Field(0, "a", Array(Row((inner,))))]
        table = pa.table([[[{"x": value}]]], schema=arrow_schema(fields))
        with pytest.raises(InvalidError, match=f"column 'a'.*{message}"):
            write(FORMAT, fields, [table])

    def test_a_null_hides_what_is_under_it(self) -> None:
        fields = [field(0, "a", Row((field(1, "x", "TIMESTAMP(3)"),)))]
        hidden = pa.StructArray.from_arrays(
            [pa.array([-1, 5], pa.timestamp("ms"))], ["x"], mask=pa.array([True, False])
        )
        store = write(FORMAT, fields, [pa.table([hidden], schema=arrow_schema(fields))])
        assert read(FORMAT, store, fields).column("a").is_null().to_pylist() == [True, False]

    def test_a_foreign_file_with_far_times_is_named(self) -> None:
        store = MemoryStore()
        with store.open_output(PATH) as output:
            orc.write_table(pa.table({"a": pa.array([253402300799000], pa.timestamp("ms"))}), output)
        with pytest.raises(InvalidError, match=PATH):
            read(FORMAT, store, [field(0, "a", "TIMESTAMP(3)")])

    @pytest.mark.parametrize(
        "settings", [WriteSettings(compression="lzo"), WriteSettings(extra={"orc.stripe.size": "1 mb"})]
    )
    def test_a_wrong_setting_is_refused(self, settings: WriteSettings) -> None:
        with pytest.raises(InvalidError, match="option '"):
            write(FORMAT, [field(0, "a", "INT")], [], settings=settings)


class TestDamage:
    def test_a_cut_or_foreign_file_is_named(self) -> None:
        fields, table = every_type(50)
        data = write(FORMAT, fields, [table]).get(PATH)
        for damaged in (data[: len(data) // 2], b"no file at all", b""):
            store = MemoryStore()
            store.put(PATH, damaged)
            with pytest.raises(CorruptionError, match=PATH):
                read(FORMAT, store, fields)

    def test_a_missing_column_is_named(self) -> None:
        store = write(FORMAT, [field(0, "a", "INT")], [])
        with pytest.raises(CorruptionError, match=r"data-0.*column b"):
            read(FORMAT, store, [field(0, "a", "INT"), field(1, "b", "INT")])

    def test_a_column_of_another_type_is_damage(self) -> None:
        fields = [field(0, "a", "STRING")]
        store = write(FORMAT, fields, [pa.table([["x"]], schema=arrow_schema(fields))])
        with pytest.raises(CorruptionError, match=PATH):
            read(FORMAT, store, [field(0, "a", "INT")])

    def test_a_missing_file_is_not_found(self) -> None:
        with pytest.raises(NotFoundError, match=PATH):
            read(FORMAT, MemoryStore(), [field(0, "a", "INT")])
