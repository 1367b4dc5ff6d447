"""A snapshot: one committed version of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Self

from lakelet.clock import shown_time

BATCH_COMMIT_IDENTIFIER = 2**63 - 1
SNAPSHOT_VERSION = 3


class CommitKind(Enum):
    """The kind of commit that made a snapshot."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """The files of one version, by the manifest lists that name them. Record counts are of rows in files,
    before any merge."""

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_ms: int
    total_record_count: int | None
    delta_record_count: int | None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    changelog_record_count: int | None = None
    index_manifest: str | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = None
    next_row_id: int | None = None
    version: int = SNAPSHOT_VERSION

    def __repr__(self) -> str:
        return f"Snapshot({self.id}, {self.commit_kind.value}, {shown_time(self.time_ms)}, {self.total_record_count} records)"

    def committed_as(self) -> tuple[str, int, CommitKind]:
        """The identity by which a repeated commit is recognised."""
        return (self.commit_user, self.commit_identifier, self.commit_kind)


@dataclass(frozen=True, slots=True, repr=False)
class Changelog(Snapshot):
    """A snapshot that has expired, of which only the changes are left: its changelog, or the rows that it appended."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """The changelog that an expired snapshot has left. Its index files have expired with it."""
        values = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
        return cls(**{**values, "index_manifest": None})
