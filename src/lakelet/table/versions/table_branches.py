"""The branch API of a table: `orders.branches.create("dev", tag="eod")`."""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.versions.branches import branch_names, create_branch, delete_branch, rename_branch
from lakelet.commit.versions.fast_forward import fast_forward
from lakelet.model.snapshot import Snapshot
from lakelet.options import TableOptions
from lakelet.storage.home import TableHome
from lakelet.table.versions.republish import republish
from lakelet.table.versions.table_tags import check_snapshot_id


@dataclass(frozen=True, slots=True)
class TableBranches:
    """Lines of versions beside the main one; `table.on_branch(name)` reads and writes them."""

    _home: TableHome

    def create(
        self, name: str, tag: str | None = None, version: int | None = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a branch that begins with the snapshot of a tag or of an id, or empty and in the newest schema."""
        if version is not None:
            check_snapshot_id(version)
        create_branch(self._home, name, tag=tag, version=version, if_not_exists=if_not_exists)

    def fast_forward(self, name: str) -> Snapshot:
        """Replace the main line by that of the branch, from the branch's first snapshot on; returns the newest snapshot."""
        found = fast_forward(self._home, name)
        republish(self._home)
        return found

    def rename(self, name: str, new_name: str) -> None:
        """Rename a branch."""
        rename_branch(self._home, self._options(), name, new_name)

    def delete(self, name: str, *, if_exists: bool = False) -> None:
        """Delete a branch, and the files that nothing else names."""
        delete_branch(self._home, self._options(), name, if_exists=if_exists)

    def list(self) -> list[str]:
        """The names of the branches beside the main one."""
        return branch_names(self._home)

    def _options(self) -> TableOptions:
        return TableOptions(latest_schema(self._home).options)
