"""Keys in an image of an SST file are found as by blocks, whatever they are and however files are laid out."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
from lakelet.format.sst import seek_loops
from lakelet.format.sst.sst_image import SstImage
from lakelet.format.sst.sst_reader import BytesSource, SstReader
from lakelet.format.sst.sst_writer import SstSettings, SstWriter, value_layout
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from tests.tiers.examples import examples

FIELDS = [Field(0, "n", parse_type("BIGINT")), Field(1, "t", parse_type("STRING"))]
# Few letters, so that keys share prefixes, are prefixes of one another, and are the empty one.
KEYS = st.binary(max_size=6).map(lambda key: bytes(byte % 3 for byte in key))
LOOPS = [seek_loops.block_loop, seek_loops.restart_loop, seek_loops.seek_loop, seek_loops.run_loop]


def opened(rows: dict[bytes, tuple[int | None, str | None]], chosen: SstSettings) -> SstReader:
    sink = io.BytesIO()
    writer = SstWriter(sink, 3, FIELDS, chosen, create_ms=0)
    keys = sorted(rows)
    columns = [
        pa.array([rows[key][0] for key in keys], pa.int64()),
        pa.array([rows[key][1] for key in keys], pa.string()),
    ]
    sequences, kinds = pa.array(range(len(keys)), pa.int64()), pa.array([n % 4 for n in range(len(keys))], pa.int8())
    writer.write(pa.array(keys, pa.large_binary()), sequences, kinds, columns)
    writer.close()
    return SstReader(BytesSource("a.sst", sink.getvalue()))


def looked_up(reader: SstReader, keys: list[bytes]) -> dict[bytes, tuple[int, int, int | None, str | None]]:
    found, places = reader.find_in(reader.image(range(len(reader.index.places))), keys)
    columns = [found.column(place).to_pylist() for place in range(2)]
    assert found.keys == [keys[place] for place in places]
    return dict(
        zip(found.keys, zip(found.sequences.tolist(), found.kinds.tolist(), *columns, strict=True), strict=True)
    )


@given(
    rows=st.dictionaries(
        KEYS,
        st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.text(max_size=3) | st.none()),
        min_size=1,
        max_size=200,
    ),
    others=st.lists(KEYS, max_size=50),
    block=st.sampled_from([30, 100, 4096]),
    interval=st.sampled_from([1, 2, 16]),
    delta=st.booleans(),
    compression=st.sampled_from(["none", "zstd"]),
)
@settings(max_examples=examples(60))
def test_keys_are_found_as_in_a_dict(
    rows: dict[bytes, tuple[int | None, str | None]],
    others: list[bytes],
    block: int,
    interval: int,
    delta: bool,
    compression: str,
) -> None:
    reader = opened(
        rows, SstSettings(block_bytes=block, restart_interval=interval, compression=compression, delta_encoding=delta)
    )
    wanted = [*rows, *others]
    numbers = {key: number for number, key in enumerate(sorted(rows))}
    expected = {key: (numbers[key], numbers[key] % 4, *rows[key]) for key in rows}
    assert looked_up(reader, wanted) == expected
    assert looked_up(reader, []) == {}


def test_the_compiled_loops_find_the_same() -> None:
    for loop in LOOPS:
        loop.load_if_enabled()
    rows = {bytes(f"{number * 7 % 5000:04}" * (number % 3), "ascii"): (number, str(number)) for number in range(5000)}
    reader = opened(rows, SstSettings(block_bytes=300, restart_interval=5))
    wanted = [*rows, b"", b"9", b"00000", b"\xff"]
    assert {key: found[2:] for key, found in looked_up(reader, wanted).items()} == rows


def test_an_entry_beyond_its_block_is_told() -> None:
    layout = value_layout(FIELDS, delta_encoding=True)
    with pytest.raises(CorruptionError, match=r"a\.sst: an entry of a data block reaches beyond its block"):
        SstImage.of([b"\x00\x01\x7fk\x00\x00\x00\x00\x00\x00\x00\x01"], [b"k"], layout, path="a.sst")
