"""The tag API of a table: `orders.tags.create("eod")`."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.commit.dropped_table import noticing_drop
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import latest_snapshot
from lakelet.commit.metadata.stored import Version
from lakelet.commit.versions.tag_creation import create_due_tags
from lakelet.commit.versions.tags import (
    all_tags,
    check_tag_name,
    create_tag,
    delete_tag,
    expire_tags,
    find_version,
    get_tag,
    rename_tag,
    replace_tag,
    tagged_version,
    try_tag,
)
from lakelet.errors import AlreadyExistsError, InvalidError
from lakelet.model.tag import Tag
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome
from lakelet.table.time_arguments import Length, Moment, length, milliseconds
from lakelet.table.versions.republish import republish

Names = list[str]


@dataclass(frozen=True, slots=True)
class TableTags:
    """Names for versions of one branch of a table. A tag keeps the files of its snapshot through expiry."""

    _home: TableHome

    def create(
        self,
        name: str,
        version: int | None = None,
        timestamp: Moment | None = None,
        time_retained: Length | None = None,
        *,
        if_not_exists: bool = False,
    ) -> Tag:
        """Create a tag of the newest snapshot, that of an id, also where only another tag keeps it, or the newest up to a time.

        With `time_retained`, by default that of 'tag.default-time-retained', the tag expires by itself.
        """
        check_tag_name(name)
        with noticing_drop(self._home):
            known = try_tag(self._home, name)
            if known is not None:
                if if_not_exists:
                    return known
                raise AlreadyExistsError(f"tag {name!r} exists in {self._home.where(self._home.paths.branch_root)}")
            return create_tag(
                self._home,
                self._options(),
                name,
                chosen_version(self._home, version, timestamp),
                time_retained=None if time_retained is None else length(time_retained, "time_retained"),
                if_not_exists=if_not_exists,
            )

    def replace(
        self,
        name: str,
        version: int | None = None,
        timestamp: Moment | None = None,
        time_retained: Length | None = None,
    ) -> Tag:
        """Point an existing tag to another version; its retention is what is given now, or none."""
        get_tag(self._home, name)
        return replace_tag(
            self._home,
            self._options(),
            name,
            chosen_version(self._home, version, timestamp),
            time_retained=None if time_retained is None else length(time_retained, "time_retained"),
        )

    def rename(self, name: str, new_name: str) -> None:
        """Rename a tag."""
        rename_tag(self._home, name, new_name)
        republish(self._home)

    def delete(self, name: str, *, if_exists: bool = False) -> None:
        """Delete a tag, and the files that nothing else names."""
        delete_tag(self._home, self._options(), name, if_exists=if_exists)

    def get(self, name: str) -> Tag:
        """The tag of that name."""
        return get_tag(self._home, name)

    def list(self) -> list[Tag]:
        """All tags, by snapshot and name."""
        return all_tags(self._home)

    def expire(self, older_than: Moment | None = None) -> Names:
        """Delete the expired tags, and those made before a given time; returns their names."""
        before = None if older_than is None else milliseconds(older_than)
        return expire_tags(self._home, self._options(), older_than_ms=before)

    def create_due(self) -> Names:
        """Create the automatic tags that are due, as every write does; returns their names."""
        snapshot = latest_snapshot(self._home)
        return [] if snapshot is None else create_due_tags(self._home, latest_schema(self._home), snapshot)

    def _options(self) -> TableOptions:
        return TableOptions(latest_schema(self._home).options)


def chosen_version(home: TableHome, version: object, timestamp: object, tag: str | None = None) -> Version:
    """The one version that the arguments name; the newest where they name none."""
    given = [
        what for what, value in (("version", version), ("timestamp", timestamp), ("tag", tag)) if value is not None
    ]
    if len(given) > 1:
        raise InvalidError(f"expected one version; both {given[0]} and {given[1]} were given")
    if tag is not None:
        return tagged_version(home, tag)
    if timestamp is not None:
        return find_version(home, time_ms=milliseconds(timestamp))
    return find_version(home, None if version is None else check_snapshot_id(version))


def check_snapshot_id(version: object) -> int:
    """The id; InvalidError for a value that is no snapshot id."""
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InvalidError(f"version {version!r}: expected the id of a snapshot, from 1 on")
    return version
