"""Every file name of a warehouse, in one place.

    <db>.db/<table>/
      metadata                                  table UUID and times
      metadata/{vN.metadata.json, …}            instead, of a table that is published there as an Iceberg table
      schema/schema-N                           N from 0
      snapshot/snapshot-N, LATEST, EARLIEST     N from 1, without gaps; the hints may be wrong
      manifest/manifest-list-<uuid>-K, manifest-<uuid>-K, index-manifest-<uuid>-K
      index/index-<uuid>-K
      statistics/stat-<uuid>-K
      callback/commit/CLASS                     the snapshots that a commit callback was called for
      changelog/changelog-N, LATEST, EARLIEST   changelogs that outlive their snapshots
      expiring/KIND-FIRST-LAST                  snapshots whose files are being removed
      commit-users/HASH/identifier-N            the last commit of a user whose snapshots are expired
      tag/tag-NAME    branch/branch-NAME/{schema,snapshot,tag}/…
      [k=v/…]bucket-N/<prefix><uuid>-K.parquet
    views/<db>/<view>.json                      the query of a view
    iceberg/<db>/<table>/metadata/…             Iceberg metadata of a table that is published for a Hadoop catalog

Paths are relative to the root of the store. A branch keeps its schemas, snapshots and tags below
`branch/branch-NAME`; its manifests, indexes and data files are in the folders of the main branch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakelet.errors import InvalidError
from lakelet.model.bucket_mode import POSTPONE_BUCKET

MAIN_BRANCH = "main"
VIEW_FOLDER = "views"
ICEBERG_FOLDER = "iceberg"
_VIEW_SUFFIX = ".json"
_DATABASE_SUFFIX = ".db"
_NAME = re.compile(r"^[^\x00-\x1f/\\:*?\"<>|$.#%\x7f]+$")
_MAX_NAME = 200
_NUMBERED = re.compile(r"^(?P<kind>snapshot|schema|changelog)-(?P<number>\d+)$")


def check_name(name: str, what: str) -> str:
    """The name itself if it may be part of a path; InvalidError otherwise."""
    if not isinstance(name, str):
        raise InvalidError(f"{what} name {name!r}: expected text, found {type(name).__name__}")
    if not _NAME.match(name) or name != name.strip() or len(name) > _MAX_NAME:
        raise InvalidError(
            f"{what} name {name!r}: expected up to {_MAX_NAME} characters, "
            "none of them a path, control or wildcard character, '.' or '$'"
        )
    return name


def database_folder(database: str) -> str:
    """The folder of a database."""
    return check_name(database, "database") + _DATABASE_SUFFIX


def database_of_folder(folder: str) -> str | None:
    """The database a top-level folder belongs to, None if it is no database."""
    name = folder.rstrip("/").rsplit("/", 1)[-1]
    return name.removesuffix(_DATABASE_SUFFIX) if name.endswith(_DATABASE_SUFFIX) and name != _DATABASE_SUFFIX else None


def view_path(database: str, view: str) -> str:
    """The file of a view."""
    return f"{VIEW_FOLDER}/{check_name(database, 'database')}/{check_name(view, 'view')}{_VIEW_SUFFIX}"


def view_of_path(path: str) -> str | None:
    """The view whose file this is, None for any other."""
    name = path.rsplit("/", 1)[-1]
    stem = name.removesuffix(_VIEW_SUFFIX)
    return stem if name.endswith(_VIEW_SUFFIX) and _NAME.match(stem) else None


@dataclass(frozen=True, slots=True)
class TablePaths:
    """The paths of one table, on its main branch or another."""

    root: str
    branch: str = MAIN_BRANCH

    @staticmethod
    def of(database: str, table: str) -> TablePaths:
        """The paths of `database.table`."""
        return TablePaths(f"{database_folder(database)}/{check_name(table, 'table')}")

    def on_branch(self, branch: str) -> TablePaths:
        """The same table on another branch."""
        if branch != MAIN_BRANCH:
            check_name(branch.replace(".", "_"), "branch")
        return TablePaths(self.root, branch)

    @property
    def identifier(self) -> str:
        """`database.table`, or the folder itself where it is that of no database."""
        folder, _, table = self.root.rpartition("/")
        database = database_of_folder(folder) if folder else None
        return self.root if database is None else f"{database}.{table}"

    @property
    def branch_root(self) -> str:
        """The folder of this branch's schemas, snapshots and tags."""
        return self.root if self.branch == MAIN_BRANCH else f"{self.root}/branch/branch-{self.branch}"

    @property
    def metadata(self) -> str:
        """The table's identity."""
        return f"{self.root}/metadata"

    @property
    def iceberg_in_table(self) -> str:
        """The folder of the Iceberg metadata that is published in the table's own folder."""
        return f"{self.root}/metadata"

    @property
    def iceberg_in_catalog(self) -> str | None:
        """The folder of the Iceberg metadata that is published beside the databases; None for a table outside of one."""
        folder, _, table = self.root.rpartition("/")
        database = database_of_folder(folder) if folder and "/" not in folder else None
        return None if database is None else f"{ICEBERG_FOLDER}/{database}/{table}/metadata"

    @property
    def schema_folder(self) -> str:
        """The folder of the schema versions."""
        return f"{self.branch_root}/schema"

    def schema(self, number: int) -> str:
        """A schema version."""
        return f"{self.schema_folder}/schema-{number}"

    @property
    def snapshot_folder(self) -> str:
        """The folder of the snapshots."""
        return f"{self.branch_root}/snapshot"

    def snapshot(self, number: int) -> str:
        """A snapshot."""
        return f"{self.snapshot_folder}/snapshot-{number}"

    @property
    def latest_hint(self) -> str:
        """The hint at the newest snapshot."""
        return f"{self.snapshot_folder}/LATEST"

    @property
    def earliest_hint(self) -> str:
        """The hint at the oldest snapshot."""
        return f"{self.snapshot_folder}/EARLIEST"

    @property
    def tag_folder(self) -> str:
        """The folder of the tags."""
        return f"{self.branch_root}/tag"

    def tag(self, name: str) -> str:
        """A tag."""
        if not name or "/" in name or "\x00" in name or name.startswith("."):
            raise InvalidError(f"tag name {name!r}: expected a name without '/' that does not begin with '.'")
        return f"{self.tag_folder}/tag-{name}"

    @property
    def branch_folder(self) -> str:
        """The folder of the branches."""
        return f"{self.root}/branch"

    def manifest(self, name: str) -> str:
        """A manifest, manifest list or index manifest."""
        return f"{self.root}/manifest/{name}"

    def index(self, name: str) -> str:
        """An index file."""
        return f"{self.root}/index/{name}"

    def statistics(self, name: str) -> str:
        """A file of statistics."""
        return f"{self.root}/statistics/{name}"

    @property
    def callback_folder(self) -> str:
        """The folder in which callbacks of this branch keep their state; no other engine reads it."""
        return f"{self.branch_root}/callback"

    def callback_record(self, name: str) -> str:
        """The record of the snapshots for which the commit callback of that class was called."""
        return f"{self.callback_folder}/commit/{name}"

    @property
    def changelog_folder(self) -> str:
        """The folder of changelogs that outlive their snapshots."""
        return f"{self.branch_root}/changelog"

    def changelog(self, number: int) -> str:
        """A changelog that outlives its snapshot."""
        return f"{self.changelog_folder}/changelog-{number}"

    @property
    def expiring_folder(self) -> str:
        """The folder of expiry records: the snapshots being expired, until their files are removed."""
        return f"{self.branch_root}/expiring"

    @property
    def commit_users_folder(self) -> str:
        """The folder of the last commit of each user whose snapshots are expired."""
        return f"{self.branch_root}/commit-users"

    def bucket_folder(self, partition_path: str, bucket: int, data_folder: str | None = None) -> str:
        """The folder of the data files of a bucket."""
        name = "bucket-postpone" if bucket == POSTPONE_BUCKET else f"bucket-{bucket}"
        return "/".join(part for part in (self.root, data_folder, partition_path, name) if part)


def file_number(path: str, kind: str) -> int | None:
    """The N of `…/<kind>-N`, None for any other name."""
    match = _NUMBERED.match(path.rsplit("/", 1)[-1])
    return int(match["number"]) if match and match["kind"] == kind else None
