"""Read changelog files as Arrow batches: every row with its row kind, unmerged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakelet.format.data.data_file_formats import format_of_file
from lakelet.lsm.key_value_columns import KIND_FIELD, VALUE_KIND
from lakelet.model.row_kind import SHORT_KINDS
from lakelet.model.schema import TableSchema
from lakelet.model.split import Split
from lakelet.read.evolve import evolve_batch
from lakelet.storage.home import TableHome

_BATCH_ROWS = 65_536


def read_changelog(
    home: TableHome, schema: TableSchema, schema_of: Callable[[int], TableSchema], splits: Sequence[Split]
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """The kinds ("+I", "-U", "+U", "-D") and the rows of changelog files, in file order, in the table's columns now."""
    for one in (one for split in splits for one in split.single_files()):
        stored = schema_of(one.files[0].schema_id).fields
        wanted = {field.id for field in schema.fields}
        names = [VALUE_KIND, *(field.name for field in stored if field.id in wanted)]
        file_format = format_of_file(one.files[0].name)
        for batch in file_format.read(home.store, one.paths[0], (KIND_FIELD, *stored), names, batch_rows=_BATCH_ROWS):
            kinds = batch.column(VALUE_KIND).to_numpy().astype(np.int32)
            yield pa.array(SHORT_KINDS).take(pa.array(kinds)), evolve_batch(batch, stored, schema.fields)
