"""The Avro codec: container files to Arrow columns and back. Manifests use `decode` and `encode`, data files `logical`."""

from lakelet.format.avro.decode import FileSchema, decode, decode_batches, read_schema
from lakelet.format.avro.encode import encode
from lakelet.format.avro.logical import avro_schema, read_table, read_tables, write_table

__all__ = [
    "FileSchema",
    "avro_schema",
    "decode",
    "decode_batches",
    "encode",
    "read_schema",
    "read_table",
    "read_tables",
    "write_table",
]
