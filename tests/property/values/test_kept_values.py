"""Random upserts of some columns against a dict: values of the others stay, get their default, or are never touched."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.catalog.lake import Lake
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples

_VALUES = ("a", "b", "c")
_OPTIONS: tuple[dict[str, str], ...] = (
    {"bucket": "1"},
    {"bucket": "2", "deletion-vectors.enabled": "true"},
    {"dynamic-bucket.target-row-num": "3"},
    {"bucket": "2", "write-only": "true"},
    {"bucket": "2", "file.format": "avro", "num-sorted-run.compaction-trigger": "2"},
)


@st.composite
def _writes(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]], list[str]]:
    """What becomes of missing columns, rows that have the same columns, and what each does."""
    missing = draw(st.sampled_from(("keep", "keep", "default")))
    given_columns = draw(st.sets(st.sampled_from(_VALUES)))
    keys = draw(st.lists(st.integers(0, 8), min_size=1, max_size=8))
    rows = [{"k": key, **{name: draw(st.integers(0, 99)) for name in sorted(given_columns)}} for key in keys]
    deletes = draw(st.booleans()) and len(set(keys)) == len(keys)
    kinds = [draw(st.sampled_from(("+I", "-D"))) if deletes else "+U" for _ in rows]
    return missing, rows, kinds


@settings(max_examples=examples(25), deadline=None)
@given(
    st.sampled_from(_OPTIONS),
    st.sampled_from(((), ("p",))),
    st.lists(st.one_of(_writes(), st.just("compact")), min_size=1, max_size=8),
)
def test_kept_values_agree_with_a_dict(
    options: dict[str, str], partitions: tuple[str, ...], steps: list[tuple[str, list[dict[str, Any]], list[str]] | str]
) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    columns = [("k", "BIGINT"), ("p", "INT"), *((name, "INT") for name in _VALUES)]
    table = lake.create_table("d.t", columns, primary_key=["k", "p"], partitioned_by=partitions, options=options)
    model: dict[int, dict[str, Any]] = {}
    for step in steps:
        if isinstance(step, str):
            table.compact(full=True)
            continue
        missing, rows, kinds = step
        whole = [{**row, "p": row["k"] % 2} for row in rows]
        table.write(whole, kinds=kinds, missing=missing)
        for row, kind in zip(whole, kinds, strict=True):
            before = model.pop(row["k"], {}) if missing == "keep" or kind == "-D" else {}
            if kind != "-D":
                model[row["k"]] = {**dict.fromkeys(_VALUES), **before, **row}
    found = {row["k"]: row for row in table.scan().to_arrow().to_pylist()}
    assert found == model
