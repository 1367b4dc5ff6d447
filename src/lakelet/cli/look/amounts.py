"""Format sizes, counts and times for people."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ("B", "KB", "MB", "GB", "TB")
_STEP = 1024


def shown_bytes(count: int) -> str:
    """A size with its unit, such as 1.5 MB."""
    size = float(count)
    for unit in _UNITS[:-1]:
        if abs(size) < _STEP:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"


def shown_count(count: int, what: str) -> str:
    """A number of things, such as 1 file or 2 files."""
    return f"{count:,} {what if count == 1 else what + 's'}"


def shown_second(milliseconds: int) -> str:
    """A timestamp in UTC, to the second, for pictures."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"


def bar(part: int, whole: int, width: int) -> str:
    """A bar whose length is the ratio of a part to the whole; a non-zero part has at least one mark."""
    if part <= 0 or whole <= 0:
        return ""
    return "█" * max(round(part / whole * width), 1)
