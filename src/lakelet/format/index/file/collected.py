"""The values of one column of one file while it is written: different values, and which of them each row has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakelet.format.index.file.values import Numbers, index_bytes, index_numbers, is_bytes, java_order
from lakelet.model.types import Atomic

Codes = NDArray[np.unsignedinteger]
Numbers32 = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that were taken at once: the first, the number of each row's value, and of each number its place in Java's order."""

    begin: int
    codes: Codes
    places: Numbers


@dataclass(slots=True)
class CollectedValues:
    """The number of each row's value, in as few bytes as do, and the values of each part that was taken."""

    type: Atomic
    rows: int = 0
    nulls: list[Numbers] = field(default_factory=list)
    values: list[pa.Array] = field(default_factory=list)
    codes: list[Codes] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)

    def update(self, values: pa.Array) -> None:
        """Takes values, NULLs too."""
        if values.null_count:
            self.nulls.append(np.flatnonzero(np.asarray(pc.is_null(values))) + self.rows)
        there = values.drop_null()
        keys = index_bytes(there) if is_bytes(self.type) else pa.array(index_numbers(there, self.type))
        encoded = keys.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        width = np.min_scalar_type(len(encoded.dictionary))
        if values.null_count:
            places = np.full(len(values), len(encoded.dictionary), width)
            places[np.asarray(pc.is_valid(values))] = codes
        else:
            places = codes.astype(width)
        self.values.append(encoded.dictionary)
        self.codes.append(places)
        self.begins.append(self.rows)
        self.rows += len(values)

    def null_rows(self) -> Numbers:
        """The rows that are NULL."""
        return np.concatenate(self.nulls) if self.nulls else np.empty(0, np.int64)

    def numbers(self, parts: Sequence[Part]) -> Numbers32:
        """Of each row the place of its value in Java's order, -1 where it is NULL."""
        found = np.full(self.rows, -1, np.int32)
        for part in parts:
            found[part.begin : part.begin + len(part.codes)] = np.append(part.places, -1)[part.codes]
        return found

    def ordered(self) -> tuple[pa.Array, list[Part]]:
        """The values, each once, in Java's order, and the parts that were taken."""
        taken = [
            (begin, codes, values)
            for values, codes, begin in zip(self.values, self.codes, self.begins, strict=True)
            if len(values)
        ]
        if not taken:
            return pa.array([], pa.binary() if is_bytes(self.type) else pa.int64()), []
        encoded = pa.concat_arrays([values for _, _, values in taken]).dictionary_encode()
        unique = encoded.dictionary
        order = (
            pc.array_sort_indices(unique).to_numpy()
            if is_bytes(self.type)
            else np.argsort(java_order(unique.to_numpy(), self.type), kind="stable")
        )
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        places = ranks[encoded.indices.to_numpy()]
        ends = np.cumsum([len(values) for _, _, values in taken])
        parts = [
            Part(begin, codes, found)
            for (begin, codes, _), found in zip(taken, np.split(places, ends[:-1]), strict=True)
        ]
        return unique.take(pa.array(order)), parts
