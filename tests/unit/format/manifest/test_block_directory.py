"""The directory of blocks in a manifest's header, and reading only some blocks by it."""

import pyarrow as pa
import pytest

from lakelet.commit.metadata.manifests import partition_stats_of_groups, sorted_by_partition
from lakelet.errors import CorruptionError
from lakelet.format.avro.container import read_header
from lakelet.format.manifest.block_directory import BLOCKS_KEY, decode_directory
from lakelet.format.manifest.manifest_avro import decode_entries, encode_entries
from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS, entries_to_columns
from lakelet.format.rows.binary_row_columns import encode_rows
from lakelet.model.data_file import DataFile, Stats
from lakelet.model.manifest import BlockPartitions, EntryKind, ManifestEntry
from lakelet.model.type_parser import parse_type

TYPES = [parse_type("INT")]


def partitions(values: list[int | None]) -> list[bytes]:
    rows: list[bytes] = encode_rows([pa.array(values, pa.int32())], TYPES).to_pylist()
    return rows


def manifest(days: list[int | None]) -> pa.Table:
    def file(number: int) -> DataFile:
        stats = Stats(bytes(40), bytes(40), (0,))
        return DataFile(f"data-{number}.parquet", 1, 1, EMPTY_ROW, EMPTY_ROW, NO_STATS, stats, 0, 0, 0, 0)

    return entries_to_columns(
        [ManifestEntry(EntryKind.ADD, day, 0, -1, file(number)) for number, day in enumerate(partitions(days))]
    )


def describe(entries: pa.Table, counts: list[int]) -> list[Stats]:
    return partition_stats_of_groups(entries.column("_PARTITION"), counts, TYPES)


def test_only_chosen_blocks_are_decoded() -> None:
    entries = manifest([number // 10 for number in range(1000)])
    data = encode_entries(entries, codec="zstandard", describe=describe)
    seen: list[BlockPartitions] = []
    [wanted] = partitions([42])

    def keep(blocks: list[BlockPartitions]) -> list[bool]:
        seen.extend(blocks)
        return [
            int.from_bytes(block.partitions.min_values[12:16], "little")
            <= 42
            <= int.from_bytes(block.partitions.max_values[12:16], "little")
            for block in blocks
        ]

    found = decode_entries(data, path="manifest", keep=keep)
    assert len(seen) > 3
    assert sum(block.entries for block in seen) == 1000
    assert 10 <= found.num_rows < 500
    assert [name for name, day in zip(*_names_and_days(found), strict=True) if day == wanted] == [
        f"data-{number}.parquet" for number in range(420, 430)
    ]
    assert decode_entries(data, path="manifest").equals(entries)


def _names_and_days(entries: pa.Table) -> tuple[list[str], list[bytes]]:
    return entries.column("_FILE_NAME").to_pylist(), entries.column("_PARTITION").to_pylist()


def test_one_block_needs_no_directory() -> None:
    entries = manifest([1, 2, 3])
    data = encode_entries(entries, codec="zstandard", describe=describe)
    assert BLOCKS_KEY not in read_header(data, path="manifest").metadata

    def never(blocks: list[BlockPartitions]) -> list[bool]:
        raise AssertionError(blocks)

    assert decode_entries(data, path="manifest", keep=never).num_rows == 3


def test_a_directory_that_is_none_is_corruption() -> None:
    for text in (b"{", b"[[1,2]]", b'[[1,"!","",[0]]]', b"7"):
        with pytest.raises(CorruptionError, match=r"m: lakelet\.blocks"):
            decode_directory({BLOCKS_KEY: text}, path="m")


def test_a_directory_of_another_number_of_blocks_is_corruption() -> None:
    data = encode_entries(manifest(list(range(1000))), codec="null", describe=describe)
    for change in (1, -1):
        with pytest.raises(CorruptionError, match="blocks"):
            decode_entries(data, path="m", keep=lambda blocks, change=change: [True] * (len(blocks) + change))


def test_statistics_of_groups_are_those_of_each_group() -> None:
    days = [3, None, 1, None, None, 7, 7, -2, 5]
    column = manifest(days).column("_PARTITION")
    found = partition_stats_of_groups(column, [3, 2, 4], TYPES)
    [one, three, none, low, high] = partitions([1, 3, None, -2, 7])
    assert found == [Stats(one, three, (1,)), Stats(none, none, (2,)), Stats(low, high, (0,))]


def test_entries_of_one_partition_keep_their_order() -> None:
    entries = sorted_by_partition(manifest([2, None, 1, 2, 1, None]), TYPES)
    names = [name.removeprefix("data-").removesuffix(".parquet") for name in entries.column("_FILE_NAME").to_pylist()]
    assert names == ["2", "4", "0", "3", "1", "5"]
