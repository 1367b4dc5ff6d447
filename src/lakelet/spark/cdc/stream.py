"""A streaming query of change events: each batch applied exactly once, also to several tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.errors import InvalidError
from lakelet.spark.cdc.batch import CdcIdentity, apply_batch
from lakelet.spark.cdc.settings import CdcSettings

_LOG = logging.getLogger(__name__)
_QUERY_ID = "sql.streaming.queryId"


def start_query(
    df: DataFrame,
    settings: CdcSettings,
    checkpoint: str | os.PathLike[str] | None,
    trigger: Mapping[str, Any] | None,
    query_name: str | None,
    commit_user: str | None,
) -> StreamingQuery:
    """Starts the query; by default it takes what is there and ends."""
    if checkpoint is None:
        raise InvalidError(
            "checkpoint: a stream of change events needs a folder, in which Spark keeps how far it has come"
        )
    writer = df.writeStream.foreachBatch(_Applied(settings, commit_user)).option(
        "checkpointLocation", os.fspath(checkpoint)
    )
    writer = writer.trigger(**(dict(trigger) if trigger is not None else {"availableNow": True}))
    return (writer if query_name is None else writer.queryName(query_name)).start()


@dataclass(frozen=True, slots=True)
class _Applied:
    """What a query does with a batch. Its identity is the id of the query, which a new checkpoint changes."""

    settings: CdcSettings
    commit_user: str | None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        user = self.commit_user or batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        counts = apply_batch(batch, self.settings, CdcIdentity(str(user), batch_id))
        if counts.quarantined:
            _LOG.warning("%d rows of change events went to %s", counts.quarantined, self.settings.quarantine)
