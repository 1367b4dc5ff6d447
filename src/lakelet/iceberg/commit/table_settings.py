"""Parse numeric and boolean table properties, with checks."""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.errors import InvalidError


def number_property(properties: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    """A whole number of at least `least`."""
    text = properties.get(name)
    if text is None:
        return default
    if not text.strip().isdigit() or int(text) < least:
        raise InvalidError(f"table property '{name}': expected a whole number from {least} on, found {text!r}")
    return int(text)


def flag_property(properties: Mapping[str, str], name: str, default: bool) -> bool:
    """true or false."""
    text = properties.get(name)
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise InvalidError(f"table property '{name}': expected true or false, found {text!r}")
    return text.strip().lower() == "true"
