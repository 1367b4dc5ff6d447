"""Sort rows for a fold engine: by key, and those of a key oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lakelet.lsm.sort_fold import neighbours, refine
from lakelet.lsm.winners import SortedRun, require_order, sequence_range, sequence_words

Places = NDArray[np.int64]


def rows_by_key(runs: Sequence[SortedRun]) -> tuple[Places, Places]:
    """All rows that are present, as numbers into the concatenation of the runs in the order given, and where in them keys begin.

    The rows of a key ascend by version, sequence, run and place in the run: the last is the one that `winners` picks.
    CorruptionError for a run that is not sorted.
    """
    rows, at = [], 0
    for place, run in enumerate(runs):
        require_order(neighbours(run.words)[1], place)
        own = np.arange(len(run.words)) if run.absent is None else np.flatnonzero(~run.absent)
        rows.append(own + at)
        at += len(run.words)
    present = [place for place, run in enumerate(runs) if len(run.words)]
    if not present:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ranges = {place: sequence_range(runs[place]) for place in present}
    order = sorted(present, key=lambda place: ranges[place])
    # A run may hold a key several times, in whatever order of sequences.
    apart = all(ranges[older][1] < ranges[newer][0] for older, newer in pairwise(order))
    decided = apart and all(runs[place].versions is None and _ascends_by_key(runs[place]) for place in present)
    ordered = np.concatenate([rows[place] for place in (order if decided else range(len(runs)))])
    first = np.zeros(len(ordered), np.bool_)
    first[:1] = True
    ordered, first = refine(ordered, first, np.concatenate([runs[place].words for place in range(len(runs))]))
    if not decided:
        ordered, _ = refine(ordered, first, np.concatenate([sequence_words(runs[place]) for place in range(len(runs))]))
    return ordered, np.flatnonzero(first)


def _ascends_by_key(run: SortedRun) -> bool:
    """Whether adjacent rows of a key are in the order of their sequences."""
    first, _ = neighbours(run.words)
    repeated = ~first[1:]
    return not repeated.any() or bool((np.diff(run.sequences)[repeated] >= 0).all())
