"""Choose by cost how the hidden rows of files are left out: bitmaps found on the driver, bitmaps found by tasks, or our reader.

bytes of keys and vectors to decode, few        bitmaps on the driver, while the frame is made
                                    many        bitmaps by tasks, when the frame is evaluated: a job in Python takes a quarter
                                                of a second, whatever it does
most rows of a split superseded, or more        our reader, which merges: Spark would decode all values of all rows
bitmaps than every executor should hold
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from lakelet.model.split import Split
from lakelet.read.split_files import SplitFile, files_of
from lakelet.spark.read.row_bitmaps import RowBitmaps, Words, count_bits, no_bits

# Decoded on the driver in about the time that a Python job takes to start.
_DRIVER_BYTES = 96 << 20
# The bitmaps of two billion rows.
_MOST_BITMAP_BYTES = 256 << 20
# Beyond this share of hidden rows in a merged split, merging it is cheaper than reading all of its rows.
_MOST_SUPERSEDED = 0.66
# A frame and a join for each of the files of one size.
_MOST_LAYERS = 4
# Testing a bit of each of as many rows costs less than a frame more: its plan is analysed, united and compiled on the driver.
_JOINED_ROWS = 1 << 19
_THREADS = 4


@dataclass(frozen=True, slots=True)
class MarkedFiles:
    """Files of which Spark leaves out rows by bitmaps, no two of one size. The bitmaps by size, or where there are none, the
    splits from which tasks find them, with the cost of each."""

    files: list[SplitFile] = field(default_factory=list)
    words: dict[int, Words] = field(default_factory=dict)
    splits: tuple[Split, ...] = ()
    costs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Files by how Spark reads them, whole or by bitmaps, and the splits for our reader."""

    marked: list[MarkedFiles] = field(default_factory=list)
    whole: list[SplitFile] = field(default_factory=list)
    ours: list[Split] = field(default_factory=list)


def choose(bitmaps: RowBitmaps, splits: Sequence[Split]) -> Chosen:
    """Choose how to read splits that may have hidden rows, all of whose files Spark is able to read."""
    costs: list[tuple[Split, int]] = []
    chosen = Chosen()
    bitmap_bytes = 0
    for split in splits:
        cost = bitmaps.cost(split)
        bitmap_bytes += split.row_count // 8
        if cost is None or bitmap_bytes > _MOST_BITMAP_BYTES:
            chosen.ours.append(split)
        else:
            costs.append((split, cost))
    if sum(cost for _, cost in costs) <= _DRIVER_BYTES:
        _on_driver(bitmaps, [split for split, _ in costs], chosen)
    else:
        _by_tasks(costs, chosen)
    return chosen


def join_small(native: dict[int, list[SplitFile]], marked: Sequence[MarkedFiles]) -> None:
    """Move files of few rows that are read whole, by their schema, to marked files of that schema."""
    for layer in marked:
        if layer.splits:
            continue
        for schema_id in {file.data.schema_id for file in layer.files} & native.keys():
            files = native[schema_id]
            words = {file.data.size: no_bits(file.data.row_count) for file in files}
            rows = sum(file.data.row_count for file in files)
            if rows <= _JOINED_ROWS and len(words) == len(files) and not words.keys() & layer.words.keys():
                layer.files.extend(native.pop(schema_id))
                layer.words.update(words)


def _on_driver(bitmaps: RowBitmaps, splits: Sequence[Split], chosen: Chosen) -> None:
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(bitmaps.find, splits))
    sizes: Counter[int] = Counter()
    for split, words in zip(splits, found, strict=True):
        files = [file for file in files_of([split]) if file.path in words]
        if _mostly_superseded(split, words) or any(sizes[file.data.size] >= _MOST_LAYERS for file in files):
            chosen.ours.append(split)
            continue
        chosen.whole.extend(file for file in files_of([split]) if file.path not in words)
        for file in files:
            if count_bits(words[file.path]) == file.data.row_count:
                continue
            layer = sizes[file.data.size]
            sizes[file.data.size] += 1
            if layer == len(chosen.marked):
                chosen.marked.append(MarkedFiles())
            chosen.marked[layer].files.append(file)
            chosen.marked[layer].words[file.data.size] = words[file.path]


def _mostly_superseded(split: Split, words: Mapping[str, Words]) -> bool:
    return split.needs_merge and sum(map(count_bits, words.values())) > split.row_count * _MOST_SUPERSEDED


def _by_tasks(costs: Sequence[tuple[Split, int]], chosen: Chosen) -> None:
    """Leave finding the rows to tasks; files of a size that another has are read by ours, with their split."""
    sizes: set[int] = set()
    taken: list[tuple[Split, int]] = []
    for split, cost in costs:
        own = {file.size for file in split.files}
        if len(own) < len(split.files) or own & sizes:
            chosen.ours.append(split)
        else:
            sizes |= own
            taken.append((split, cost))
    if taken:
        files = list(files_of([split for split, _ in taken]))
        chosen.marked.append(
            MarkedFiles(files, {}, tuple(split for split, _ in taken), tuple(cost for _, cost in taken))
        )
