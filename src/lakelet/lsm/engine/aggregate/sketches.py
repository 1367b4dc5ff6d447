"""`hll_sketch` and `theta_sketch`: unions of DataSketches' sketches, in the bytes that Java Paimon writes.

The library is Apache's `datasketches`, of the extra `lakelet[sketches]`; nothing else needs it. Its C++ writes the bytes of Java,
but for what nobody reads of a theta sketch (Java's first, C++'s second):

    more than one value     the probability of sampling, 1.0    0
    a single value          the flag that says so               without
    no value                no hash of the seed                 with

Java Paimon unites two values at a time and writes the result in between, and so do these functions: the estimate of an HLL sketch
depends on the steps in its last digits. Java also takes a theta sketch that can still be updated, which the library does not
read; it is made compact here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from lakelet.errors import InvalidError
from lakelet.lsm.engine.aggregate.column_rule import ColumnRule

# The nominal entries of the union that Paimon makes: 4,096.
_LG_NOMINAL = 12
_COMPACT, _UPDATABLE = 3, (1, 2)
_FEW_PREAMBLE = 3
_EMPTY, _SINGLE = 0x04, 0x20
_READ_ONLY_COMPACT = 0x0A
_UPDATABLE_PREAMBLE = 24
_MODE, _MODE_MASK, _DENSE = 7, 3, 2
_SAMPLED_ALL = struct.pack("<f", 1.0)

Unite = Callable[[ModuleType, bytes, bytes], bytes]


def missing_library(rule: ColumnRule) -> str | None:
    """What is missing for functions of sketches, if anything."""
    del rule
    try:
        _library()
    except ImportError as error:
        return f"it needs the library of the sketches: pip install lakelet[sketches] ({error})"
    return None


def united_hll(values: Sequence[bytes], rule: ColumnRule) -> bytes:
    """The union of HLL sketches, oldest first, as an HLL_4 sketch."""
    return _united(values, rule, _hll_union)


def united_theta(values: Sequence[bytes], rule: ColumnRule) -> bytes:
    """The union of theta sketches, compact and ordered."""
    return _united(values, rule, _theta_union)


def _united(values: Sequence[bytes], rule: ColumnRule, unite: Unite) -> bytes:
    library = _library()
    result = values[0]
    for value in values[1:]:
        try:
            result = unite(library, result, value)
        except (RuntimeError, ValueError, IndexError, MemoryError) as error:
            raise InvalidError(
                f"column {rule.column!r} is aggregated with '{rule.function}', and a value is no such sketch: {error}"
            ) from error
    return result


def _hll_union(library: ModuleType, older: bytes, newer: bytes) -> bytes:
    sketch = library.hll_sketch.deserialize(newer)
    union = library.hll_union(sketch.lg_config_k)
    union.update(sketch)
    dense, small = (value[_MODE] & _MODE_MASK == _DENSE for value in (older, newer))
    taken = library.hll_sketch.deserialize(older)
    union.update(_downsampled(library, taken, sketch.lg_config_k) if dense and not small else taken)
    return bytes(union.get_result(library.tgt_hll_type.HLL_4).serialize_compact())


def _downsampled(library: ModuleType, sketch: Any, lg_k: int) -> Any:
    """A sketch with no more buckets than its union will have. The library makes it smaller itself, but counts what comes after
    with the sums of before."""
    if sketch.lg_config_k <= lg_k:
        return sketch
    union = library.hll_union(lg_k)
    union.update(sketch)
    return union.get_result(library.tgt_hll_type.HLL_8)


def _theta_union(library: ModuleType, older: bytes, newer: bytes) -> bytes:
    union = library.theta_union(_LG_NOMINAL)
    for value in (older, newer):
        union.update(library.compact_theta_sketch.deserialize(_compact(value)))
    return _as_java(bytes(union.get_result(True).serialize()))


def _as_java(data: bytes) -> bytes:
    """A compact theta sketch with what Java writes where nobody reads."""
    made = bytearray(data)
    if made[5] & _EMPTY:
        made[6:8] = b"\0\0"
    elif made[0] == 1:
        made[5] |= _SINGLE
    else:
        made[12:16] = _SAMPLED_ALL
    return bytes(made)


def _compact(data: bytes) -> bytes:
    """A theta sketch that can still be updated as a compact one; others as they are.

    preamble longs and more u1 │ version u1 │ family u1 │ sizes 2 × u1 │ flags u1 │ hash of the seed u2 │ count u4 │ p f4 │ theta
    u8 the slots of its hash table, u8 each: a hash, or 0
    """
    if len(data) < _UPDATABLE_PREAMBLE or data[2] not in _UPDATABLE:
        return data
    table = np.frombuffer(data, "<u8", offset=_UPDATABLE_PREAMBLE, count=(len(data) - _UPDATABLE_PREAMBLE) // 8)
    (theta,) = struct.unpack_from("<Q", data, 16)
    hashes = table[(table != 0) & (table < theta)]
    flags = _READ_ONLY_COMPACT | (data[5] & _EMPTY)
    if flags & _EMPTY:
        return bytes((1, data[1], _COMPACT, 0, 0, flags)) + data[6:8]
    head = bytes((_FEW_PREAMBLE, data[1], _COMPACT, 0, 0, flags)) + data[6:8]
    return b"".join((head, struct.pack("<IfQ", len(hashes), 0.0, theta), hashes.tobytes()))


def _library() -> ModuleType:
    # An extra, which tables with such a column alone need; it ships no types.
    return import_module("_datasketches")
