"""SST files: what is written is read, a flipped byte is told or harmless, dumps are read."""

import io
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, InvalidError, LakeletError
from lakelet.format.sst.sst_block import COMPRESSIONS
from lakelet.format.sst.sst_parts import separator
from lakelet.format.sst.sst_reader import BytesSource, SstReader, first_blocks
from lakelet.format.sst.sst_writer import SstSettings, SstWriter
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from tests.property.every_value import NESTED, VALUES, bits, wrapped

DUMPS = Path(__file__).parents[3] / "golden" / "dumps"
FIELDS = [Field(0, "n", parse_type("INT")), Field(7, "Ä", parse_type("STRING"))]
SMALL = SstSettings(block_bytes=100, restart_interval=3)


def written(
    keys: list[bytes], columns: list[pa.Array], fields: list[Field], chosen: SstSettings = SMALL, pieces: int = 1
) -> bytes:
    sink = io.BytesIO()
    writer = SstWriter(sink, 3, fields, chosen, create_ms=1_704_067_200_000)
    step = -(-len(keys) // pieces) or 1
    for at in range(0, len(keys), step):
        count = min(step, len(keys) - at)
        sequences = pa.array(range(at, at + count), pa.int64())
        kinds = pa.array([(at + row) % 4 for row in range(count)], pa.int8())
        part = [column.slice(at, count) for column in columns]
        writer.write(pa.array(keys[at : at + count], pa.large_binary()), sequences, kinds, part)
    assert writer.close() == len(sink.getvalue())
    return sink.getvalue()


def opened(data: bytes) -> SstReader:
    return SstReader(BytesSource("0-00001-a1b2c3d4.sst", data))


def rows_of(reader: SstReader) -> list[Any]:
    found: list[Any] = []
    for part in reader.scan():
        columns = [bits(part.column(place)) for place in range(len(reader.meta.fields))]
        found += zip(part.keys, part.sequences.tolist(), part.kinds.tolist(), *columns, strict=True)
    return found


def plain(count: int) -> tuple[list[bytes], list[pa.Array]]:
    keys = [b"key-%04d" % number for number in range(count)]
    numbers = [None if number % 5 == 3 else (number * 7919) % 1000 - 500 for number in range(count)]
    texts = [None if number % 7 == 2 else "x" * (number % 11) for number in range(count)]
    return keys, [pa.array(numbers, pa.int32()), pa.array(texts)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("delta", [True, False])
def test_what_was_written_is_read(compression: str, delta: bool) -> None:
    keys, columns = plain(300)
    chosen = SstSettings(block_bytes=300, restart_interval=4, compression=compression, delta_encoding=delta)
    reader = opened(written(keys, columns, FIELDS, chosen, pieces=3))
    reader.verify()
    kinds, sequences = [number % 4 for number in range(300)], list(range(300))
    assert [row[0] for row in rows_of(reader)] == keys
    assert [row[1] for row in rows_of(reader)] == sequences
    expected_kinds = [row % 4 for at in range(0, 300, 100) for row in range(at, at + 100)]
    assert [row[2] for row in rows_of(reader)] == expected_kinds == kinds
    assert [row[3] for row in rows_of(reader)] == bits(columns[0])
    assert [row[4] for row in rows_of(reader)] == bits(columns[1])
    assert (reader.meta.row_count, reader.meta.min_key, reader.meta.max_key) == (300, keys[0], keys[-1])
    assert (reader.meta.schema_id, list(reader.meta.fields)) == (3, FIELDS)


def test_the_layout_does_not_depend_on_the_batches() -> None:
    keys, columns = plain(200)
    one, many = written(keys, columns, FIELDS), written(keys, columns, FIELDS, pieces=200)
    assert rows_of(opened(one)) != []
    assert opened(one).index == opened(many).index


def test_every_key_is_found_and_no_other() -> None:
    keys, columns = plain(100)
    reader = opened(written(keys, columns, FIELDS))
    assert len(reader.index.places) > 10
    for number, key in enumerate(keys):
        found = reader.get(key)
        assert found is not None
        assert found[0].keys[found[1]] == key
        assert found[0].column(0)[found[1]].as_py() == columns[0][number].as_py()
        for other in (key + b"\x00", key[:-1], key[:-1] + b"\xff", b""):
            assert reader.get(other) is None
    unfiltered = opened(written(keys, columns, FIELDS, SstSettings(block_bytes=100, bloom_bits_per_key=0)))
    assert unfiltered.bloom is None
    assert all(unfiltered.get(key) is not None and unfiltered.get(key + b"a") is None for key in keys)


def test_a_range_touches_the_blocks_that_can_hold_it() -> None:
    keys, columns = plain(100)
    reader = opened(written(keys, columns, FIELDS))
    for start, end in itertools.product([None, b"", keys[3], keys[50] + b"x", b"z"], repeat=2):
        found = [key for part in reader.scan(*first_blocks(reader, start, end)) for key in part.keys]
        wanted = [key for key in keys if (start is None or key >= start) and (end is None or key < end)]
        assert set(wanted) <= set(found)
        assert len(found) <= len(wanted) + 40


def test_an_empty_file() -> None:
    reader = opened(written([], [pa.array([], pa.int32()), pa.array([], pa.string())], FIELDS))
    reader.verify()
    assert (rows_of(reader), reader.get(b""), len(reader)) == ([], None, 0)


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_every_byte_that_is_flipped_is_told_or_harmless(mask: int, compression: str) -> None:
    keys, columns = plain(40)
    data = written(keys, columns, FIELDS, SstSettings(block_bytes=200, compression=compression))
    expected = rows_of(opened(data))
    harmless = set()
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= mask
        try:
            reader = opened(bytes(flipped))
        except LakeletError:
            continue
        with pytest.raises(CorruptionError):
            reader.verify()
        try:
            found = rows_of(reader)
        except LakeletError:
            continue
        assert found == expected
        assert all(reader.get(key) is not None for key in keys)
        harmless.add(place)
    # The time at which the file was made, and the checksum of the file, which only `verify` looks at.
    assert harmless == {*range(9, 17), *range(len(data) - 52, len(data) - 48)}


@pytest.mark.parametrize("cut", [0, 3, 31, 40, 80, -1, -48, -60])
def test_a_file_cut_short_is_told(cut: int) -> None:
    keys, columns = plain(40)
    with pytest.raises(CorruptionError):
        opened(written(keys, columns, FIELDS)[:cut])


def test_another_version_is_refused() -> None:
    data = bytearray(written(*plain(2), FIELDS))
    data[7] = 2
    with pytest.raises(InvalidError, match="found version 2"):
        opened(bytes(data))


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"], [b"ab", b"a"]])
def test_keys_out_of_order_are_refused(keys: list[bytes]) -> None:
    for pieces in (1, 2):
        with pytest.raises(InvalidError, match="ascending order"):
            written(keys, plain(2)[1], FIELDS, SstSettings(block_bytes=1), pieces)


@given(st.binary(max_size=6), st.binary(max_size=6))
def test_separators_are_between(one: bytes, two: bytes) -> None:
    if one != two:
        last, first = sorted((one, two))
        found = separator(last, first)
        assert last <= found < first
        assert len(found) <= len(last)


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_values_of_every_type_round_trip(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    shapes = data.draw(st.lists(st.sampled_from(NESTED), min_size=len(kinds), max_size=len(kinds)))
    keys = sorted(data.draw(st.sets(st.binary(max_size=5), max_size=30)))
    fields, columns = [], []
    for number, (kind, shape) in enumerate(zip(kinds, shapes, strict=True)):
        field = Field(number, f"c{number}", parse_type(shape.format(kind)))
        values = data.draw(st.lists(st.none() | VALUES[kind], min_size=len(keys), max_size=len(keys)))
        drawn = [None if value is None else wrapped(value, shape) for value in values]
        fields.append(field)
        columns.append(pa.array(drawn, to_arrow(field.type)))
    chosen = SstSettings(
        block_bytes=data.draw(st.sampled_from([1, 50, 4096])),
        restart_interval=data.draw(st.sampled_from([1, 2, 16])),
        compression=data.draw(st.sampled_from(sorted(COMPRESSIONS))),
        delta_encoding=data.draw(st.booleans()),
    )
    reader = opened(written(keys, columns, fields, chosen, pieces=data.draw(st.integers(1, 3))))
    reader.verify()
    rows = rows_of(reader)
    assert [row[0] for row in rows] == keys
    for place, column in enumerate(columns):
        assert [row[3 + place] for row in rows] == bits(column)
    model = dict(zip(keys, range(len(keys)), strict=True))
    for key in {*keys, *(key + b"\x00" for key in keys), b"x"}:
        found = reader.get(key)
        assert (found is None) == (key not in model)
        assert found is None or int(found[0].sequences[found[1]]) == model[key]


@pytest.mark.parametrize("name", ["sst-delta", "sst-plain"])
def test_the_dump_is_read(name: str) -> None:
    lines = (DUMPS / f"{name}.txt").read_text(encoding="utf-8").split("\n\n")[0].splitlines()[1:]
    data = b"".join(bytes.fromhex(line[8:55]) for line in lines)
    reader = opened(data)
    reader.verify()
    assert data[:4] == data[-4:] == b"LSST"
    assert [row[:3] for row in rows_of(reader)] == [
        (b"shop-0001", 700, 0),
        (b"shop-0002", 701, 1),
        (b"shop-0002-\x00", 5, 2),
        (b"shop-1", 2**40, 3),
    ]
    assert rows_of(reader)[0][3:] == rows_of(reader)[2][3:] != rows_of(reader)[1][3:]


def test_the_interpreter_writes_and_reads_the_same_bytes(tmp_path: Path) -> None:
    """One process compiles all loops, the other none."""
    script = (
        "import sys, lakelet.format.sst.record_loops as r, lakelet.format.sst.entry_loops as e\n"
        "[loop.load_if_enabled() for m in (r, e) for n, loop in vars(m).items() if type(loop).__name__ == 'CompiledLoop']\n"
        "from tests.unit.format.sst.test_sst_file import *\n"
        "keys, columns = plain(500)\n"
        "data = written(keys, columns, FIELDS, pieces=2)\n"
        "assert len(rows_of(opened(data))) == 500\n"
        "open(sys.argv[1], 'wb').write(data)\n"
    )
    made = []
    for number, off in enumerate(("0", "1")):
        path = tmp_path / f"{number}.sst"
        environment = {**os.environ, "LAKELET_NO_NUMBA": off}
        subprocess.run([sys.executable, "-c", script, str(path)], check=True, env=environment, timeout=300)
        made.append(path.read_bytes())
    assert made[0] == made[1]
