"""Position deletes: delete files that list positions by file, and deletion vectors.

    positions file      file_path (field 2147483546), pos (2147483545), a row for each deleted row
    vector              a blob of a Puffin file; its place is in the manifest, its bytes are drawn in `format.deletion_vectors`

A position delete file applies to many data files and is read once for all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import orc
from pyiceberg.io import FileIO

from lakelet.errors import CorruptionError, InvalidError
from lakelet.format.avro import read_table
from lakelet.format.index import deletion_vectors
from lakelet.iceberg.scan.file_errors import reading
from lakelet.iceberg.scan.scan_file import EQUALITY, VECTOR, DeleteFile, ScanFile

Positions = NDArray[np.int64]
_PATH, _POSITION = "file_path", "pos"


class DeletedPositions:
    """The deleted positions of files; each delete file is read once."""

    def __init__(self, io: Callable[[], FileIO], table: str) -> None:
        self._io = io
        self._table = table
        self._lock = threading.Lock()
        self._read: dict[str, dict[str, Positions]] = {}

    def of(self, file: ScanFile) -> Positions | None:
        """The deleted positions of a file, ascending, each once; None where there are none."""
        parts = [self._part(delete, file.path) for delete in file.deletes if delete.kind != EQUALITY]
        found = [part for part in parts if len(part)]
        if not found:
            return None
        positions = np.unique(np.concatenate(found))
        if positions[0] < 0 or positions[-1] >= file.row_count:
            raise CorruptionError(
                f"table {self._table}: {file.path} has {file.row_count} rows, and positions {positions[0]} to "
                f"{positions[-1]} of it are deleted"
            )
        return positions

    def _part(self, delete: DeleteFile, path: str) -> Positions:
        if delete.kind == VECTOR:
            return self._vector(delete)
        with self._lock:
            if delete.path not in self._read:
                with reading(delete.path, f"table {self._table}"):
                    self._read[delete.path] = _by_file(_rows(self._io(), delete))
            return self._read[delete.path].get(path, np.empty(0, np.int64))

    def _vector(self, delete: DeleteFile) -> Positions:
        assert delete.offset is not None
        assert delete.length is not None
        with reading(delete.path, f"table {self._table}"), self._io().new_input(delete.path).open() as stream:
            stream.seek(delete.offset)
            data = stream.read(delete.length)
        return deletion_vectors.decode(data, path=delete.path, cardinality=delete.row_count)


def _rows(io: FileIO, delete: DeleteFile) -> pa.Table:
    """The paths and positions of a delete file."""
    names = [_PATH, _POSITION]
    with io.new_input(delete.path).open() as stream:
        match delete.format:
            case "PARQUET":
                return pq.read_table(stream, columns=names, read_dictionary=[_PATH], partitioning=None)
            case "ORC":
                return orc.ORCFile(stream).read(columns=names)
            case "AVRO":
                return read_table(stream.read(), path=delete.path, columns=names)
    raise InvalidError(f"{delete.path}: delete files of format {delete.format} are not read")


def _by_file(rows: pa.Table) -> dict[str, Positions]:
    """Positions by the file they are of."""
    if not rows.num_rows:
        return {}
    paths = rows.column(_PATH).combine_chunks()
    if isinstance(paths, pa.ChunkedArray):
        paths = pa.concat_arrays(paths.unify_dictionaries().chunks)
    if not pa.types.is_dictionary(paths.type):
        paths = paths.dictionary_encode()
    codes = paths.indices.to_numpy(zero_copy_only=False)
    positions = rows.column(_POSITION).cast(pa.int64()).to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(paths.dictionary) + 1))
    ordered = positions[order]
    return {
        path: ordered[starts[number] : starts[number + 1]] for number, path in enumerate(paths.dictionary.to_pylist())
    }


def kept_rows(positions: Positions | None, start: int, count: int) -> pa.Array | None:
    """Which of `count` rows from a position on are not deleted; None where none is."""
    if positions is None:
        return None
    first, last = np.searchsorted(positions, (start, start + count))
    if first == last:
        return None
    kept = np.ones(count, np.bool_)
    kept[positions[first:last] - start] = False
    return pa.array(kept)
