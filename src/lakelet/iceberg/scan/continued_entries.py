"""The data files of a snapshot that continue those of an earlier one: only manifests that it does not have are put into columns.

    earlier     m1 m2 m3                    of the manifests that are new, as columns
    now         m4 m1 m2 m3         ─►      m4   +   the columns of m1 m2 m3, as they are

An append leaves the manifests of the snapshot before it in their order, and puts its own before or behind them. After anything
else (a manifest was written again, merged or removed) there is nothing to continue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.iceberg.scan.column_statistics import StatisticPairs
from lakelet.iceberg.scan.live_entries import LiveEntries, Partition


def new_places(names: Sequence[object], before: Sequence[object]) -> tuple[range, bool] | None:
    """The places of manifests that were not there before, and whether they come first; None where those from before are not all
    there, together and in their order."""
    added = len(names) - len(before)
    if not before or added < 0:
        return None
    if tuple(names[added:]) == tuple(before):
        return range(added), True
    return (range(len(before), len(names)), False) if tuple(names[: len(before)]) == tuple(before) else None


def continued(before: LiveEntries, new: LiveEntries, *, new_first: bool) -> LiveEntries:
    """The entries of both, in this order. Partitions keep their numbers; those that only `new` has are behind them."""
    partitions, codes = _partitions(before, new)
    first, second = (new, before) if new_first else (before, new)
    first_codes, second_codes = (codes, before.partition_codes) if new_first else (before.partition_codes, codes)
    made = LiveEntries(
        pa.concat_arrays([first.paths, second.paths]),
        pa.concat_arrays([first.formats, second.formats]),
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.sizes, second.sizes]),
        np.concatenate([first.contents, second.contents]),
        np.concatenate([first.sequence_numbers, second.sequence_numbers]),
        np.concatenate([first.manifests, second.manifests + len(first.manifest_paths)]),
        (*first.manifest_paths, *second.manifest_paths),
        partitions,
        np.concatenate([first_codes, second_codes]),
        {one: _pairs(first.pairs[one], second.pairs[one]) for one in before.pairs},
    )
    if partitions is before.partitions:
        # What was computed of all partitions holds for the same ones.
        made.computed.update(before.computed)
    return made


def _partitions(before: LiveEntries, new: LiveEntries) -> tuple[tuple[Partition, ...], Any]:
    """The partitions of both, and the numbers of the new files' ones."""
    known: dict[object, int] = {_key(one): place for place, one in enumerate(before.partitions)}
    partitions, places = list(before.partitions), []
    for one in new.partitions:
        place = known.get(_key(one))
        if place is None:
            place = len(partitions)
            partitions.append(one)
        places.append(place)
    codes = np.array(places, np.int64)[new.partition_codes]
    return before.partitions if len(partitions) == len(before.partitions) else tuple(partitions), codes


def _key(partition: Partition) -> object:
    """Floats are compared by their bits; values of other types are equal only to those of the same type."""
    spec_id, values = partition
    return spec_id, tuple((type(one), repr(one) if isinstance(one, float) else one) for one in values)


def _pairs(first: StatisticPairs, second: StatisticPairs) -> StatisticPairs:
    count = first.count + second.count
    if not len(first.files):
        return StatisticPairs(second.fields, second.files + first.count, second.values, count)
    if not len(second.files):
        return StatisticPairs(first.fields, first.files, first.values, count)
    values = [first.values, second.values]
    if first.values.type != second.values.type:
        # Writers differ in the types of bytes and of counts.
        kind = pa.int64() if pa.types.is_integer(first.values.type) else pa.binary()
        values = [one.cast(kind) for one in values]
    return StatisticPairs(
        np.concatenate([first.fields, second.fields]),
        np.concatenate([first.files, second.files + first.count]),
        pa.concat_arrays(values),
        count,
    )
