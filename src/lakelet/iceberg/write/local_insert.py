"""Run an insert in this process: one writer, then the commit.

Where rows do not fit or a file cannot be written, every file of the insert is removed and the table is as it was. Where the
outcome of the commit is unknown, nothing is removed: that is `CommitUnknownError`, as in the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from lakelet.iceberg.transaction import IcebergTransaction, MadeSnapshot
from lakelet.iceberg.write.table_writer import TableWriter
from lakelet.iceberg.write.write_plan import WritePlan

_TASK = "0"


def insert_batches(
    transaction: IcebergTransaction, plan: WritePlan, batches: Iterable[pa.RecordBatch]
) -> MadeSnapshot | None:
    """Writes all rows and commits them as one snapshot; None where there is nothing to commit. `plan` is the result of the
    transaction's `begin_insert`."""
    writer = TableWriter(plan, _TASK)
    try:
        for batch in batches:
            writer.write(batch)
        data = writer.close()
    except BaseException:
        writer.abort()
        raise
    transaction.update_commit_data(data)
    return transaction.finish_insert()
