"""A small pipeline that runs as it is, for `lakelet pipeline init`."""

from __future__ import annotations

import os
from pathlib import Path

from lakelet.errors import AlreadyExistsError

_PIPELINE = """\
# lakelet pipeline run {file}
name: {name}
database: {database}

parameters:
  raw: ./raw

sources:
  raw_orders:
    format: json
    path: ${{raw}}/orders
    schema: id BIGINT, customer BIGINT, country STRING, amount DOUBLE, day DATE
  customer_changes:
    format: json
    path: ${{raw}}/customers
    schema: id BIGINT, name STRING, op STRING, at TIMESTAMP

# A streaming table takes what is new since the last run, each row once.
tables:
  orders:
    source: raw_orders
    partitioned_by: day
    expectations:
      positive_amount: {{condition: amount > 0, action: quarantine}}
      known_country: {{condition: country IS NOT NULL, action: drop}}
  customers: {{}}

# Changes by key: the newest row of each customer. scd_type: 2 keeps every version.
auto_cdc_flows:
  customers_from_changes:
    target: customers
    source: customer_changes
    keys: id
    sequence_by: at
    apply_as_deletes: op = 'delete'
    except_columns: op

# A materialized view is computed anew when what it reads has changed.
materialized_views:
  revenue:
    primary_key: [day, country]
    sql: |
      SELECT day, country, count(*) AS orders, sum(amount) AS amount
      FROM orders
      GROUP BY day, country
  best_customers:
    sql: |
      SELECT c.name, sum(o.amount) AS amount
      FROM orders o JOIN customers c ON c.id = o.customer
      GROUP BY c.name
"""
_ORDERS = """\
{"id": 1, "customer": 1, "country": "DE", "amount": 12.5, "day": "2026-01-01"}
{"id": 2, "customer": 2, "country": "FR", "amount": 30.0, "day": "2026-01-01"}
{"id": 3, "customer": 1, "country": "DE", "amount": 7.5, "day": "2026-01-02"}
{"id": 4, "customer": 2, "country": "FR", "amount": -1.0, "day": "2026-01-02"}
"""
_CUSTOMERS = """\
{"id": 1, "name": "Ada", "op": "insert", "at": "2026-01-01T08:00:00Z"}
{"id": 2, "name": "Ben", "op": "insert", "at": "2026-01-01T09:00:00Z"}
{"id": 2, "name": "Benoit", "op": "update", "at": "2026-01-02T09:00:00Z"}
{"id": 3, "name": "Cy", "op": "insert", "at": "2026-01-01T10:00:00Z"}
{"id": 3, "name": "Cy", "op": "delete", "at": "2026-01-03T10:00:00Z"}
"""


def write_example(path: str | os.PathLike[str], database: str = "shop") -> list[Path]:
    """Writes a pipeline and its raw files beside it; AlreadyExistsError, and nothing written, where one of them is there."""
    file = Path(path)
    files = {
        file: _PIPELINE.format(name=file.stem, file=file.name, database=database),
        file.parent / "raw" / "orders" / "1.json": _ORDERS,
        file.parent / "raw" / "customers" / "1.json": _CUSTOMERS,
    }
    there = [one for one in files if one.exists()]
    if there:
        raise AlreadyExistsError(f"{there[0]} is there: take another folder, or remove it")
    for one, text in files.items():
        one.parent.mkdir(parents=True, exist_ok=True)
        one.write_text(text, encoding="utf-8")
    return list(files)
