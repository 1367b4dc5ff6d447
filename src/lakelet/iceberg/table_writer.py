"""Rows of one task into the files of their partitions.

    batch ─ fitted to the schema ─ grouped by transformed partition ─ the open writer of each ─ commit data of every file

Files have the job's id in their names. What a task wrote is part of nothing until the driver commits it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey

from lakelet.iceberg.commit_data import CommitData
from lakelet.iceberg.write_plan import WritePlan


class TableWriter:
    """Writes the rows of one task; `task` is a name that no other writer of the job has."""

    def __init__(self, plan: WritePlan, task: str) -> None:
        self._plan = plan
        self._task = task
        self._schema = schema_to_pyarrow(plan.schema)
        self._batches: list[pa.RecordBatch] = []
        self._paths: list[str] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows; columns are matched by name and cast to the table's types."""
        self._batches.append(batch.select(self._schema.names).cast(self._schema))

    def close(self) -> list[CommitData]:
        """Finishes all files."""
        table = pa.Table.from_batches(self._batches, self._schema)
        if not table.num_rows:
            return []
        spec, names = self._plan.spec, []
        for number, field in enumerate(spec.fields):
            source = self._plan.schema.find_field(field.source_id)
            names.append(f"__p{number}")
            moved = field.transform.pyarrow_transform(source.field_type)(table.column(source.name))
            table = table.append_column(names[-1], moved)
        made = []
        for row in table.select(names).group_by(names).aggregate([]).to_pylist() if names else [{}]:
            part = table
            for name in names:
                part = part.filter(
                    pa.compute.field(name).is_null() if row[name] is None else pa.compute.field(name) == row[name]
                )
            made.append(self._file(part.select(self._schema.names), tuple(row[name] for name in names)))
        return made

    def abort(self) -> None:
        """Removes all files."""
        for path in self._paths:
            self._plan.io.delete(path)

    def _file(self, rows: pa.Table, values: tuple[Any, ...]) -> CommitData:
        plan = self._plan
        key = PartitionKey(
            [PartitionFieldValue(field, value) for field, value in zip(plan.spec.fields, values, strict=True)],
            plan.spec,
            plan.schema,
        )
        name = f"{plan.job}-{self._task}-{len(self._paths):05d}.parquet"
        path = plan.locations.new_data_location(name, key if plan.spec.fields else None)
        self._paths.append(path)
        output = plan.io.new_output(path)
        with output.create(overwrite=True) as sink, pq.ParquetWriter(sink, rows.schema, compression="zstd") as writer:
            writer.write_table(rows)
            writer.close()
            found = data_file_statistics_from_parquet_metadata(
                writer.writer.metadata,
                compute_statistics_plan(plan.schema, dict(plan.properties)),
                parquet_path_to_id_mapping(plan.schema),
            ).to_serialized_dict()
        return CommitData(
            path,
            rows.num_rows,
            len(output),
            plan.partition_spec_id,
            tuple(key.partition._data),
            split_offsets=tuple(found.pop("split_offsets") or ()),
            **{name: found[name] for name in _STATISTICS},
        )


_STATISTICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
