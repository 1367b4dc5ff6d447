"""Keys in an arena of an SST file are found as in a dict, however files are laid out and however little room there is."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
from lakelet.format.sst import point_loops
from lakelet.format.sst.point_loops import ABSENT, FOUND, MISSING, NULL, RETRACT, row_loop, rows_loop, text_loop
from lakelet.format.sst.sst_arena import SstArena, joined_keys
from lakelet.format.sst.sst_reader import BytesSource, SstReader
from lakelet.format.sst.sst_writer import SstSettings, SstWriter
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from tests.tiers.examples import examples

FIELDS = [Field(0, "n", parse_type("BIGINT")), Field(1, "t", parse_type("STRING"))]
# Few letters, so that keys share prefixes, are prefixes of one another, and are the empty one; long ones differ behind a word.
KEYS = st.binary(max_size=6).map(lambda key: bytes(byte % 3 for byte in key)) | st.binary(max_size=3).map(
    lambda key: b"prefix-of-all-" + bytes(254 + byte % 2 for byte in key)
)
TEXT = 3 + 1


def opened(rows: dict[bytes, tuple[int | None, str | None]], chosen: SstSettings) -> SstReader:
    sink = io.BytesIO()
    writer = SstWriter(sink, 300, FIELDS, chosen, create_ms=0)
    keys = sorted(rows)
    columns = [
        pa.array([rows[key][0] for key in keys], pa.int64()),
        pa.array([rows[key][1] for key in keys], pa.string()),
    ]
    sequences, kinds = pa.array(range(len(keys)), pa.int64()), pa.array([n % 4 for n in range(len(keys))], pa.int8())
    writer.write(pa.array(keys, pa.large_binary()), sequences, kinds, columns)
    writer.close()
    return SstReader(BytesSource("a.sst", sink.getvalue()))


def one(arena: SstArena, key: bytes, *, deltas: int = 1) -> tuple[int, int, int | None, str | None] | None:
    """Sequence number, kind and columns of a key, by the loop for one."""
    while True:
        out = np.empty(3 * arena.columns, np.int64)
        heap = arena.heap
        code, block = row_loop.for_bytes_or_interpreted(0)(heap.data, heap.state, key, deltas, out)
        if code != MISSING:
            break
        assert arena.load(int(block))
    if code == ABSENT:
        return None
    assert code == FOUND
    numbers, ends, valid = out.reshape(3, -1).tolist()
    text = str(heap.view[numbers[TEXT] : ends[TEXT]], "utf-8") if valid[TEXT] else None
    return numbers[1], numbers[2], numbers[3] if valid[3] else None, text


def text(arena: SstArena, key: bytes) -> object:
    """The text of a key, or the code that there is instead."""
    while True:
        heap = arena.heap
        begin, end = text_loop.for_bytes_or_interpreted(0)(heap.data, heap.state, key, TEXT)
        if begin != MISSING:
            return str(heap.view[begin:end], "utf-8") if begin > 0 else int(begin)
        assert arena.load(int(end))


def check(reader: SstReader, rows: dict[bytes, tuple[int | None, str | None]], wanted: list[bytes], most: int) -> None:
    arena = reader.arena(most)
    numbers = {key: number for number, key in enumerate(sorted(rows))}
    for key in wanted:
        if key not in rows:
            assert one(arena, key) is None
            assert text(arena, key) == ABSENT
            continue
        number, (whole, words) = numbers[key], rows[key]
        assert one(arena, key) == (number, number % 4, whole, words)
        found = one(arena, key, deltas=0)
        assert found is not None
        assert (found[1], found[3]) == (number % 4, words)
        assert text(arena, key) == (RETRACT if number % 2 else NULL if words is None else words)
    found_many = arena.find_many(*joined_keys(wanted), deltas=True)
    if found_many is None:
        return
    places, cells = found_many
    there = reader.found_rows([wanted[place] for place in places.tolist()], cells)
    assert there.keys == [key for key in wanted if key in rows]
    assert there.sequences.tolist() == [numbers[key] for key in there.keys]
    columns = zip(*(there.column(place).to_pylist() for place in range(2)), strict=True)
    assert list(columns) == [rows[key] for key in there.keys]


@given(
    rows=st.dictionaries(
        KEYS,
        st.tuples(st.integers(-(2**63), 2**63 - 1) | st.none(), st.text(max_size=3) | st.none()),
        min_size=1,
        max_size=100,
    ),
    others=st.lists(KEYS, max_size=20),
    block=st.sampled_from([30, 100, 4096]),
    interval=st.sampled_from([1, 2, 16]),
    delta=st.booleans(),
    compression=st.sampled_from(["none", "zstd"]),
    bits=st.sampled_from([0, 10]),
    prefix=st.sampled_from([b"", b"\x01\x01\x01"]),
)
@settings(max_examples=examples(25), deadline=None)
def test_keys_are_found_as_in_a_dict(
    rows: dict[bytes, tuple[int | None, str | None]],
    others: list[bytes],
    block: int,
    interval: int,
    delta: bool,
    compression: str,
    bits: int,
    prefix: bytes,
) -> None:
    rows = {prefix + key: row for key, row in rows.items()}
    others += [prefix + key for key in others]
    chosen = SstSettings(
        block_bytes=block,
        restart_interval=interval,
        compression=compression,
        delta_encoding=delta,
        bloom_bits_per_key=bits,
    )
    check(opened(rows, chosen), rows, [*rows, *others], 1 << 20)


def test_the_compiled_loops_find_the_same() -> None:
    for loop in (row_loop, rows_loop, text_loop):
        loop.load_if_enabled()
    rows = {
        bytes(f"{number * 7 % 5000:04}" * (number % 4), "ascii"): (number * 10**12, f"{number}é")
        for number in range(5000)
    }
    wanted = [*rows, b"", b"9", b"00000", b"\xff", b"0000" * 4]
    for interval, delta in ((5, True), (16, False)):
        reader = opened(rows, SstSettings(block_bytes=300, restart_interval=interval, delta_encoding=delta))
        check(reader, rows, wanted, 1 << 30)


def test_a_generation_that_is_full_becomes_the_older_one() -> None:
    """With room for a part of the blocks every key is found all the same, and memory stays within the limit."""
    row_loop.load_if_enabled()
    text_loop.load_if_enabled()
    rows = {f"{number:08}".encode(): (number, "v" * 50) for number in range(8000)}
    reader = opened(rows, SstSettings(block_bytes=500, compression="none"))
    most = 500_000
    arena = reader.arena(most)
    fixed = arena.nbytes - arena.heap.data.nbytes - arena.heap.state.nbytes
    keys = sorted(rows)
    for turn in range(3):
        for key in keys[turn :: 5 + turn]:
            assert one(arena, key) == (int(key), int(key) % 4, int(key), "v" * 50)
            assert arena.nbytes <= most + 3 * fixed
    # All of them have no room at once; some of them have.
    assert arena.find_many(*joined_keys(keys), deltas=True) is None
    found = arena.find_many(*joined_keys(keys[:100]), deltas=False)
    assert found is not None
    assert found[0].tolist() == list(range(100))


def test_a_block_that_has_no_room_is_told() -> None:
    reader = opened({b"a": (1, "x" * 100_000)}, SstSettings(compression="none"))
    assert not reader.arena(100_000).load(0)
    assert reader.arena(300_000).load(0)


@pytest.mark.parametrize("is_compiled", [False, True], ids=["interpreted", "compiled"])
def test_every_byte_of_a_block_that_is_changed_is_told_or_harmless(
    is_compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks with a right checksum and wrong contents never make the loops read beyond them, nor give text of another column."""
    loops = (row_loop, text_loop)
    for loop in loops:
        if is_compiled:
            loop.load_if_enabled()
        else:
            monkeypatch.setattr(loop, "enabled", False)
            monkeypatch.setattr(loop, "compiled", None)
    rows = {bytes([65 + number]): (number, "text") for number in range(6)}
    reader = opened(rows, SstSettings(compression="none", restart_interval=3))
    contents = reader._block(reader.index.places[0])
    for at in range(len(contents)):
        for change in (1, 0x80, 0xFF):
            damaged = contents[:at] + bytes([contents[at] ^ change]) + contents[at + 1 :]
            arena = reader.arena(1 << 20)
            arena._read = lambda _, found=damaged: found  # type: ignore[misc]
            for key in rows:
                try:
                    arena.load(0)
                except CorruptionError:
                    break
                heap = arena.heap
                block_end = heap.used
                out = np.zeros(3 * arena.columns, np.int64)
                code, _ = row_loop.for_bytes_or_interpreted(0)(heap.data, heap.state, key, 1, out)
                if code == FOUND:
                    assert 0 <= out[TEXT] <= out[arena.columns + TEXT] <= block_end
                begin, end = text_loop.for_bytes_or_interpreted(0)(heap.data, heap.state, key, TEXT)
                if begin > 0:
                    assert begin <= end <= block_end


def test_a_row_of_another_schema_is_damage() -> None:
    reader = opened({b"a": (1, "x"), b"b": (2, "y")}, SstSettings())
    arena = reader.arena(1 << 20)
    arena.load(0)
    arena.heap.state[point_loops.SCHEMA] = 7
    code, _ = text_loop.for_bytes_or_interpreted(0)(arena.heap.data, arena.heap.state, b"a", TEXT)
    assert code == point_loops.DAMAGED
    with pytest.raises(CorruptionError, match=r"a\.sst: a value of a data block is not a row of its schema"):
        arena.find_many(*joined_keys([b"a", b"b"]), deltas=True)
