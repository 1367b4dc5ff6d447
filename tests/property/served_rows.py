"""What a lookup handle serves, against what a scan and `get` of the same snapshot give."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from lakelet import Table
from lakelet.lsm.key_bytes import encode_key_bytes
from lakelet.table.read.table_lookup import TableLookup


def check_served(table: Table, lookup: TableLookup, keys: pa.Table) -> None:
    """All rows by range, and some keys, there or not, by `get` and `get_many`."""
    schema = table.schema
    whole = table.scan().to_arrow()
    served = lookup.scan()
    assert served.column_names == whole.column_names
    assert Counter(map(repr, served.to_pylist())) == Counter(map(repr, whole.to_pylist()))
    fields = [schema.field(name) for name in schema.primary_keys]
    columns = [served.column(field.name).combine_chunks() for field in fields]
    order = encode_key_bytes(columns, [field.type for field in fields]).to_pylist() if served.num_rows else []
    assert order == sorted(order)
    wanted = keys.to_pylist()
    expected = [table.get(key) for key in wanted]
    assert list(map(repr, lookup.get_many(keys))) == list(map(repr, expected))
    for _ in range(2):
        # The second time rows are those that the first one kept.
        found = [lookup.get(key) for key in wanted]
        assert list(map(repr, found)) == list(map(repr, expected))
        for row in filter(None, found):
            row.clear()
    last = [whole.column_names[-1]]
    assert repr([lookup.get(key, columns=last) for key in wanted]) == repr([table.get(key, last) for key in wanted])
    if len(wanted) > 1:
        _check_range(lookup, served, order, fields, keys)


def _check_range(lookup: TableLookup, served: pa.Table, order: list[bytes], fields: list[Any], keys: pa.Table) -> None:
    columns = [keys.column(field.name).combine_chunks() for field in fields]
    low, high = encode_key_bytes(columns, [field.type for field in fields]).to_pylist()[:2]
    start, end = keys.slice(0, 1).to_pylist()[0], keys.slice(1, 1).to_pylist()[0]
    rows = served.to_pylist()
    within = [row for key, row in zip(order, rows, strict=True) if low <= key < high]
    assert repr(lookup.scan(start, end).to_pylist()) == repr(within)
    assert repr(lookup.scan(start).to_pylist()) == repr(
        [row for key, row in zip(order, rows, strict=True) if key >= low]
    )
    first = fields[0].name
    from_first = lookup.scan({first: start[first]}).to_pylist()
    assert [row for key, row in zip(order, rows, strict=True) if key >= low] == [] or from_first != []
    assert repr(from_first) == repr(rows[len(rows) - len(from_first) :])
