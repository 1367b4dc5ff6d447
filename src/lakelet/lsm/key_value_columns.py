"""The columns of a primary-key table's data files.

    _KEY_<column> ...       the trimmed primary key, again; left out in thin files
    _SEQUENCE_NUMBER        BIGINT: of two rows of a key the greater is newer
    _VALUE_KIND             TINYINT: 0 +I, 1 -U, 2 +U, 3 -D
    <column> ...            all columns of the table, key and partition columns included

Rows are sorted by the trimmed primary key, and a file holds a key once. The field id of a `_KEY_` column is that of its
column plus KEY_ID_BASE; the two others have ids of their own.
"""

from __future__ import annotations

from dataclasses import replace

from lakelet.model.schema import KEY_PREFIX, TableSchema
from lakelet.model.types import Atomic, Field, Kind

SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
KEY_ID_BASE = (2**31 - 1) // 2
SEQUENCE_FIELD = Field(2**31 - 2, SEQUENCE_NUMBER, Atomic(Kind.BIGINT, nullable=False))
KIND_FIELD = Field(2**31 - 3, VALUE_KIND, Atomic(Kind.TINYINT, nullable=False))


def key_fields(schema: TableSchema) -> tuple[Field, ...]:
    """The `_KEY_` columns of a file of this schema that is not thin."""
    return tuple(
        replace(field, id=field.id + KEY_ID_BASE, name=f"{KEY_PREFIX}{field.name}", default=None)
        for field in schema.trimmed_key_fields
    )


def file_fields(schema: TableSchema, *, thin: bool) -> tuple[Field, ...]:
    """All columns of a file, in the order in which they are stored."""
    keys = () if thin else key_fields(schema)
    return (*keys, SEQUENCE_FIELD, KIND_FIELD, *schema.fields)
