"""Read Parquet files of an object store as a DataFrame through Lakelet's storage: for sessions without Hadoop's S3 client.

The columns are those of the first file, and those that folders like `dt=2026-01-01` name; their values are read as the type that
the table has for them, else as text. Files whose columns differ from the first one's are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelet.catalog.migration.adoption_check import fields_of
from lakelet.catalog.migration.parquet_footers import read_footer
from lakelet.catalog.migration.source_files import SourceFile, source_files
from lakelet.errors import CorruptionError, NotFoundError
from lakelet.format.data.parquet_file import ParquetFormat
from lakelet.model.arrow.arrow_types import to_arrow
from lakelet.model.partition_path import parse_partition_value
from lakelet.model.types import Field, string
from lakelet.spark.read.merge_scan import small_batches
from lakelet.spark.types import spark_schema, to_spark_arrow
from lakelet.spark.workers import prepare_workers
from lakelet.storage.open import open_store
from lakelet.storage.store import ObjectStore

_BATCH_ROWS = 65_536


def stored_frame(
    spark: SparkSession, path: str, connection: Mapping[str, str], table_fields: Sequence[Field]
) -> DataFrame:
    """The rows of a Parquet file, or of all in a folder; `table_fields` give partition columns their types."""
    folder, _, name = path.rstrip("/").rpartition("/")
    is_file = name.endswith(".parquet")
    store = open_store(folder if is_file else path, connection)
    files = tuple(file for file in source_files(store) if not is_file or file.path == name)
    if not files:
        raise NotFoundError(f"{path} is no Parquet file and no folder with files")
    footer = read_footer(store, files[0].path)
    if footer.problem is not None:
        raise CorruptionError(footer.problem)
    stored = tuple(fields_of(footer, f"{store.location}/{files[0].path}"))
    types = {field.name: field.type for field in table_fields}
    present = {field.name for field in stored}
    keys = tuple(Field(-1, key, types.get(key, string())) for key in files[0].keys if key not in present)
    task = _ReadFiles(store, files, stored, keys)
    prepare_workers(spark)
    numbers = spark.range(0, len(files), 1, len(files)).toDF("file")
    return numbers.mapInArrow(task, spark_schema([*stored, *keys]))


@dataclass(frozen=True, slots=True)
class _ReadFiles:
    store: ObjectStore
    files: tuple[SourceFile, ...]
    stored: tuple[Field, ...]
    keys: tuple[Field, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            yield from self._rows(self.files[number])

    def _rows(self, file: SourceFile) -> Iterator[pa.RecordBatch]:
        texts = dict(file.partition)
        values = [
            pa.scalar(
                None if (text := texts[key.name]) is None else parse_partition_value(text, key.type), to_arrow(key.type)
            )
            for key in self.keys
        ]
        names = [field.name for field in self.stored]
        for batch in ParquetFormat().read(self.store, file.path, self.stored, names, batch_rows=_BATCH_ROWS):
            rows = batch
            for key, value in zip(self.keys, values, strict=True):
                rows = rows.append_column(key.name, pa.repeat(value, rows.num_rows))
            yield from small_batches(to_spark_arrow(rows, [*self.stored, *self.keys]))
