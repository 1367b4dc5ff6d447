"""`ls.sync_cdc`: keep tables as the tables of a source database are, from its change events."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from lakelet.errors import InvalidError
from lakelet.spark.cdc.arguments import CdcArguments, settings_of
from lakelet.spark.cdc.batch import CdcCounts, apply_batch
from lakelet.spark.cdc.commit import CdcIdentity
from lakelet.spark.cdc.stream import start_query


def sync_cdc(
    df: DataFrame,
    warehouse: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    commit_user: str | None = None,
    batch_id: int | None = None,
    **arguments: Unpack[CdcArguments],
) -> StreamingQuery | CdcCounts:
    """Applies change events to tables: a batch frame at once, a stream as a query whose batches are applied exactly once.

    `df` has the events in a column `value`, as Kafka's source and text files do; Kafka's other columns are used where they are
    there. `format` is "debezium", "canal" or "maxwell". All events go into `table`, or those of each source table into one of its
    name in `database`: chosen by the regular expressions `including` and `excluding`, which wins, and named by `table_mapping`
    or else between `table_prefix` and `table_suffix`. Tables that are not there are made, unless `create` is off, with the key
    that events tell or `primary_key` (names, or a mapping of table to names), `partitioned_by` and `table_options`.

    `type_mapping` changes the types of new columns; `computed` are functions of other columns, `metadata` tell where changes
    came from. With `evolve` new columns are added and types widened; `on_conflict` says whether other changes "fail" or make
    the column "string". `order` is that of "kafka" or of the "source"'s log; by default Kafka's where there is one. `truncate`
    is "quarantine" or "apply". `decimals` is Debezium's decimal.handling.mode for events without a schema.

    Events that cannot be applied go to the table `quarantine` (by default `cdc_quarantine` beside the targets) with the reason;
    `replay_cdc` applies them later. A batch frame is applied once under a `commit_user` and a rising `batch_id`; a stream needs
    a `checkpoint`.
    """
    settings = settings_of(warehouse, **arguments)
    if df.isStreaming:
        return start_query(df, settings, checkpoint, trigger, query_name, commit_user)
    if (commit_user is None) != (batch_id is None):
        raise InvalidError("commit_user and batch_id: expected both, which make a batch known, or neither")
    identity = None if commit_user is None or batch_id is None else CdcIdentity(commit_user, batch_id)
    return apply_batch(df, settings, identity)
