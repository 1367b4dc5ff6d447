"""`ls.bulk_load`: load Parquet, CSV or JSON files into a table, in one commit.

    ls.bulk_load(spark, "./incoming/orders", "./warehouse", "shop.orders", create=True, primary_key=["order_id"])

Rows are written as by `ls.write`. Malformed rows are refused before anything is written (`source_frame`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from lakelet.catalog import Lake
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.snapshot import Snapshot
from lakelet.model.types import Field
from lakelet.options.connection import CONNECTION_OPTIONS
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.jobs.source_frame import FORMATS, SourceFrame, check_read_options
from lakelet.spark.jobs.stored_frame import stored_frame
from lakelet.spark.opened_lake import open_lake
from lakelet.spark.opened_table import open_table
from lakelet.spark.read.raw_scan import spark_location
from lakelet.spark.write.table_write import write_frame
from lakelet.spark.write.write_request import WriteArguments, WriteRequest
from lakelet.storage.home import TableHome
from lakelet.storage.open import open_store
from lakelet.storage.paths import TablePaths

_KINDS = "_row_kind"
_ENDINGS = {"parquet": "parquet", "csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}
_PACKED = ("gz", "bz2", "zst", "zstd", "deflate", "xz", "lz4", "snappy")
_LOOKED_AT = 1000

Source = str | os.PathLike[str]


@UnrecordedCallSites()
def bulk_load(
    spark: SparkSession,
    source: Source | Sequence[Source],
    warehouse: str | os.PathLike[str],
    table: str,
    *,
    format: str | None = None,
    read_options: Mapping[str, str] | None = None,
    create: bool = False,
    primary_key: Sequence[str] = (),
    partitioned_by: Sequence[str] = (),
    table_options: Mapping[str, object] | None = None,
    kinds: str | None = None,
    missing: str | None = None,
    options: Mapping[str, str] | None = None,
    branch: str | None = None,
    **how: Unpack[WriteArguments],
) -> Snapshot | None:
    """Loads files or folders; returns the snapshot, None where there was no row.

    `format` is "parquet", "csv" or "json", by default what the names of the files end in. CSV has a header, JSON an object a
    line; `read_options` are those of Spark's reader (`sep`, `timestampFormat` …). With `create`, a table that is not there is
    made of the columns of the data with `primary_key`, `partitioned_by` and `table_options`. The rest is as in `ls.write`:
    `mode`, `partition`, `on_duplicate`, `commit_user`, `commit_identifier` and `parallelism` too.
    """
    request = WriteRequest(kinds=kinds, missing=missing, **how)
    paths = tuple(os.fspath(one) for one in ([source] if isinstance(source, (str, os.PathLike)) else source))
    if not paths:
        raise InvalidError("source: expected a file or a folder, or several, found none")
    chosen = _format(paths, options) if format is None else format
    if chosen not in FORMATS:
        raise InvalidError(f"format {chosen!r}: expected one of {', '.join(FORMATS)}")
    extra = tuple(name for name in (kinds, _KINDS) if name is not None)
    files = SourceFrame(spark, _reachable(spark, paths, options), chosen, check_read_options(read_options), extra)
    lake = open_lake(warehouse, options)
    if create and not lake.table_exists(table):
        inferred = _frame(files, None, options)
        _create(lake, table, inferred, primary_key, partitioned_by, table_options or {})
    opened = open_table(warehouse, table, options, branch)
    return write_frame(_frame(files, opened.schema().fields, options), opened, request)


def _reachable(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str] | None) -> tuple[str, ...]:
    """The paths as Spark's own file systems name them; those of a bucket stay where Spark has none for it."""
    if not any(_in_bucket(path) for path in paths):
        return tuple(paths)
    home = TableHome(open_store(paths[0], _connection(options)), TablePaths(""))
    native = spark_location(spark, home) is not None
    return tuple(
        f"{'s3a' if native else 's3'}://{path.split('://', 1)[1]}" if _in_bucket(path) else path for path in paths
    )


def _frame(files: SourceFrame, fields: Sequence[Field] | None, options: Mapping[str, str] | None) -> DataFrame:
    """The rows in the types of the table, or in their own."""
    remote = [path for path in files.paths if path.startswith("s3://")]
    if not remote:
        return files.inferred() if fields is None else files.typed(fields)
    if files.format != "parquet" or len(remote) < len(files.paths):
        raise InvalidError(
            f"{remote[0]}: without Hadoop's S3 client (hadoop-aws) on Spark's class path only Parquet is loaded from a bucket"
        )
    frames = [stored_frame(files.spark, path, _connection(options), fields or ()) for path in remote]
    return reduce(lambda one, other: one.unionByName(other), frames)


def _in_bucket(path: str) -> bool:
    return path.startswith(("s3://", "s3a://"))


def _connection(options: Mapping[str, str] | None) -> dict[str, str]:
    names = {option.name for option in CONNECTION_OPTIONS}
    return {key: str(value) for key, value in (options or {}).items() if key in names}


def _create(
    lake: Lake,
    name: str,
    frame: DataFrame,
    primary_key: Sequence[str],
    partitioned_by: Sequence[str],
    options: Mapping[str, object],
) -> None:
    lake.create_database(name.split(".", 1)[0], if_not_exists=True)
    lake.create_table(
        name,
        to_arrow_schema(frame.schema),
        primary_key=primary_key,
        partitioned_by=partitioned_by,
        options=options,
        if_not_exists=True,
    )


def _format(paths: Sequence[str], options: Mapping[str, str] | None) -> str:
    """The format of the files, by their extensions."""
    found: set[str] = set()
    for path in paths:
        ending = _ending(path)
        found |= _endings_below(path, options or {}) if ending is None else {ending}
    if len(found) != 1:
        raise InvalidError(
            f"{', '.join(paths)}: the names of the files tell of {', '.join(sorted(found)) or 'no format'}; give format="
        )
    return found.pop()


def _endings_below(folder: str, options: Mapping[str, str]) -> set[str]:
    store = open_store(folder, _connection(options))
    names = [info.path for info in islice(store.list(""), _LOOKED_AT)]
    if not names:
        raise NotFoundError(f"{store.location} is no folder with files")
    return {ending for name in names if (ending := _ending(name)) is not None}


def _ending(path: str) -> str | None:
    parts = path.rstrip("/").rsplit("/", 1)[-1].lower().split(".")
    if len(parts) > 2 and parts[-1] in _PACKED:
        parts.pop()
    return _ENDINGS.get(parts[-1]) if len(parts) > 1 else None
