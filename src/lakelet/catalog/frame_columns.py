"""The schema of a data frame, for a table created from it. No row is read, nor consumed from a stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakelet.errors import InvalidError


def frame_schema(given: Any) -> pa.Schema | None:
    """The Arrow schema of an Arrow table, batch or reader, of a pandas or polars frame, or of any object that exports one;
    None for anything else.
    """
    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return given.schema
    library = type(given).__module__.partition(".")[0]
    try:
        if library == "pandas" and hasattr(given, "columns"):
            return _known(pa.Schema.from_pandas(given, preserve_index=False))
        if library == "polars" and hasattr(given, "collect_schema"):
            return _known(pa.table(given.collect_schema().to_frame()).schema)
        if hasattr(given, "__arrow_c_schema__"):
            return _known(pa.schema(given))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidError(f"the columns of a {type(given).__name__} are not those of a table ({error})") from error
    return None


def _known(schema: pa.Schema) -> pa.Schema:
    unknown = next((field.name for field in schema if pa.types.is_null(field.type)), None)
    if unknown is not None:
        raise InvalidError(
            f"column {unknown!r} holds nothing but NULL, which tells no type: give the columns with types"
        )
    return schema.remove_metadata()
