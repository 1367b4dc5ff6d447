"""Lossless conversion of Arrow arrays to another type; ArrowInvalid for the first value that would change.

The conversion of all incoming rows, of Lakelet's own tables and Iceberg's. Arrow's safe cast does most of it; where that loses
digits, they are checked here:

    to FLOAT, DOUBLE    from FLOAT and DOUBLE what is held exactly; from integers and decimals the nearest number, and beyond
                        ±2^53 (FLOAT ±2^24), where whole numbers begin to be left out, what is held exactly
    to an integer       whole numbers; from FLOAT and DOUBLE within the same bounds, beyond which one represents several
    to DECIMAL          numbers that are the same when they are read back
    to DATE             timestamps at midnight
    uuids               their text, or their sixteen bytes
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TYPES = pa.types
_LONGEST_INTEGER = 20
_WIDEST = 76
_LONGEST_DECIMAL = 39
# Up to here every whole number is one of these.
_WHOLE = {16: 2**11, 32: 2**24, 64: 2**53}
_UUID_BYTES = 16
_HYPHENS = (8, 13, 18, 23)
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def convert_array(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The values in another type; ArrowInvalid where one would change."""
    prepared = _prepared(array, target)
    if prepared.type == target:
        return prepared
    if _TYPES.is_integer(prepared.type) and _TYPES.is_decimal(target):
        # From integers Arrow wants room for the greatest of their type; from a decimal it looks at the values.
        prepared = prepared.cast(pa.decimal256(_LONGEST_INTEGER + target.scale, target.scale))
    converted = prepared.cast(target, safe=True)
    if _may_lose(prepared.type, target):
        for before, after in _leaves(prepared, converted):
            if _may_lose(before.type, after.type):
                _check_kept(before, after)
    return converted


def _prepared(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The array with the values that Arrow does not convert well by itself already in their target, at every depth."""
    arrow = array.type
    if not _needs_preparation(arrow, target):
        return array
    if _TYPES.is_dictionary(arrow):
        return _prepared(_without_dictionary(array), target)
    if arrow == pa.uuid():
        return _uuid_texts(array.storage) if _TYPES.is_string(target) else array.storage
    if _TYPES.is_decimal(arrow) and _TYPES.is_floating(target):
        return _nearest(array, target)
    # Copied, for what is inside of a sliced array is that of the whole.
    whole = pa.concat_arrays([array])
    mask = whole.is_null() if whole.null_count else None
    if _TYPES.is_struct(arrow):
        members = [
            _prepared(member, _member_type(target, inner.name))
            for inner, member in zip(arrow, whole.flatten(), strict=True)
        ]
        return pa.StructArray.from_arrays(members, names=[inner.name for inner in arrow], mask=mask)
    if _TYPES.is_map(arrow):
        keys, items = _prepared(whole.keys, target.key_type), _prepared(whole.items, target.item_type)
        return pa.MapArray.from_arrays(whole.offsets, keys, items, mask=mask)
    if not (_TYPES.is_list(arrow) or _TYPES.is_large_list(arrow)):
        whole = whole.cast(pa.list_(arrow.value_field))
    lists = pa.LargeListArray if _TYPES.is_large_list(whole.type) else pa.ListArray
    return lists.from_arrays(whole.offsets, _prepared(whole.values, target.value_type), mask=mask)


def _needs_preparation(source: pa.DataType, target: pa.DataType) -> bool:
    if _TYPES.is_dictionary(source) or source == pa.uuid():
        return True
    if _TYPES.is_struct(source) and _TYPES.is_struct(target):
        return any(_needs_preparation(inner.type, _member_type(target, inner.name)) for inner in source)
    if _TYPES.is_map(source) and _TYPES.is_map(target):
        return _needs_preparation(source.key_type, target.key_type) or _needs_preparation(
            source.item_type, target.item_type
        )
    if hasattr(source, "value_type") and _TYPES.is_list(target):
        return _needs_preparation(source.value_type, target.value_type)
    return bool(_TYPES.is_decimal(source) and _TYPES.is_floating(target))


def _member_type(target: pa.DataType, name: str) -> pa.DataType:
    return target.field(name).type


def _without_dictionary(array: pa.Array) -> pa.Array:
    """The values themselves; a dictionary of views, as polars makes, is one Arrow cannot look up in."""
    values = array.dictionary
    if _TYPES.is_string_view(values.type) or _TYPES.is_binary_view(values.type):
        values = values.cast(pa.string() if _TYPES.is_string_view(values.type) else pa.binary())
    return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()


def _nearest(decimals: pa.Array, target: pa.DataType) -> pa.Array:
    """The nearest floating-point numbers, by way of their text: Arrow's own cast is off by one in the last place."""
    numbers = decimals.cast(pa.string()).cast(target)
    beyond = pc.fill_null(pc.greater_equal(pc.abs(numbers), float(_WHOLE[target.bit_width])), False)
    if pc.any(beyond).as_py():
        scale = decimals.type.scale
        held = numbers.filter(beyond).cast(pa.decimal256(_LONGEST_DECIMAL, 0)).cast(pa.decimal256(_WIDEST, scale))
        _check_same(decimals.filter(beyond).cast(pa.decimal256(_WIDEST, scale)), held)
    return numbers


def _uuid_texts(storage: pa.Array) -> pa.Array:
    """uuids as their usual text, 8-4-4-4-12 hexadecimal digits."""
    count = len(storage)
    data = np.frombuffer(storage.buffers()[1], np.uint8)[storage.offset * _UUID_BYTES :][: count * _UUID_BYTES]
    digits = np.empty((count, 2 * _UUID_BYTES), np.uint8)
    pairs = data.reshape(count, _UUID_BYTES)
    digits[:, ::2], digits[:, 1::2] = _HEX[pairs >> 4], _HEX[pairs & 15]
    width = 2 * _UUID_BYTES + len(_HYPHENS)
    text = np.full((count, width), ord("-"), np.uint8)
    text[:, [place for place in range(width) if place not in _HYPHENS]] = digits
    offsets = np.arange(count + 1, dtype=np.int32) * width
    validity = pa.array(storage.is_valid()).buffers()[1] if storage.null_count else None
    return pa.Array.from_buffers(pa.string(), count, [validity, pa.py_buffer(offsets), pa.py_buffer(text)])


def _may_lose(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast loses digits at any depth that Arrow does not count as unsafe."""
    if _TYPES.is_floating(source):
        narrows = _TYPES.is_floating(target) and source.bit_width > target.bit_width
        return bool(narrows or _TYPES.is_integer(target) or _TYPES.is_decimal(target))
    if _TYPES.is_timestamp(source):
        return bool(_TYPES.is_date(target))
    if _TYPES.is_struct(source) and _TYPES.is_struct(target):
        return any(_may_lose(inner.type, target.field(inner.name).type) for inner in source)
    if _TYPES.is_map(source) and _TYPES.is_map(target):
        return _may_lose(source.key_type, target.key_type) or _may_lose(source.item_type, target.item_type)
    if hasattr(source, "value_type") and _TYPES.is_list(target):
        return _may_lose(source.value_type, target.value_type)
    return False


def _check_kept(before: pa.Array, after: pa.Array) -> None:
    """ArrowInvalid where a value changed."""
    if _TYPES.is_decimal(after.type):
        _check_same(before, after.cast(pa.string()).cast(before.type))
    elif _TYPES.is_integer(after.type):
        limit = float(_WHOLE[before.type.bit_width])
        _refuse(before, pc.greater(pc.abs(before), limit), "represents several whole numbers")
    elif _TYPES.is_date(after.type):
        _check_same(before, after.cast(before.type))
    else:
        differs = pc.and_(pc.not_equal(before, after.cast(before.type)), pc.invert(pc.is_nan(before)))
        _refuse(before, differs, "cannot be held exactly")


def _check_same(before: pa.Array, after: pa.Array) -> None:
    _refuse(before, pc.not_equal(before, after), "cannot be held exactly")


def _refuse(values: pa.Array, wrong: pa.Array, what: str) -> None:
    if pc.any(wrong).as_py():
        raise pa.ArrowInvalid(f"{values[wrong.index(True).as_py()].as_py()!r} {what}")


def _leaves(array: pa.Array, converted: pa.Array) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The arrays without children inside, before and after; values are NULL where anything above them is."""
    if _TYPES.is_struct(array.type):
        members = dict(zip([inner.name for inner in converted.type], converted.flatten(), strict=True))
        for inner, member in zip(array.type, array.flatten(), strict=True):
            yield from _leaves(member, members[inner.name])
    elif _TYPES.is_map(array.type):
        before, after = (pa.concat_arrays([found.drop_null()]) for found in (array, converted))
        yield from _leaves(before.keys, after.keys)
        yield from _leaves(before.items, after.items)
    elif _TYPES.is_list(converted.type):
        yield from _leaves(array.flatten(), converted.flatten())
    else:
        yield array, converted
