"""Packing files into splits."""

import pytest

from lakelet.format.manifest.manifest_columns import EMPTY_ROW, NO_STATS, entries_to_columns
from lakelet.format.partition_folders import PartitionFolders
from lakelet.model.data_file import DataFile, DeletionVectorRange
from lakelet.model.manifest import EntryKind, ManifestEntry
from lakelet.model.schema import new_schema
from lakelet.model.split import DeletionVector
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.options import TableOptions
from lakelet.scan.splits import SplitPacker
from lakelet.storage.paths import TablePaths


def entry(name: str, size: int, bucket: int = 0) -> ManifestEntry:
    file = DataFile(name, size, 10, EMPTY_ROW, EMPTY_ROW, NO_STATS, NO_STATS, 0, 9, 0, 0)
    return ManifestEntry(EntryKind.ADD, EMPTY_ROW, bucket, -1, file)


def pack(
    entries: list[ManifestEntry], vectors: dict[str, DeletionVector] | None = None, *, target: int, cost: int
) -> list[list[str]]:
    schema = new_schema(
        [Field(-1, "a", parse_type("INT"))], partition_keys=[], primary_keys=[], options={}, comment=None, time_ms=0
    )
    options = TableOptions({"source.split.target-size": f"{target} b", "source.split.open-file-cost": f"{cost} b"})
    packer = SplitPacker(options, PartitionFolders(TablePaths.of("d", "t"), schema))
    splits = packer.pack(7, entries_to_columns(entries), vectors or {})
    for split in splits:
        assert split.snapshot_id == 7
        assert split.paths == tuple(f"d.db/t/bucket-{split.bucket}/{file.name}" for file in split.files)
        assert split.deletion_vectors == tuple((vectors or {}).get(file.name) for file in split.files)
        assert split.row_count == 10 * len(split.files)
        assert split.size == sum(file.size for file in split.files)
    return [[file.name for file in split.files] for split in splits]


@pytest.mark.parametrize(
    ("sizes", "target", "cost", "expected"),
    [
        ([40, 40, 40], 100, 1, [["0", "1"], ["2"]]),
        ([100, 1], 100, 1, [["0"], ["1"]]),
        ([500, 500], 100, 1, [["0"], ["1"]]),
        ([1, 1, 1, 1], 100, 30, [["0", "1", "2"], ["3"]]),
        ([1, 1], 1, 1, [["0"], ["1"]]),
        ([50, 50], 100, 1, [["0", "1"]]),
        ([], 100, 1, []),
    ],
)
def test_files_are_packed_in_order_up_to_the_target(
    sizes: list[int], target: int, cost: int, expected: list[list[str]]
) -> None:
    assert pack([entry(str(index), size) for index, size in enumerate(sizes)], target=target, cost=cost) == expected


def test_buckets_do_not_share_a_split() -> None:
    entries = [entry("a", 1), entry("b", 1), entry("c", 1, bucket=1), entry("d", 1)]
    assert pack(entries, target=100, cost=1) == [["a", "b"], ["c"], ["d"]]


def test_deletion_vectors_go_with_their_files() -> None:
    vector = DeletionVector("index/i", DeletionVectorRange("b", 1, 2, 3))
    assert pack([entry("a", 1), entry("b", 1)], {"b": vector}, target=100, cost=1) == [["a", "b"]]
