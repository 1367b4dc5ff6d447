"""`ls.copy_table`: copy the rows of one table into another, of any layout, in one commit.

    ls.copy_table(spark, "./warehouse", "shop.orders", "archive.orders", create=True, where="dt < '2026-01-01'")

The source is read at one pinned version. `ls.checksum` of both tables verifies the copy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from pyspark.sql import SparkSession

from lakelet.catalog.table_copy import create_like
from lakelet.errors import InvalidError
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import TIMESTAMPS, Array, Atomic, DataType, Map, Multiset, Row
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.jobs.read_request import ReadArguments, ReadRequest
from lakelet.spark.opened_lake import open_lake
from lakelet.spark.opened_table import open_table
from lakelet.spark.read.table_frame import scan_frame
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteArguments, WriteRequest

_MICRO = 6


class CopyArguments(ReadArguments, WriteArguments, total=False):
    """What is read, as in `ls.table`, and how it is written, as in `ls.write`."""


@UnrecordedCallSites()
def copy_table(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    source: str,
    target: str,
    *,
    target_warehouse: str | os.PathLike[str] | None = None,
    create: bool = False,
    options: Mapping[str, str] | None = None,
    target_options: Mapping[str, str] | None = None,
    cut_timestamps: bool = False,
    **how: Unpack[CopyArguments],
) -> Snapshot | None:
    """Copies the matching rows, all columns or these; returns the snapshot, None where there was nothing to copy.

    With `create`, a target that is not there is made like the source: columns, keys, options and comment. Spark holds no more
    than microseconds, so that timestamps with more digits are refused unless `cut_timestamps` allows to cut them off. `options`
    are those of the source, `target_options` (the same by default) of the target. The rest is as in `ls.table` (`columns`,
    `where`, `version`, `timestamp`, `tag`, `branch`) and in `ls.write` (`mode`, `partition`, `on_duplicate`, `commit_user`,
    `commit_identifier`, `parallelism`).
    """
    read, request = _requests(how)
    scan = read.scan(warehouse, source, options)
    fields = [scan.schema.field(name) for name in scan.columns]
    too_fine = [field.name for field in fields if _is_finer(field.type)]
    if too_fine and not cut_timestamps:
        raise InvalidError(
            f"{source}: {', '.join(too_fine)} hold digits beyond microseconds, which Spark cuts off: cut_timestamps=True"
        )
    into = warehouse if target_warehouse is None else target_warehouse
    theirs = options if target_options is None else target_options
    if create:
        create_like(open_lake(into, theirs), target, scan.schema, fields)
    return write_frame(scan_frame(spark, scan), open_table(into, target, theirs), request)


def _requests(how: CopyArguments) -> tuple[ReadRequest, WriteRequest]:
    """Splits the keyword arguments into those of the read and those of the write."""
    given: dict[str, Any] = dict(how)
    read = {name: given.pop(name) for name in ReadArguments.__annotations__ if name in given}
    return ReadRequest(**read), WriteRequest(**given)


def _is_finer(data_type: DataType) -> bool:
    match data_type:
        case Atomic(kind, precision):
            return kind in TIMESTAMPS and precision > _MICRO
        case Array(element) | Multiset(element):
            return _is_finer(element)
        case Map(key, value):
            return _is_finer(key) or _is_finer(value)
        case Row(fields):
            return any(_is_finer(field.type) for field in fields)
