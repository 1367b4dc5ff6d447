"""Check text that is stored in metadata files: names, comments, options, commit users.

All of it is UTF-8, which cannot encode half of a surrogate pair, and none of it may be of another type, which JSON would write
and no reader accept."""

from __future__ import annotations

from lakelet.errors import InvalidError


def check_text(text: object, what: str) -> str:
    """The text itself if it can be stored; InvalidError otherwise."""
    if not isinstance(text, str):
        raise InvalidError(f"{what}: expected text, found {text!r} of type {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(f"{what}: {text!r} is not valid Unicode ({error.reason})") from error
    return text
