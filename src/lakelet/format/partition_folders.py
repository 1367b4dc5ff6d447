"""The folders of partitions and buckets."""

from __future__ import annotations

from lakelet.format.rows.binary_row import decode_row
from lakelet.model.partition_path import partition_path
from lakelet.model.schema import TableSchema
from lakelet.options import DATA_FILE_PATH_DIRECTORY, PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME, TableOptions
from lakelet.storage.paths import TablePaths


class PartitionFolders:
    """Folders of buckets, computed once per partition."""

    def __init__(self, paths: TablePaths, schema: TableSchema) -> None:
        options = TableOptions(schema.options)
        self._paths = paths
        self._names = schema.partition_keys
        self._types = schema.partition_types
        self._default_name = options.get(PARTITION_DEFAULT_NAME)
        self._legacy = options.get(PARTITION_LEGACY_NAME)
        self._data_folder = options.get(DATA_FILE_PATH_DIRECTORY)
        self._known: dict[bytes, str] = {}

    def partition_path(self, partition: bytes) -> str:
        """`k=v/k=v` of a partition given as BinaryRow bytes."""
        found = self._known.get(partition)
        if found is None:
            values = decode_row(partition, self._types) if self._types else ()
            found = partition_path(
                self._names, self._types, values, default_name=self._default_name, legacy=self._legacy
            )
            self._known[partition] = found
        return found

    def bucket_folder(self, partition: bytes, bucket: int) -> str:
        """The folder of a bucket of a partition."""
        return self._paths.bucket_folder(self.partition_path(partition), bucket, self._data_folder)
