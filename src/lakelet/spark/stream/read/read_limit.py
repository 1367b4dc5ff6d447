"""Spark's read limit for ours: Spark knows one limit at a time, a stream holds all that it was given."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    ReadMinRows,
)

from lakelet.table.follow.admission import ReadLimits


def default_read_limit(limits: ReadLimits) -> ReadLimit:
    """One of the limits that are set. Without any Spark says "everything", as it does for a trigger that wants everything."""
    if limits.max_rows is not None:
        return ReadMaxRows(limits.max_rows)
    if limits.max_files is not None:
        return ReadMaxFiles(limits.max_files)
    if limits.max_bytes is not None:
        return ReadMaxBytes(limits.max_bytes)
    return ReadAllAvailable() if limits.min_rows is None else ReadMinRows(limits.min_rows)
