"""Which worker reads which split: the same one as last time, so that its caches are warm, but none much more than the others.

Each split goes to the worker with the highest score for it (rendezvous hashing: a worker that comes takes its share of the splits
from all others, one that goes leaves its own to all of them), the largest first. A worker that would have a quarter more than
its share of the bytes is passed over for the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

_MORE = 1.25


def assigned_splits(splits: Sequence[tuple[str, int]], workers: Sequence[str]) -> dict[str, list[str]]:
    """The names of the splits of each worker, of splits with their bytes; workers without any are left out."""
    most = _MORE * sum(size for _, size in splits) / max(len(workers), 1)
    found: dict[str, list[str]] = {}
    load = dict.fromkeys(workers, 0)
    for name, size in sorted(splits, key=lambda split: (-split[1], split[0])):
        ranked = ranked_workers(name, workers)
        chosen = next((one for one in ranked if load[one] + size <= most), None)
        if chosen is None:
            chosen = min(ranked, key=lambda one: load[one])
        load[chosen] += size
        found.setdefault(chosen, []).append(name)
    return {worker: found[worker] for worker in workers if worker in found}


def ranked_workers(name: str, workers: Sequence[str]) -> list[str]:
    """The workers by their scores for a split, the highest first."""
    key = name.encode("utf-8", "surrogatepass")
    return sorted(workers, key=lambda one: (-xxhash.xxh3_64_intdigest(one.encode() + b"\0" + key), one))
