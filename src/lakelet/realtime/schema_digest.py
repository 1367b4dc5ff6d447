"""A digest of what a log's rows depend on in a schema: its columns and its primary key.

A schema's id says which one it is, until a branch is fast-forwarded over another: then the id may have other columns. Rows
that were written with the first would decode to wrong values, so that the header of a log tells them apart.
"""

from __future__ import annotations

import json
from hashlib import sha256

from lakelet.model.schema import TableSchema
from lakelet.model.types import field_ids


def schema_digest(schema: TableSchema) -> str:
    """The digest, in hexadecimal digits."""
    columns = [(field.id, field.name, str(field.type), field_ids(field.type)) for field in schema.fields]
    return sha256(json.dumps([columns, schema.primary_keys]).encode()).hexdigest()
