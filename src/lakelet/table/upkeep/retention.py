"""Expiry and clean-up of a table: resolves the options and delegates to the stages of `commit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lakelet.commit.metadata.hints import RepairedHints, repair_hints
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.retention.expiry import ExpiredSnapshots, expire_changelogs, expire_snapshots
from lakelet.commit.retention.expiry_policy import Retention
from lakelet.commit.retention.orphans import OrphanReport, OrphanWork, remove_orphan_files
from lakelet.commit.retention.partition_expiry import ExpiredPartitions, expire_partitions
from lakelet.errors import InvalidError
from lakelet.model.schema import TableSchema
from lakelet.options import (
    COMMIT_TIMEOUT,
    PARTITION_EXPIRATION_MAX_NUM,
    PARTITION_EXPIRATION_TIME,
    TableOptions,
    check_options,
    check_stored,
)
from lakelet.storage.home import TableHome
from lakelet.table.time_arguments import Age, past_ms
from lakelet.table.upkeep.missing_files import MissingFiles, drop_missing_files


@dataclass(frozen=True, slots=True)
class TableRetention:
    """Expiry of snapshots and partitions, and removal of files that nothing refers to."""

    home: TableHome

    def expire_snapshots(
        self,
        retain_last: int | None = None,
        *,
        retain_max: int | None = None,
        older_than: Age | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> ExpiredSnapshots:
        """Expire old snapshots, and delete the files that only they need."""
        chosen = TableOptions(self._checked_schema(options).options)
        now_ms = self.home.clock.now_ms()
        retention = _retention(Retention.of(chosen, now_ms), retain_last, retain_max)
        if older_than is not None:
            retention = replace(retention, replaced_since_ms=past_ms(older_than, now_ms, "older_than"))
        if not chosen.is_set(COMMIT_TIMEOUT) and (retain_last, retain_max, older_than) != (None, None, None):
            # Slow writers detect by themselves that their snapshot is out of line; what was asked for explicitly is done.
            retention = replace(retention, made_since_ms=now_ms)
        retention = replace(retention, limit=_count(limit, "limit"))
        return expire_snapshots(self.home, chosen, retention, dry_run=dry_run)

    def expire_changelogs(
        self,
        retain_min: int | None = None,
        *,
        retain_max: int | None = None,
        older_than: Age | None = None,
        limit: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> ExpiredSnapshots:
        """Expire changelogs that were kept longer than their snapshots, and delete the files that only they need."""
        chosen = TableOptions(self._checked_schema(options).options)
        now_ms = self.home.clock.now_ms()
        kept = Retention.of(chosen, now_ms).of_changelogs(chosen, now_ms)
        retention = replace(_retention(kept, retain_min, retain_max), made_since_ms=now_ms)
        if older_than is not None:
            retention = replace(retention, replaced_since_ms=past_ms(older_than, now_ms, "older_than"))
        return expire_changelogs(self.home, replace(retention, limit=_count(limit, "limit")))

    def expire_partitions(
        self,
        older_than: Age | None = None,
        *,
        max_partitions: int | None = None,
        dry_run: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> ExpiredPartitions:
        """Drop the partitions whose time is before `older_than` (an age, or a point in time), in one commit."""
        schema = self._checked_schema(options)
        chosen = TableOptions(schema.options)
        age = chosen.get(PARTITION_EXPIRATION_TIME) if older_than is None else older_than
        if age is None:
            raise InvalidError(
                f"{self.home.where(self.home.paths.root)} has no partition.expiration-time: say older_than, or set it"
            )
        return expire_partitions(
            self.home,
            schema,
            older_than_ms=past_ms(age, self.home.clock.now_ms(), "older_than"),
            at_most=_count(max_partitions, "max_partitions") or chosen.get(PARTITION_EXPIRATION_MAX_NUM),
            dry_run=dry_run,
        )

    def remove_orphan_files(
        self, older_than: Age = "1 d", *, dry_run: bool = False, work: OrphanWork | None = None
    ) -> OrphanReport:
        """Delete files that nothing on any branch refers to and that were last changed before `older_than`."""
        self._checked_schema()
        before_ms = past_ms(older_than, self.home.clock.now_ms(), "older_than")
        return remove_orphan_files(self.home, older_than_ms=before_ms, dry_run=dry_run, work=work)

    def remove_unexisting_files(self, *, dry_run: bool = False) -> MissingFiles:
        """Remove data files that are missing in the store from the table, so that its other rows can be read again."""
        self._checked_schema()
        return drop_missing_files(self.home, dry_run=dry_run)

    def repair(self) -> RepairedHints:
        """Correct the hints to the oldest and newest snapshot."""
        self._checked_schema()
        return repair_hints(self.home)

    def _checked_schema(self, options: Mapping[str, str] | None = None) -> TableSchema:
        """The newest schema, with options on top, of a table without options that are not implemented."""
        schema = latest_schema(self.home)
        check_stored(schema.options)
        check_options(options or {})
        return replace(schema, options={**schema.options, **(options or {})})


def _retention(asked: Retention, least: int | None, most: int | None) -> Retention:
    """The table's retention with counts given for one call."""
    if least is None and most is None:
        return asked
    least, most = _count(least, "retain_last"), _count(most, "retain_max")
    keep_max = asked.keep_max if most is None else most
    keep_min = min(asked.keep_min, keep_max) if least is None else least
    # Later than any time: the count alone decides.
    return replace(asked, keep_min=keep_min, keep_max=keep_max, replaced_since_ms=2**63 - 1)


def _count(value: object, what: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidError(f"{what} {value!r}: expected a whole number of at least 1")
    return value
