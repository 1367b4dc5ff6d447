"""Parquet files as one `pyarrow.dataset`, which decodes several files and row groups at once and prunes by a filter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import LocalFileSystem, PyFileSystem

from lakelet.format.data.data_file_errors import open_input
from lakelet.storage.home import TableHome

if TYPE_CHECKING:
    import pyarrow.dataset as ds

BATCH_ROWS = 131_072
# Where all rows are wanted at once, larger batches and more read-ahead hold nothing that is not held anyway.
_TABLE_BATCH_ROWS = 1 << 20
_TABLE_BATCH_READAHEAD = 16
_TABLE_FRAGMENT_READAHEAD = 4
# A stream of batches holds the row groups in flight, decoded; more of them than these take memory and save no time.
_BATCH_READAHEAD = 4
_FRAGMENT_READAHEAD = 1


def parquet_scanner(
    home: TableHome,
    paths: Sequence[str],
    schema: pa.Schema,
    columns: Sequence[str],
    condition: pc.Expression | None,
    *,
    whole: bool,
    constants: Sequence[pc.Expression] | None = None,
) -> ds.Scanner:
    """A scan of files that all have the columns of `schema`, in order. `whole` says that all rows are wanted at once.

    `constants` says for each file which columns have which value, whatever the file itself has.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - it loads pandas where that is installed, which takes a second.

    filesystem, _ = home.store.arrow_path(paths[0])
    # Column chunks are fetched ahead only where a request takes long; buffered chunks stay until their file is done.
    remote = not isinstance(filesystem, LocalFileSystem)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=remote))
    known = constants or [None] * len(paths)
    fragments = [_fragment(home, parquet, path, known_of) for path, known_of in zip(paths, known, strict=True)]
    return ds.FileSystemDataset(fragments, schema, parquet, filesystem).scanner(
        columns=list(columns),
        filter=condition,
        batch_size=_TABLE_BATCH_ROWS if whole else BATCH_ROWS,
        batch_readahead=_TABLE_BATCH_READAHEAD if whole else _BATCH_READAHEAD,
        fragment_readahead=_TABLE_FRAGMENT_READAHEAD if whole else _FRAGMENT_READAHEAD,
        use_threads=True,
    )


def matching_row_groups(
    home: TableHome, path: str, schema: pa.Schema, condition: pc.Expression
) -> list[tuple[int, int]]:
    """The row groups of a file whose statistics do not exclude the condition, as (place, rows)."""
    import pyarrow.dataset as ds  # noqa: PLC0415 - as above.

    with open_input(home.store, path) as source:
        kept = ds.ParquetFileFormat().make_fragment(source).subset(condition, schema=schema)
        return [(group.id, group.num_rows) for group in kept.row_groups]


def _fragment(
    home: TableHome, parquet: ds.ParquetFileFormat, path: str, known: pc.Expression | None
) -> ds.ParquetFileFragment:
    filesystem, name = home.store.arrow_path(path)
    if isinstance(filesystem, PyFileSystem):
        # Arrow's threads would call Python from an unfinished scan while the interpreter shuts down, and hang.
        return parquet.make_fragment(pa.py_buffer(home.store.get(path)), partition_expression=known)
    return parquet.make_fragment(name, filesystem=filesystem, partition_expression=known)
