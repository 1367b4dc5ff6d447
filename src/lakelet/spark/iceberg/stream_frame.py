"""The appended rows of an Iceberg table as a streaming DataFrame.

ls.read_iceberg_stream(spark, "iceberg", "shop.orders", warehouse="./warehouse")
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from lakelet.errors import InvalidError
from lakelet.options import CATALOG_PREFIX
from lakelet.spark.iceberg.catalogs import CatalogLike
from lakelet.spark.iceberg.source_options import IcebergSourceOptions
from lakelet.spark.source.registration import register


def read_iceberg_stream(
    spark: SparkSession,
    catalog: CatalogLike,
    table: str,
    *,
    scan_mode: str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    branch: str | None = None,
    skip_overwrites: bool = False,
    skip_deletes: bool = False,
    merge_schema: bool = False,
    warehouse: str | os.PathLike[str] | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """A streaming frame of a table's rows and then of the rows of every append.

    A snapshot that overwrites or deletes rows stops it, unless it is skipped. `catalog`, `warehouse` and `options` are those of
    `insert_iceberg`; read limits are options, too.
    """
    named: dict[str, str | None] = {
        "scan.mode": scan_mode,
        "columns": None if columns is None else ", ".join(columns),
        "where": where,
        "branch": branch,
        "merge-schema": str(merge_schema).lower(),
        "streaming-skip-overwrite-snapshots": str(skip_overwrites).lower(),
        "streaming-skip-delete-snapshots": str(skip_deletes).lower(),
        "warehouse": None if warehouse is None else _absolute(os.fspath(warehouse)),
        "table": table,
    }
    if isinstance(catalog, str):
        named["catalog"] = catalog
    else:
        named |= {f"{CATALOG_PREFIX}{key}": str(text) for key, text in catalog.items() if key != "name"}
        named["catalog"] = catalog.get("name")
    own = {key: text for key, text in named.items() if text is not None}
    given = {str(key): str(value) for key, value in (options or {}).items()}
    twice = sorted(key for key in given if key.lower() in own)
    if twice:
        raise InvalidError(f"option {twice[0]!r} is given as an argument of read_iceberg_stream, too")
    everything = {**given, **own}
    IcebergSourceOptions.of(everything).stream_settings()
    register(spark)
    return spark.readStream.format("lakelet-iceberg").options(**everything).load()


def _absolute(warehouse: str) -> str:
    """A path of this machine in full: the planning process may run in another folder."""
    return warehouse if "://" in warehouse else os.path.abspath(warehouse)
