"""The newest row of each key over many sorted runs, by Lakelet's kernel and by a stable sort of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.append.rows import SEED
from benchmarks.contender import repeated, serve
from lakelet.lsm.winners import SortedRun, winners


def kernel(rows: int, runs: int, ordered: bool, repeats: int) -> dict[str, Any]:
    """Lakelet's winners; with `ordered`, in key order."""
    length = rows // runs
    sorted_runs = [
        SortedRun(words.reshape(-1, 1), np.arange(place * length, (place + 1) * length))
        for place, words in enumerate(_keys(rows, runs))
    ]
    found: list[int] = []
    taken = repeated(lambda _: found.append(len(winners(sorted_runs, ordered=ordered))), repeats)
    return {**taken, "keys": found[-1]}


def stable_sort(rows: int, runs: int, repeats: int) -> dict[str, Any]:
    """The order of all keys by `argsort`, which finds the runs, without what picks the last of each."""
    keys = np.concatenate(_keys(rows, runs))
    taken = repeated(lambda _: np.argsort(keys, kind="stable"), repeats)
    return {**taken, "keys": len(np.unique(keys))}


def _keys(rows: int, runs: int) -> list[NDArray[np.uint64]]:
    random = np.random.default_rng([SEED, rows, runs])
    return [np.sort(random.choice(rows, rows // runs, replace=False)).astype(np.uint64) for _ in range(runs)]


if __name__ == "__main__":
    serve(kernel, stable_sort)
