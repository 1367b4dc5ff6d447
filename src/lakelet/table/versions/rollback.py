"""Roll a table back to a version that a caller names: a snapshot id, a tag or a time."""

from __future__ import annotations

from lakelet.commit.metadata.version_ids import tag_names
from lakelet.commit.versions.rollback import roll_back
from lakelet.commit.versions.tags import get_tag, tagged_version
from lakelet.errors import InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.table.time_arguments import Moment
from lakelet.table.versions.republish import republish
from lakelet.table.versions.table_tags import chosen_version


def rollback_to(home: TableHome, to: int | str | None, timestamp: Moment | None) -> Snapshot:
    """Make an older version the newest one."""
    if (to is None) == (timestamp is None):
        raise InvalidError("a rollback needs a snapshot id or a tag name to go back to, or a timestamp, and not both")
    tag = _tag_of(home, to) if isinstance(to, str) else None
    if tag is not None:
        found = roll_back(home, tagged_version(home, tag), tag=tag)
    else:
        number = int(to) if isinstance(to, str) else to
        found = roll_back(home, chosen_version(home, number, timestamp))
    republish(home)
    return found


def _tag_of(home: TableHome, text: str) -> str | None:
    """The tag of that name; None for a snapshot id as text that is no tag's name."""
    if text in tag_names(home):
        return text
    if text.isascii() and text.isdecimal():
        return None
    return get_tag(home, text).name
