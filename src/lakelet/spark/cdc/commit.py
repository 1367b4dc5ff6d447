"""Commit the rows of a batch into a table: through the sink of streams where it has an identity, else as `ls.write` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lakelet.model.snapshot import Snapshot
from lakelet.spark.cdc.settings import CdcSettings
from lakelet.spark.opened_table import open_table
from lakelet.spark.session import settings as session_settings
from lakelet.spark.stream.write.batch import write_batch
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteRequest


@dataclass(frozen=True, slots=True)
class CdcIdentity:
    """The commit user and the number of a batch. `is_new` says that no earlier attempt of it can have been made."""

    user: str
    batch_id: int
    is_new: bool = False


def upsert_rows(
    rows: DataFrame, name: str, settings: CdcSettings, identity: CdcIdentity | None, *, kinds: str | None
) -> Snapshot | None:
    """Upserts rows, one of each key; `kinds` names the column of their row kinds."""
    with _exact_names(rows):
        return _upsert(rows, name, settings, identity, kinds=kinds)


@contextmanager
def _exact_names(rows: DataFrame) -> Iterator[None]:
    """Where names differ by case alone, Spark tells them apart for the time of a block."""
    if len({name.casefold() for name in rows.columns}) == len(rows.columns):
        yield
        return
    with session_settings(rows.sparkSession, {"spark.sql.caseSensitive": "true"}):
        yield


def _upsert(
    rows: DataFrame, name: str, settings: CdcSettings, identity: CdcIdentity | None, *, kinds: str | None
) -> Snapshot | None:
    if identity is None:
        request = WriteRequest(mode="upsert", kinds=kinds, missing="default")
        return write_frame(rows, open_table(settings.warehouse, name, settings.options), request)
    made = write_batch(
        rows,
        identity.batch_id,
        settings.warehouse,
        name,
        commit_user=identity.user,
        kinds=kinds,
        missing="default",
        options=settings.options,
    )
    return None if isinstance(made, dict) else made


def upsert_named(rows: DataFrame, name: str, settings: CdcSettings, identity: CdcIdentity) -> Snapshot | None:
    """Upserts rows under a commit user and a number, unless the table has that commit: whoever made it."""
    request = WriteRequest(
        mode="upsert", missing="default", commit_user=identity.user, commit_identifier=identity.batch_id
    )
    return write_frame(rows, open_table(settings.warehouse, name, settings.options), request)


def replace_rows(rows: DataFrame, name: str, settings: CdcSettings, identity: CdcIdentity | None) -> Snapshot | None:
    """Replaces all rows of a table by these."""
    user, number = (None, None) if identity is None else (identity.user, identity.batch_id)
    request = WriteRequest(mode="overwrite", missing="default", commit_user=user, commit_identifier=number)
    with _exact_names(rows):
        return write_frame(rows, open_table(settings.warehouse, name, settings.options), request)
