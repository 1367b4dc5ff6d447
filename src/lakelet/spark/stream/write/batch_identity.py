"""The identity of a batch: a commit user and the number of the batch, and the checks that a repeated one is the same batch.

    (user, batch) is in the table ─┬─ Spark repeats the last batch of its query after a failure: nothing is written
                                   └─ any other batch: another query or checkpoint counts under this user. Skipping its
                                      rows would lose them, so it is refused unless resuming was asked for.

The id of Spark's query is kept in the snapshot (property `lakelet.streaming-query`): a new checkpoint has a new one. So is a
digest of the offsets that Spark logged for the batch before it ran (`lakelet.streaming-offsets`): a repeated batch has the same
log, one that a restored or copied checkpoint planned anew has another, whatever rows it reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from lakelet.commit.commit_users import last_identifier, last_properties
from lakelet.commit.metadata.snapshots import latest_snapshot, snapshots_backwards
from lakelet.errors import ConflictError, InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.spark.session import is_connect
from lakelet.spark.write.write_request import is_whole
from lakelet.storage.home import TableHome

QUERY_PROPERTY = "lakelet.streaming-query"
OFFSETS_PROPERTY = "lakelet.streaming-offsets"
_QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """The user and the number of a batch. `query_id` is that of Spark's query, None where it cannot be known (outside of a
    query, over Spark Connect). `first` is the first batch of the query's run, None where batches are the caller's own. `marked`
    says that the user was made by a mark in the checkpoint folder or by the query id, so that a new checkpoint has another.
    `offsets` is the digest of what Spark logged for the batch, None where its folder cannot be reached."""

    user: str
    batch_id: int
    query_id: str | None
    first: int | None = None
    marked: bool = True
    resume: bool = False
    offsets: str | None = None

    def __post_init__(self) -> None:
        if not is_whole(self.batch_id) or self.batch_id < 0:
            raise InvalidError(f"batch_id {self.batch_id!r}: expected the number of the batch, from 0 on")

    @property
    def properties(self) -> dict[str, str] | None:
        """What the snapshot keeps."""
        kept = {QUERY_PROPERTY: self.query_id, OFFSETS_PROPERTY: self.offsets}
        return {name: text for name, text in kept.items() if text is not None} or None

    def check_repeated(self, home: TableHome, done: Snapshot) -> None:
        """ConflictError where the batch that the table has under this identity is not this one."""
        if self.resume:
            return
        last = last_batch(home, self.user)
        is_own = done.commit_user == self.user
        told = (done.properties or {}) if is_own else last_properties(home, self.user)
        number = done.commit_identifier if is_own else last
        offsets = told.get(OFFSETS_PROPERTY) if number == self.batch_id else None
        known = LastBatch(last, told.get(QUERY_PROPERTY), offsets)
        self.check_last(home.where(home.paths.branch_root), known)

    def check_last(self, where: str, last: LastBatch) -> None:
        """ConflictError where the user's last batch cannot be this one or one that follows it."""
        if self.resume:
            return
        what = f"batch {self.batch_id} of {self.user!r}"
        if self.query_id is not None and last.query_id not in (None, self.query_id):
            raise ConflictError(
                f"{where}: {what} is committed by another query ({last.query_id}; this one is {self.query_id}): {_ADVICE}"
            )
        # A new checkpoint counts from 0, so that a later batch can only be a repeated one.
        if not self.marked and last.query_id is None and self.batch_id == 0:
            raise ConflictError(
                f"{where} has {what}, and whether it is this one cannot be known, since the checkpoint folder has no mark that "
                f"could be reached: {_ADVICE}"
            )
        if self.first is None:
            return
        if last.batch_id is not None and last.batch_id > self.batch_id:
            raise ConflictError(
                f"{where} has batches of {self.user!r} up to {last.batch_id}, and the checkpoint goes on with "
                f"{self.batch_id}: it is older than the table, or another query counts under the same user: {_ADVICE}"
            )
        if self.batch_id > self.first:
            raise ConflictError(
                f"{where}: {what} was committed by another run meanwhile: two queries with one identity: {_ADVICE}"
            )
        if self.offsets is not None and last.offsets not in (None, self.offsets):
            raise ConflictError(
                f"{where}: {what} is committed with other offsets than the checkpoint has for it: it is older than the table, "
                f"or another query counts under the same user: {_ADVICE}"
            )


@dataclass(frozen=True, slots=True)
class LastBatch:
    """The last batch of a user that a table has: its number and query, and the offsets of the batch that is looked for, None
    where these are not known."""

    batch_id: int | None
    query_id: str | None
    offsets: str | None


_ADVICE = "give each query a commit_user and a checkpoint of its own, or skip batches up to the table's last one with resume=True"


def last_batch(home: TableHome, user: str) -> int | None:
    """The number of the user's last batch, None where the table has none."""
    latest = latest_snapshot(home)
    for snapshot in () if latest is None else snapshots_backwards(home, latest.id):
        if snapshot.commit_user == user:
            return snapshot.commit_identifier
    return last_identifier(home, user)


def query_id_of(df: DataFrame) -> str | None:
    """The id of the streaming query whose batch a frame is, None where there is none or it cannot be known."""
    if is_connect(df.sparkSession):
        return None
    found: str | None = df.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    return found
