"""The write plan: all that a writer needs, prepared once and sent to every task as one small frozen value.

It is the table sink of the design: the schema and all partition specs as JSON, the id of the spec that rows are written by, sort
order, format, compression, size of files, location. Nothing in it is looked up again while rows are written, so that all files
of one job are made alike; the commit refuses them if the table's spec is another one by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import TableProperties
from pyiceberg.table.locations import LocationProvider
from pyiceberg.table.sorting import SortOrder

from lakelet.errors import InvalidError
from lakelet.iceberg.schema.file_schema import leaf_columns
from lakelet.iceberg.table import IcebergTable
from lakelet.iceberg.trust.table_classes import check_location_class, locations
from lakelet.iceberg.write.file_statistics import statistics_plan
from lakelet.iceberg.write.parquet_settings import codec_of, parquet_settings, positive
from lakelet.iceberg.write.partition_groups import partition_columns
from lakelet.iceberg.write.row_order import row_order


@dataclass(frozen=True)
class WritePlan:
    """How the files of one job are written."""

    table: str
    job: str
    schema_json: str
    partition_specs_json: Mapping[int, str]
    partition_spec_id: int
    sort_order_json: str
    file_format: str
    compression: str
    location: str
    target_file_size: int
    properties: Mapping[str, str]
    # May hold secrets.
    io_properties: Mapping[str, str] = field(repr=False)

    @cached_property
    def schema(self) -> Schema:
        """The schema that rows are written in."""
        return Schema.model_validate_json(self.schema_json)

    @cached_property
    def spec(self) -> PartitionSpec:
        """The partition spec that rows are written by."""
        return PartitionSpec.model_validate_json(self.partition_specs_json[self.partition_spec_id])

    @cached_property
    def sort_order(self) -> SortOrder:
        """The order of rows in a file; unsorted has no fields."""
        return SortOrder.model_validate_json(self.sort_order_json)

    @cached_property
    def io(self) -> FileIO:
        """The files."""
        return load_file_io(dict(self.io_properties), self.location)

    @cached_property
    def locations(self) -> LocationProvider:
        """The location provider of data files."""
        return locations(f"table {self.table}", self.location, self.properties, self.io_properties)

    def __getstate__(self) -> dict[str, object]:
        # Cached values are not pickled: they are computed again where they are needed.
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def write_plan(table: IcebergTable, job: str, options: Mapping[str, str] | None = None) -> WritePlan:
    """The plan for writing rows into a table as it is now. `options` are table properties for this write alone. InvalidError for
    what no writer could do, before any begins: another format, an unknown transform, an invalid property."""
    metadata = table.metadata
    properties = {**metadata.properties, **(options or {})}
    kind = properties.get(TableProperties.WRITE_FILE_FORMAT, TableProperties.WRITE_FILE_FORMAT_DEFAULT)
    if kind.lower() != "parquet":
        raise InvalidError(
            f"table {table.full_name}: '{TableProperties.WRITE_FILE_FORMAT}' = {kind!r}, and only Parquet is written"
        )
    check_location_class(f"table {table.full_name}", properties, table.library.io.properties)
    if metadata.format_version > 2:
        raise InvalidError(
            f"table {table.full_name} has format version {metadata.format_version}: it can be read, but only versions 1 and 2 "
            "are written"
        )
    schema, order = metadata.schema(), table.library.sort_order()
    leaves = leaf_columns(schema)
    with _named(table.full_name):
        parquet_settings(properties, leaves)
        statistics_plan(leaves, properties)
        partition_columns(metadata.spec(), schema)
        row_order(order, schema)
        target_file_size = positive(
            properties,
            TableProperties.WRITE_TARGET_FILE_SIZE_BYTES,
            TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT,
        )
    return WritePlan(
        table=table.full_name,
        job=job,
        schema_json=schema.model_dump_json(),
        partition_specs_json={number: spec.model_dump_json() for number, spec in metadata.specs().items()},
        partition_spec_id=metadata.default_spec_id,
        sort_order_json=order.model_dump_json(),
        file_format="parquet",
        compression=codec_of(properties),
        location=metadata.location,
        target_file_size=target_file_size,
        properties=properties,
        io_properties=dict(table.library.io.properties),
    )


@contextmanager
def _named(table: str) -> Iterator[None]:
    try:
        yield
    except InvalidError as error:
        raise InvalidError(f"table {table}: {error}") from error
