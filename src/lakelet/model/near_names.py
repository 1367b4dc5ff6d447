"""Hints at the names that somebody may have meant, for messages about a name that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_SHOWN = 3


def nearest(name: str, there: Iterable[str]) -> str:
    """A hint at the names that are meant instead, to stand behind a message."""
    known = sorted(there)
    folded = {other.lower(): other for other in known}
    found = [folded[other] for other in difflib.get_close_matches(name.lower(), folded, n=_MOST_SHOWN)]
    if found:
        return f"; did you mean {' or '.join(found)}?"
    shown = ", ".join(known[:_MOST_SHOWN]) + (", …" if len(known) > _MOST_SHOWN else "")
    return f"; there are {shown}" if known else "; there is none"
