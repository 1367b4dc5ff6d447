"""A streaming query of change events: each batch applied exactly once, also to several tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.errors import InvalidError, UnavailableError
from lakelet.ids import RandomIds
from lakelet.spark.cdc.batch import apply_batch
from lakelet.spark.cdc.commit import CdcIdentity
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.failures import from_worker
from lakelet.spark.opened_table import OpenedTable
from lakelet.spark.session import is_connect
from lakelet.spark.stream.write.batch_identity import query_id_of
from lakelet.spark.stream.write.checkpoint_mark import (
    CheckpointMark,
    checkpoint_store,
    identity_of,
    marked,
    scheme_of_running,
)
from lakelet.spark.stream.write.query_start import batch_user, checkpoint_folder, default_scheme, started
from lakelet.storage.store import ObjectStore

_LOG = logging.getLogger(__name__)
_LONGEST = 500


def start_query(
    df: DataFrame,
    settings: CdcSettings,
    checkpoint: str | os.PathLike[str] | None,
    trigger: Mapping[str, Any] | None,
    query_name: str | None,
    commit_user: str | None,
) -> StreamingQuery:
    """Starts the query; by default it takes what is there and ends."""
    return _started(df, settings, checkpoint, trigger, query_name, commit_user)[1]


def _started(
    df: DataFrame,
    settings: CdcSettings,
    checkpoint: str | os.PathLike[str] | None,
    trigger: Mapping[str, Any] | None,
    query_name: str | None,
    commit_user: str | None,
) -> tuple[_Applied, StreamingQuery]:
    if checkpoint is None or not os.fspath(checkpoint):
        raise InvalidError(
            "checkpoint: a stream of change events needs a folder, in which Spark keeps how far it has come"
        )
    spark = df.sparkSession
    if commit_user is None and is_connect(spark):
        raise InvalidError(
            "commit_user: over Spark Connect the id of the query is not known to its batches; name a user"
        )
    folder = checkpoint_folder(spark, checkpoint)
    applied = _Applied(settings, commit_user, _Tables(folder, default_scheme(spark), dict(settings.options)))
    if not is_connect(spark):
        applied.tables.mark()
    return applied, started(df, applied, folder, trigger, query_name)


def run_stream(df: DataFrame, settings: CdcSettings, checkpoint: str, trigger: Mapping[str, Any]) -> dict[str, int]:
    """Runs a query to its end and counts what it did; an error of one line where it fails."""
    applied, query = _started(df, settings, checkpoint, trigger, None, None)
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        text = str(error)
        _LOG.debug("the query failed", exc_info=True)
        if "Traceback (most recent call last)" in text:
            raise from_worker(text.split("=== Streaming Query ===", 1)[0], "applying change events") from None
        cause = [line.strip() for line in text.splitlines() if "Caused by" in line or "Exception:" in line]
        raise UnavailableError(f"reading change events: {(cause or text.splitlines())[-1][:_LONGEST]}") from None
    finally:
        query.stop()
    return dict(applied.totals)


@dataclass(slots=True)
class _Tables:
    """The tables that a checkpoint's batches went to, kept in its folder as those of other sinks are: a target that was
    dropped meanwhile lacks the rows of earlier batches, and making it again would hide that. `default_scheme` is that of folders
    without one, "" where only the server of Spark Connect knows it."""

    folder: str
    default_scheme: str
    options: dict[str, str]
    store: ObjectStore | None = None
    known: CheckpointMark | None = None

    def mark(self) -> CheckpointMark | None:
        """The mark of the folder, made if absent; None where the folder cannot be reached."""
        if self.known is None:
            scheme = self.default_scheme or scheme_of_running(self.folder)
            self.store = checkpoint_store(self.folder, scheme, self.options)
            if self.store is not None:
                self.known = marked(self.store, {}, RandomIds(), resume=False, folder=self.folder)
        return self.known

    def check(self, name: str, opened: OpenedTable | None) -> None:
        """InvalidError where a target is not the table that earlier batches went to; a new one is added to the mark."""
        mark = self.mark()
        if mark is None or self.store is None:
            return
        if opened is None:
            if name in mark.tables:
                raise InvalidError(
                    f"{name} was dropped, and only later changes would be in a new one: load it again from the source with a "
                    "new checkpoint, or exclude it"
                )
        elif name in mark.tables:
            mark.check(name, identity_of(opened), self.folder)
        else:
            tables = {name: identity_of(opened)}
            self.known = marked(self.store, tables, RandomIds(), resume=True, folder=self.folder)


@dataclass(frozen=True, slots=True)
class _Applied:
    """What a query does with a batch. Its identity is the id of the query, or the user's name with the id of the checkpoint: a
    new checkpoint changes either."""

    settings: CdcSettings
    commit_user: str | None
    tables: _Tables = field(compare=False)
    totals: dict[str, int] = field(default_factory=lambda: {"rows": 0, "skipped": 0, "quarantined": 0, "batches": 0})

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        # Spark repeats a batch in a new run only, as its first one.
        identity = CdcIdentity(self._user(batch), batch_id, is_new=self.totals["batches"] > 0)
        counts = apply_batch(batch, self.settings, identity, self.tables.check)
        done = {"rows": counts.rows, "skipped": counts.skipped, "quarantined": counts.quarantined, "batches": 1}
        for name, count in done.items():
            self.totals[name] += count
        if counts.quarantined:
            _LOG.warning("%d rows of change events went to %s", counts.quarantined, self.settings.quarantine)

    def _user(self, batch: DataFrame) -> str:
        mark = None if self.commit_user is None else self.tables.mark()
        return batch_user(self.commit_user, mark, query_id_of(batch))
