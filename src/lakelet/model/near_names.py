"""Suggest similar names, for messages about an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_SHOWN = 3


def nearest(name: str, there: Iterable[str]) -> str:
    """The suffix of a message that suggests similar names, or lists some of those there are."""
    known = sorted(there)
    folded = {other.lower(): other for other in known}
    found = [folded[other] for other in difflib.get_close_matches(name.lower(), folded, n=_MOST_SHOWN)]
    if found:
        return f"; did you mean {' or '.join(found)}?"
    shown = ", ".join(known[:_MOST_SHOWN]) + (", …" if len(known) > _MOST_SHOWN else "")
    return f"; there are {shown}" if known else "; there is none"
