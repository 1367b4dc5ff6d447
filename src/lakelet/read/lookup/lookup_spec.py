"""What lookups need of a table's schema: the key, the columns of results, and how rows of a key become one.

Deriving it takes longer than a lookup in memory, so that it is made once for a schema and a list of columns. A schema is known by
its identity: a cached schema is the same object until it changes, and an entry holds the schema that it was made for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelet.cache.lru_cache import LruCache
from lakelet.lsm.engine.merge_engine import SelectEngine
from lakelet.lsm.merge_spec import MergeSpec
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.schema import TableSchema
from lakelet.model.types import DataType, Field
from lakelet.options import LOOKUP_CACHE_MAX_MEMORY_SIZE, ROWKIND_FIELD, TableOptions
from lakelet.read.lookup.key_codes import is_bitwise

_KEPT_BYTES = 8 << 20
_SPEC_BYTES = 4096
_FIELD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class LookupSpec:
    """The derived values. `folded` are the columns that results depend on where the engine folds, `arrow` is the schema of
    results. With `counts_deletes` files say rightly how many retracts they hold. `key_places` are the places of those key columns
    whose stored values are bit by bit those of an equal key."""

    schema: TableSchema
    merge: MergeSpec
    key: tuple[Field, ...]
    key_types: tuple[DataType, ...]
    fields: tuple[Field, ...]
    folded: tuple[Field, ...]
    versions: tuple[Field, ...]
    counts_deletes: bool
    cache_bytes: int
    arrow: pa.Schema
    key_places: Mapping[str, int]

    @property
    def newest_wins(self) -> bool:
        """Whether the sequence numbers alone say which row of a key is the result."""
        return isinstance(self.merge.engine, SelectEngine) and not self.versions

    @property
    def keeps_first(self) -> bool:
        """Whether it is the row with the least sequence number."""
        return isinstance(self.merge.engine, SelectEngine) and self.merge.engine.keeps_first


def lookup_spec(schema: TableSchema, columns: Sequence[str]) -> LookupSpec:
    """What a lookup of these columns needs of a schema with a primary key."""
    name = (id(schema), tuple(columns))
    found = _SPECS.get(name)
    if found is not None and found.schema is schema:
        return found
    options = TableOptions(schema.options)
    merge = MergeSpec.of(schema)
    key = schema.trimmed_key_fields
    fields = tuple(schema.field(column) for column in columns)
    made = LookupSpec(
        schema,
        merge,
        key,
        tuple(field.type for field in key),
        fields,
        tuple(schema.field(column) for column in merge.engine.columns_for(columns)),
        tuple(schema.field(column) for column, _ in merge.versions),
        options.get(ROWKIND_FIELD) is None,
        options.get(LOOKUP_CACHE_MAX_MEMORY_SIZE),
        nullable(fields),
        {field.name: place for place, field in enumerate(key) if is_bitwise(field.type)},
    )
    _SPECS.put(name, made, _SPEC_BYTES + _FIELD_BYTES * len(schema.fields), limit=_KEPT_BYTES)
    return made


def nullable(fields: Sequence[Field]) -> pa.Schema:
    """The columns of results: any value may be NULL."""
    return pa.schema([field.with_nullable(True) for field in arrow_schema(fields)])


_SPECS: LruCache[LookupSpec] = LruCache()
