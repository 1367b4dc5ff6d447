"""Rows written one at a time are the same bytes as columns, and are read back the same."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.avro.encode import encode
from lakelet.format.avro.few_rows import MOST_ROWS, FewRows
from lakelet.format.manifest import manifest_avro
from lakelet.format.manifest.manifest_columns import LIST_SCHEMA, entries_to_columns, manifests_to_columns
from lakelet.format.manifest.manifest_file import (
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.manifest import EntryKind, ManifestEntry, ManifestFile

SYNC = bytes(range(16))
CODECS = ("null", "zstandard", "snappy", "deflate")
LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.lists(TEXTS, max_size=3).map(tuple)
STATS = st.builds(
    Stats,
    st.binary(max_size=30),
    st.binary(max_size=30),
    st.none() | st.lists(st.none() | LONGS, max_size=3).map(tuple),
)
FILES = st.builds(
    DataFile,
    name=TEXTS,
    size=LONGS,
    row_count=LONGS,
    min_key=st.binary(max_size=9),
    max_key=st.binary(max_size=9),
    key_stats=STATS,
    value_stats=STATS,
    min_sequence=LONGS,
    max_sequence=LONGS,
    schema_id=LONGS,
    level=INTS,
    extra_files=NAMES,
    creation_ms=st.none() | LONGS,
    delete_row_count=st.none() | LONGS,
    embedded_index=st.none() | st.binary(max_size=9),
    source=st.none() | INTS,
    value_stats_columns=st.none() | NAMES,
    external_path=st.none() | TEXTS,
    first_row_id=st.none() | LONGS,
    write_columns=st.none() | NAMES,
)
ENTRIES = st.lists(
    st.builds(ManifestEntry, st.sampled_from(EntryKind), st.binary(max_size=20), INTS, INTS, FILES), max_size=5
)
MANIFESTS = st.lists(
    st.builds(
        ManifestFile,
        TEXTS,
        LONGS,
        LONGS,
        LONGS,
        STATS,
        LONGS,
        *(st.none() | INTS for _ in range(4)),
        *(st.none() | LONGS for _ in range(2)),
    ),
    max_size=5,
)


def columnar_entries(table: pa.Table, codec: str) -> bytes:
    """The file as the columns of many rows make it."""
    names = [name for name, _ in manifest_avro.FILE_COLUMNS]
    own = [name for name, _ in manifest_avro.OWN_COLUMNS]
    files = pa.StructArray.from_arrays([table.column(name).combine_chunks() for name in names], names=names)
    version = pa.array([manifest_avro.MANIFEST_VERSION] * table.num_rows, pa.int32())
    arrays = [version, *(table.column(name).combine_chunks() for name in own), files]
    rows = pa.StructArray.from_arrays(arrays, names=["_VERSION", *own, "_FILE"])
    return encode(rows, manifest_avro.ENTRY_AVRO, codec=codec, sync=SYNC)


@given(ENTRIES, st.sampled_from(CODECS))
def test_entries_are_the_same_bytes_and_read_back(entries: list[ManifestEntry], codec: str) -> None:
    table = entries_to_columns(entries)
    data = manifest_avro.encode_entries(table, codec=codec, sync=SYNC)
    assert data == columnar_entries(table, codec)
    assert data == manifest_avro.encode_few_entries(entries, codec=codec, sync=SYNC)
    assert decode_manifest(data, path="m").equals(table)
    some = ["_FILE_NAME", "_KIND", "_VALUE_STATS"]
    assert decode_manifest(data, path="m", columns=some).equals(table.select(["_KIND", "_FILE_NAME", "_VALUE_STATS"]))


@given(MANIFESTS, st.sampled_from(CODECS))
def test_lists_are_the_same_bytes_and_read_back(manifests: list[ManifestFile], codec: str) -> None:
    data = manifest_avro.encode_manifests(manifests, codec=codec, sync=SYNC)
    assert data == manifest_avro.encode_list(manifests_to_columns(manifests), codec=codec, sync=SYNC)
    assert decode_manifest_list(data, path="l") == manifests


@pytest.mark.parametrize("count", [MOST_ROWS - 1, MOST_ROWS, MOST_ROWS + 1, 4 * MOST_ROWS])
def test_many_rows_are_the_business_of_columns(count: int) -> None:
    stats = Stats(b"a", b"b", (1, None))
    manifests = [ManifestFile(f"manifest-{number}", number, 1, 0, stats, 0) for number in range(count)]
    data = encode_manifest_list(manifests, manifest_format="avro", compression="zstd")
    assert decode_manifest_list(data, path="l") == manifests
    few = FewRows(manifest_avro.LIST_AVRO).decode(data, path="l")
    assert (few is not None) == (count <= MOST_ROWS)


def test_a_damaged_file_is_told_as_ever() -> None:
    """Whatever is cut off or changed, it is a corruption, never other rows without a word."""
    stats = Stats(b"low", b"high", (1, None))
    manifests = [ManifestFile(f"manifest-{number}", 300 + number, 1, 0, stats, 0) for number in range(3)]
    data = manifest_avro.encode_manifests(manifests, codec="null", sync=SYNC)
    header = len(manifest_avro.encode_manifests([], codec="null", sync=SYNC))
    for end in [*range(4, header, 50), *range(header + 1, len(data), 7)]:
        with pytest.raises(CorruptionError):
            decode_manifest_list(data[:end], path="l")


@pytest.mark.parametrize("codec", CODECS)
def test_a_header_of_ours_is_cut_off_nowhere_unnoticed(codec: str) -> None:
    few = FewRows(manifest_avro.ENTRY_AVRO)
    header = few.encode([], codec=codec, sync=SYNC)
    assert few.decode(header, path="m") == []
    assert [few.decode(header[:end], path="m") for end in range(len(header))] == [None] * len(header)


def test_markers_and_codecs_that_do_not_exist_are_refused() -> None:
    few = FewRows(manifest_avro.ENTRY_AVRO)
    with pytest.raises(InvalidError, match="16 bytes"):
        few.encode([], codec="null", sync=b"short")
    with pytest.raises(InvalidError, match="not supported"):
        few.encode([], codec="lzma", sync=SYNC)


def test_threads_encode_and_decode_side_by_side() -> None:
    """Contexts of zstandard are kept, and no two threads may use one at the same time."""
    stats = Stats(b"low", b"high", (1, None))

    def once(number: int) -> bool:
        manifests = [ManifestFile(f"manifest-{number}-{one}", one, 1, 0, stats, 0) for one in range(1 + number % 40)]
        data = manifest_avro.encode_manifests(manifests, codec="zstandard")
        return manifest_avro.decode_manifests(data, path="l") == manifests

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(once, range(400)))


def test_numbers_of_numpy_are_numbers() -> None:
    file = replace(
        _file(), max_sequence=np.int64(2**63 - 1), row_count=np.int64(2**62), delete_row_count=np.int64(2**62)
    )
    entry = ManifestEntry(EntryKind.ADD, b"", 0, 1, file)
    data = manifest_avro.encode_few_entries([entry], codec="null", sync=SYNC)
    assert data == manifest_avro.encode_entries(entries_to_columns([entry]), codec="null", sync=SYNC)


def test_many_or_incomplete_entries_are_left_to_columns() -> None:
    entry = ManifestEntry(EntryKind.ADD, b"", 0, 1, _file())
    assert manifest_avro.encode_few_entries([entry] * (MOST_ROWS + 1), codec="null") is None
    broken = replace(entry, file=replace(_file(), size=None))  # type: ignore[arg-type]
    assert manifest_avro.encode_few_entries([broken], codec="null") is None


def test_a_version_of_the_future_is_refused() -> None:
    few = FewRows(manifest_avro.LIST_AVRO)
    (row,) = few.decode(
        manifest_avro.encode_manifests([ManifestFile("m", 1, 1, 0, Stats(b"", b"", None), 0)], codec="null"), path="l"
    ) or [()]
    later = few.encode([(manifest_avro.MANIFEST_VERSION + 1, *row[1:])], codec="null")
    with pytest.raises(CorruptionError, match="newer"):
        decode_manifest_list(later, path="l")


def test_other_schemas_are_left_to_columns() -> None:
    schema: dict[str, Any] = {**manifest_avro.LIST_AVRO, "doc": "another writer's"}
    table = manifests_to_columns([ManifestFile("m", 1, 1, 0, Stats(b"", b"", None), 0)])
    arrays = [pa.array([2], pa.int32()), *(table.column(name).combine_chunks() for name in LIST_SCHEMA.names)]
    data = encode(pa.StructArray.from_arrays(arrays, names=["_VERSION", *LIST_SCHEMA.names]), schema, codec="null")
    assert FewRows(manifest_avro.LIST_AVRO).decode(data, path="l") is None
    assert [manifest.name for manifest in decode_manifest_list(data, path="l")] == ["m"]


def test_a_missing_value_is_told_as_ever() -> None:
    entry = ManifestEntry(EntryKind.ADD, b"", 0, 1, replace(_file(), size=None))  # type: ignore[arg-type]
    with pytest.raises(Exception, match="_FILE_SIZE"):
        encode_manifest(entries_to_columns([entry]), manifest_format="avro", compression="zstd")


def _file() -> DataFile:
    stats = Stats(b"", b"", None)
    return DataFile("f", 1, 1, b"", b"", stats, stats, 0, 0, 0, 0)
