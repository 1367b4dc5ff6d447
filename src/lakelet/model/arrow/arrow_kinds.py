"""Classify Arrow types as text or bytes, whatever their layout."""

from __future__ import annotations

import pyarrow as pa

_TYPES = pa.types


def is_text(source: pa.DataType) -> bool:
    """Whether values are text."""
    return bool(_TYPES.is_string(source) or _TYPES.is_large_string(source) or _TYPES.is_string_view(source))


def is_bytes(source: pa.DataType) -> bool:
    """Whether values are bytes, of one length or of any."""
    return bool(
        _TYPES.is_binary(source)
        or _TYPES.is_large_binary(source)
        or _TYPES.is_binary_view(source)
        or _TYPES.is_fixed_size_binary(source)
    )
