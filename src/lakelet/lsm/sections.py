"""Partition the files of a bucket, or other sources of sorted rows, into sections of overlapping key ranges.

    keys     a . . . . . . . . . . . . . . . z
    files    [---1---]       [--4--]                    section (1, 2, 3): the runs (1, 3) and (2,)
                 [--2--]           |   [--5--]          section (4,), section (5,)
                      [-3-]

A section is as few files as can be merged without looking at any other, so sections are read one after the other and come in key
order. Within a section files are packed into sorted runs, as few as possible: the files of a run do not overlap, and
one cursor walks them all. Levels play no part here; they say nothing that the key ranges do not say better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.rows.binary_row_columns import decode_rows
from lakelet.lsm.key_words import encode_keys
from lakelet.lsm.source.row_source import SourceStats
from lakelet.model.types import DataType


@dataclass(frozen=True, slots=True)
class Section:
    """Files whose key ranges overlap transitively, as places in the list of files.

    A run is files that do not overlap, in key order. Runs come oldest first, by the greatest sequence number in them.
    """

    runs: tuple[tuple[int, ...], ...]

    @property
    def places(self) -> tuple[int, ...]:
        """All files, run by run."""
        return tuple(place for run in self.runs for place in run)


def sections(files: Sequence[SourceStats], key_types: Sequence[DataType]) -> tuple[Section, ...]:
    """The sections of one bucket's files, in key order. `key_types` are those of the trimmed primary key."""
    if not files:
        return ()
    low, high = _key_ranks(files, key_types)
    order = np.lexsort((high, low))
    reach = np.maximum.accumulate(high[order])
    starts = np.flatnonzero(low[order][1:] > reach[:-1]) + 1
    return tuple(_section(files, group, low, high) for group in np.split(order, starts))


def needs_merge(files: Sequence[SourceStats], section: Section, *, counts_deletes: bool = True) -> bool:
    """Whether some rows of the section may be superseded or deleted: there are several runs, or retracts (or it is unknown).

    pypaimon counts no retracts whatever it wrote. It writes some only where `rowkind.field` is set, so in such a table
    `counts_deletes` is to be false, and the number of retracts in a file of level 0 is unknown.
    """
    return len(section.runs) > 1 or any(
        may_hold_retracts(files[place], counts_deletes=counts_deletes) for place in section.places
    )


def may_hold_retracts(file: SourceStats, *, counts_deletes: bool) -> bool:
    """Whether a file may hold retracts; see `needs_merge`."""
    return file.delete_row_count != 0 or (file.level == 0 and not counts_deletes)


def _key_ranks(
    files: Sequence[SourceStats], key_types: Sequence[DataType]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each file's least and greatest key as whole numbers that compare as the keys do."""
    ends = [pa.array(keys, pa.binary()) for keys in ([f.min_key for f in files], [f.max_key for f in files])]
    parts = [decode_rows(keys, key_types, where="key range of a data file") for keys in ends]
    words = np.concatenate(encode_keys(parts, key_types))
    order = np.lexsort(words.T[::-1])
    is_new = np.any(words[order][1:] != words[order][:-1], axis=1)
    ranks = np.empty(len(words), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(is_new)])
    return ranks[: len(files)], ranks[len(files) :]


def _section(
    files: Sequence[SourceStats], group: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> Section:
    """Pack files, by their least key, into runs: each joins the run that ended first, if that ended before the file begins."""
    if len(group) == 1:
        return Section(((int(group[0]),),))
    runs: list[list[int]] = []
    ends: list[tuple[int, int]] = []
    for place in group.tolist():
        if ends and ends[0][0] < low[place]:
            _, run = heappop(ends)
            runs[run].append(place)
        else:
            run = len(runs)
            runs.append([place])
        heappush(ends, (int(high[place]), run))
    runs.sort(key=lambda run: (max(files[place].max_sequence for place in run), max(run)))
    return Section(tuple(tuple(run) for run in runs))
