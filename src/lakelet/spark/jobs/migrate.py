"""`ls.migrate`: adopt a folder of Parquet files into a table without rewriting them.

`lakelet.catalog.migration` plans and commits; here executors read the footers and rename the files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import SparkSession

from lakelet.catalog import connect
from lakelet.catalog.migration import Migration, PartitionColumn
from lakelet.catalog.migration import migrate as adopt_folder
from lakelet.spark.call_sites import UnrecordedCallSites
from lakelet.spark.jobs.spread import spread


@UnrecordedCallSites()
def migrate(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    source_folder: str | os.PathLike[str],
    *,
    partitioned_by: Sequence[PartitionColumn] = (),
    table_options: Mapping[str, object] | None = None,
    options: Mapping[str, str] | None = None,
) -> Migration:
    """Adopts the Parquet files of a folder into a table, in one commit; the files leave the folder.

    The table may be there (an append table without buckets, with just these columns); otherwise it is made with the columns
    of the files and with `table_options`. Partition columns are those that the folders name; `partitioned_by` gives their types
    where they are not text, such as [("dt", "DATE")]. Files that are not stored as the table's columns have to be are listed, and
    then nothing is changed. The folder must be in the same store or on the same disk as the warehouse. After a failure, run it
    again: it goes on where it stopped.
    """
    connection = dict(options or {})
    return adopt_folder(
        connect(os.fspath(warehouse), connection),
        table,
        os.fspath(source_folder),
        partitioned_by=partitioned_by,
        table_options=table_options,
        connection=connection,
        run=partial(spread, spark),
    )
