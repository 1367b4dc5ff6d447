"""DuckDB's plan as text for strangers: operators and what they do, by an allow-list, and no file names.

TOP_N  Top: 3, Order By: count_star() ASC
  HASH_GROUP_BY  Groups: #0, Aggregates: count_star()
    READ_PARQUET  Projections: id, s, Filters: (id > 3)
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult

_SHOWN = (
    *("Projections", "Filters", "Dynamic Filters", "Expression", "Join Type", "Conditions", "Groups", "Aggregates"),
    *("Order By", "Top", "Estimated Cardinality", "Total Files Read"),
)
# What ANALYZE measures of an operator.
_MEASURED = {"intermediate_rows": "rows", "rows_scanned": "scanned", "timing": "seconds"}
# Operators of EXPLAIN itself.
_OWN = frozenset(("RESULT_COLLECTOR", "EXPLAIN_ANALYZE"))
_COLUMNS = {"explain_key": pa.string(), "explain_value": pa.string()}


def plan_rows(plan: str) -> SqlResult:
    """The result of EXPLAIN from a plan of DuckDB as JSON."""
    found = json.loads(plan)
    is_analyzed = isinstance(found, dict)
    operators = found.get("operator", []) if is_analyzed else found
    text = "\n".join(line for operator in operators for line in _lines(operator, 0))
    return SqlResult.of_rows(_COLUMNS, [("analyzed_plan" if is_analyzed else "physical_plan", text)])


def _lines(node: dict[str, Any], depth: int) -> list[str]:
    kind = str(node.get("name") or node.get("type") or "")
    children = node.get("children", ())
    if kind in _OWN:
        return [line for child in children for line in _lines(child, depth)]
    info = node.get("extra_info", {})
    told = [f"{key}: {_text(info[key])}" for key in _SHOWN if info.get(key)]
    told += [f"{name}: {node[key]}" for key, name in _MEASURED.items() if key in node]
    line = f"{'  ' * depth}{kind}{'  ' if told else ''}{', '.join(told)}"
    return [line, *(line for child in children for line in _lines(child, depth + 1))]


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
