"""Tags, branches, consumers and rollback of a table."""

from __future__ import annotations

import copy
from typing import Self

from lakelet.commit.metadata.version_ids import tag_names
from lakelet.commit.versions.branches import branch_home
from lakelet.commit.versions.rollback import roll_back
from lakelet.commit.versions.tags import get_tag, tagged_version
from lakelet.errors import InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.storage.home import TableHome
from lakelet.storage.paths import MAIN_BRANCH
from lakelet.table.time_arguments import Moment
from lakelet.table.versions.table_branches import TableBranches
from lakelet.table.versions.table_consumers import TableConsumers
from lakelet.table.versions.table_tags import TableTags, chosen_version


class Versioning:
    """The part of a table that names its versions, goes back to them and branches off."""

    name: str
    _home: TableHome

    @property
    def tags(self) -> TableTags:
        """Names for versions."""
        return TableTags(self._home)

    @property
    def branches(self) -> TableBranches:
        """Lines of versions beside the main one."""
        return TableBranches(self._home)

    @property
    def consumers(self) -> TableConsumers:
        """Readers that hold snapshots back from expiry."""
        return TableConsumers(self._home)

    @property
    def branch(self) -> str:
        """The branch that this table reads and writes."""
        return self._home.paths.branch

    def on_branch(self, name: str) -> Self:
        """The same table on a branch, to read and to write; "main" is the main branch."""
        table = copy.copy(self)
        table._home = branch_home(self._home, name)
        base = self.name.split("$branch_", 1)[0]
        table.name = base if name == MAIN_BRANCH else f"{base}$branch_{name}"
        return table

    def rollback(self, to: int | str | None = None, *, timestamp: Moment | None = None) -> Snapshot:
        """Makes an older version the newest one: a snapshot by its id, a tag by its name, or the last up to a time.

        What came after it is no more, tags of later versions included; its files stay until orphans are removed. The schema stays
        as it is.
        """
        if (to is None) == (timestamp is None):
            raise InvalidError(
                "a rollback needs a snapshot id or a tag name to go back to, or a timestamp, and not both"
            )
        tag = self._tag_of(to) if isinstance(to, str) else None
        if tag is not None:
            return roll_back(self._home, tagged_version(self._home, tag), tag=tag)
        number = int(to) if isinstance(to, str) else to
        version = chosen_version(self._home, number, timestamp)
        return roll_back(self._home, version)

    def _tag_of(self, text: str) -> str | None:
        """The tag of that name; None for a snapshot id as text that is no tag's name."""
        if text in tag_names(self._home):
            return text
        if text.isascii() and text.isdecimal():
            return None
        return get_tag(self._home, text).name
