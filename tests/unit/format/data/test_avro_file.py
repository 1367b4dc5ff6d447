import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.format.data.avro_file import AvroFormat
from lakelet.format.data.data_file_format import WriteSettings
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Array, DataType, Map, Multiset, Row
from lakelet.storage.memory import MemoryStore
from tests.unit.format.every_type import PATH, every_type, field, read, write

FORMAT = AvroFormat()
_TIMES: dict[str, list[Any]] = {
    f"TIMESTAMP({digits}){zone}": [-1, None, 253402300799 * 10**unit + 999, 0, -62135596800 * 10**unit]
    for digits, unit in ((0, 3), (3, 3), (6, 6))
    for zone in ("", " WITH LOCAL TIME ZONE")
}


class TestRoundTrip:
    @pytest.mark.parametrize("compression", ["zstd", "deflate", "none", "gzip"])
    def test_every_type_comes_back(self, compression: str) -> None:
        fields, table = every_type(60, extra=_TIMES)
        store = write(
            FORMAT, fields, [table.slice(0, 11), table.slice(11)], settings=WriteSettings(compression=compression)
        )
        got = read(FORMAT, store, fields, batch_rows=7)
        assert got.schema.types == table.schema.types
        assert got.to_pylist() == table.to_pylist()

    def test_columns_are_projected(self) -> None:
        fields, table = every_type(20)
        got = read(FORMAT, write(FORMAT, fields, [table]), fields, ["c26", "c3"])
        assert got.to_pylist() == table.select(["c3", "c26"]).to_pylist()

    def test_rows_are_counted_without_columns(self) -> None:
        fields, table = every_type(10)
        batches = FORMAT.read(write(FORMAT, fields, [table]), PATH, fields, [], batch_rows=4)
        assert [batch.num_rows for batch in batches] == [4, 4, 2]

    def test_a_file_without_rows_reads_as_none(self) -> None:
        fields, table = every_type(5)
        for tables in ([], [table.slice(0, 0)]):
            assert read(FORMAT, write(FORMAT, fields, tables), fields).num_rows == 0


class TestLayout:
    def test_it_is_one_container_that_grows_with_each_write(self) -> None:
        fields = [field(0, "id", "INT NOT NULL"), field(1, "s", "STRING")]
        table = pa.table([[1, 2], ["a", None]], schema=arrow_schema(fields))
        store = MemoryStore()
        with store.open_output(PATH) as output:
            writer = FORMAT.open_writer(output, fields, WriteSettings(), without_ranges=frozenset())
            sizes = [writer.size()]
            for _ in range(2):
                writer.write(table)
                sizes.append(writer.size())
            writer.close()
        assert 0 < sizes[0] < sizes[1] < sizes[2] == len(store.get(PATH))
        blocks = list(fastavro.block_reader(io.BytesIO(store.get(PATH))))
        assert [block.num_records for block in blocks] == [2, 2]
        assert [row for block in blocks for row in block] == 2 * [{"id": 1, "s": "a"}, {"id": 2, "s": None}]

    def test_the_schema_is_that_of_java(self) -> None:
        fields = [
            field(0, "id", "INT NOT NULL"),
            field(1, "t", "TIMESTAMP(6)"),
            field(2, "l", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ]
        data = write(FORMAT, fields, []).get(PATH)
        schema = fastavro.reader(io.BytesIO(data)).writer_schema
        assert isinstance(schema, dict)
        assert schema["name"] == "org.apache.paimon.avro.generated.record"
        assert [column["type"] for column in schema["fields"]] == [
            "int",
            ["null", {"type": "long", "logicalType": "timestamp-micros"}],
            ["null", {"type": "long", "logicalType": "local-timestamp-millis"}],
        ]


class TestRefusals:
    @pytest.mark.parametrize(
        "data_type",
        [
            parse_type("TIMESTAMP(9)"),
            parse_type("TIMESTAMP(7) WITH LOCAL TIME ZONE"),
            parse_type("TIME(4)"),
            Multiset(parse_type("INT")),
            Array(parse_type("TIMESTAMP(9)")),
            Map(parse_type("STRING"), parse_type("TIME(9)")),
            Row((field(1, "x", "TIMESTAMP(9)"),)),
            Row((field(1, "x y", "INT"),)),
        ],
    )
    def test_what_java_refuses_is_refused_before_a_byte_is_written(self, data_type: DataType) -> None:
        with MemoryStore().open_output(PATH) as output:
            with pytest.raises(InvalidError, match="column 'c"):
                FORMAT.open_writer(output, [field(0, "c", data_type)], WriteSettings(), without_ranges=frozenset())
            assert output.tell() == 0

    @pytest.mark.parametrize("name", ["a-b", "a.b", "a b", "1a", ""])
    def test_a_name_that_is_none_in_avro_is_refused(self, name: str) -> None:
        with pytest.raises(InvalidError, match="name in an Avro file"):
            write(FORMAT, [field(0, name, "INT")], [])

    @pytest.mark.parametrize("name", ["日本", "_a1", "É"])
    def test_letters_of_any_script_make_a_name(self, name: str) -> None:
        fields = [field(0, name, "INT")]
        store = write(FORMAT, fields, [pa.table([[1]], schema=arrow_schema(fields))])
        assert read(FORMAT, store, fields).to_pylist() == [{name: 1}]

    @pytest.mark.parametrize("compression", ["snappy", "lz4", "brotli"])
    def test_a_codec_that_java_cannot_read_is_refused(self, compression: str) -> None:
        with pytest.raises(InvalidError, match=r"file\.compression"):
            write(FORMAT, [field(0, "a", "INT")], [], settings=WriteSettings(compression=compression))


class TestDamage:
    def test_a_cut_or_foreign_file_is_named(self) -> None:
        fields, table = every_type(50)
        data = write(FORMAT, fields, [table]).get(PATH)
        for damaged in (data[:-1], data[: len(data) // 2], b"no file at all", b""):
            store = MemoryStore()
            store.put(PATH, damaged)
            with pytest.raises(CorruptionError, match=PATH):
                read(FORMAT, store, fields)

    def test_a_missing_column_is_named(self) -> None:
        store = write(FORMAT, [field(0, "a", "INT")], [])
        with pytest.raises(CorruptionError, match=r"data-0.*column b"):
            read(FORMAT, store, [field(0, "a", "INT"), field(1, "b", "INT")])

    @pytest.mark.parametrize("expected", ["TINYINT", "STRING", "BOOLEAN"])
    def test_a_value_that_does_not_fit_the_column_is_damage(self, expected: str) -> None:
        fields = [field(0, "a", "INT")]
        store = write(FORMAT, fields, [pa.table([[1000]], schema=arrow_schema(fields))])
        with pytest.raises(CorruptionError, match=PATH):
            read(FORMAT, store, [field(0, "a", expected)])

    def test_a_missing_file_is_not_found(self) -> None:
        with pytest.raises(NotFoundError, match=PATH):
            read(FORMAT, MemoryStore(), [field(0, "a", "INT")])
