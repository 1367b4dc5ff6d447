"""Random keys, sequences, kinds and options for the property tests of primary-key tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from lakelet import Lake, Table
from tests.property.strategies import OPTIONS, PARTITION_TYPES, VALUES, types, values
from tests.property.table_model import Column, Leaf, Row, Struct, type_text

KINDS = ["+I", "+I", "I", "+U", "U", "-U", "-D", "D"]
_SEQUENCE_TYPES = ["INT", "INT", "BIGINT", "STRING", "DOUBLE", "TIMESTAMP(3)", "DECIMAL(6, 2)", "DATE", "BOOLEAN"]
_STORED: dict[str, list[str]] = {
    **OPTIONS,
    "file.format": [*OPTIONS["file.format"], "sst", "sst"],
    "sst.block-size": ["1 b", "100 b"],
    "sst.restart-interval": ["1", "3"],
    "sst.delta-encoding": ["false"],
    "write-buffer-size": ["1 b", "300 b", "256 mb"],
    "data-file.thin-mode": ["true", "false"],
    "parquet.bloom.filter.enabled": ["true"],
    "lookup.cache-max-memory-size": ["1 b", "256 mb"],
}
# These change the files of most tables here; they are drawn more often.
_OFTEN = ("write-buffer-size", "data-file.thin-mode", "file.format", "target-file-size", "source.split.target-size")
_DYNAMIC: dict[str, list[str]] = {
    "dynamic-bucket.target-row-num": ["1", "2", "5"],
    "dynamic-bucket.initial-buckets": ["1", "2"],
    "dynamic-bucket.max-buckets": ["-1", "1", "3"],
    "dynamic-bucket.assigner-parallelism": ["1", "2", "3"],
}

_COMPACTION: dict[str, list[str]] = {
    "num-levels": ["2", "3", "6"],
    "compaction.size-ratio": ["0", "100", "10000"],
    "compaction.max-size-amplification-percent": ["1", "100000"],
    "compaction.optimization-interval": ["1 ms"],
    "compaction.force-up-level-0": ["true"],
    "compaction.force-rewrite-all-files": ["true"],
    "full-compaction.delta-commits": ["1", "3"],
    "target-file-size": ["1 b", "1 kb"],
    "file.format.per.level": ["0:orc", "0:orc,5:parquet", "0:sst", "0:sst,1:parquet,2:sst,5:orc"],
}


@dataclass
class Layout:
    """What tables that must hold the same rows have in common."""

    columns: list[Column]
    partition_keys: list[str]
    keys: list[str]
    sequence: list[str]
    options: dict[str, str]

    @property
    def crosses(self) -> bool:
        """Whether rows move between partitions."""
        return not set(self.partition_keys) <= set(self.keys)

    @property
    def ignored(self) -> tuple[str, ...]:
        """The kinds that a table drops."""
        if "ignore-delete" in self.options:
            return "-U", "-D", "D"
        return ("-U",) if "ignore-update-before" in self.options else ()


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Columns, keys and the options that decide which row wins."""
    partitions = draw(st.lists(st.sampled_from(PARTITION_TYPES), max_size=2), label="partition types")
    key_types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3), label="key types")
    columns = [Column(f"p{index}", Leaf(text)) for index, text in enumerate(partitions)]
    columns += [Column(f"k{index}", Leaf(text)) for index, text in enumerate(key_types)]
    partition_keys = [f"p{index}" for index in range(len(partitions))]
    held = draw(st.booleans(), label="key holds the partition") or not partitions
    within = partition_keys if held else partition_keys[: draw(st.integers(0, len(partitions) - 1))]
    keys = draw(st.permutations([*within, *(f"k{index}" for index in range(len(key_types)))]), label="key")
    columns.append(Column("v", Leaf("INT")))
    others = draw(st.lists(types(), max_size=2), label="column types")
    columns += [Column(f"c{index}", data_type) for index, data_type in enumerate(others)]
    options: dict[str, str] = {}
    sequence: list[str] = []
    if held:
        sequence = [f"s{index}" for index in range(draw(st.sampled_from([0, 0, 1, 1, 2]), label="sequence fields"))]
        columns += [Column(name, Leaf(draw(st.sampled_from(_SEQUENCE_TYPES)))) for name in sequence]
        if sequence:
            order = draw(st.sampled_from(["ascending", "descending"]), label="order")
            options |= {"sequence.field": ",".join(sequence), "sequence.field.sort-order": order}
        if draw(st.sampled_from([False] * 5 + [True]), label="ignore-delete"):
            options["ignore-delete"] = "true"
    if draw(st.sampled_from([False] * 5 + [True]), label="ignore-update-before"):
        options["ignore-update-before"] = "true"
    if draw(st.sampled_from([False] * 4 + [True]), label="rowkind.field"):
        columns.append(Column("op", Leaf("STRING")))
        options["rowkind.field"] = "op"
    columns = draw(st.permutations(columns), label="order of columns")
    return Layout(columns, partition_keys, keys, sequence, options)


def stored_options(most: int = 5) -> st.SearchStrategy[dict[str, str]]:
    """Options that change how a table is stored, never what it holds."""
    names = st.lists(st.sampled_from([*sorted(_STORED), *_OFTEN, *_OFTEN]), max_size=most, unique=True)
    return names.flatmap(lambda found: st.fixed_dictionaries({name: st.sampled_from(_STORED[name]) for name in found}))


@st.composite
def compaction_options(draw: st.DrawFn) -> dict[str, str]:
    """When a table is compacted, and whether outdated rows are marked; never what it holds."""
    names = draw(st.lists(st.sampled_from(sorted(_COMPACTION)), max_size=4, unique=True), label="compaction")
    options = {name: draw(st.sampled_from(_COMPACTION[name])) for name in names}
    options["num-sorted-run.compaction-trigger"] = draw(st.sampled_from(["2", "2", "3", "5"]), label="trigger")
    if draw(st.booleans(), label="deletion vectors"):
        # Files of Avro have no positions that vectors could tell.
        options |= {"deletion-vectors.enabled": "true", "file.format": draw(st.sampled_from(["parquet", "orc", "sst"]))}
    # Snapshots go only where a rule says so.
    return options | {"snapshot.num-retained.min": "1000", "snapshot.num-retained.max": "1000"}


@st.composite
def bucket_options(draw: st.DrawFn, layout: Layout) -> dict[str, str]:
    """Fixed buckets, or dynamic ones."""
    buckets = -1 if layout.crosses else draw(st.sampled_from([-1, -1, 1, 2, 3]), label="buckets")
    if buckets > 0:
        options = {"bucket": str(buckets)}
        trimmed = [name for name in layout.keys if name not in layout.partition_keys]
        if draw(st.sampled_from([False, False, True]), label="bucket-key"):
            options["bucket-key"] = draw(st.sampled_from(trimmed))
        return options
    names = draw(st.lists(st.sampled_from(sorted(_DYNAMIC)), max_size=4, unique=True), label="dynamic")
    return {name: draw(st.sampled_from(_DYNAMIC[name])) for name in {"dynamic-bucket.target-row-num", *names}}


def key_values(column: Column) -> st.SearchStrategy[Any]:
    """Values of a key column."""
    assert isinstance(column.type, Leaf)
    return st.sampled_from(VALUES[column.type.text])


def rows(
    columns: Struct, keys: list[Column], kind_column: Column | None, least: int = 0, most: int = 7
) -> st.SearchStrategy[list[Row]]:
    """Rows whose keys are never NULL and often meet again."""
    identities = {column.identity for column in keys}

    def of(column: Column) -> st.SearchStrategy[Any]:
        if column.identity in identities:
            return key_values(column)
        if kind_column is not None and column.identity == kind_column.identity:
            return st.sampled_from(KINDS)
        return values(column.type)

    row = st.fixed_dictionaries({column.identity: of(column) for column in columns.columns})
    return st.lists(row, min_size=least, max_size=most)


def make_table(lake: Lake, name: str, layout: Layout, options: dict[str, str]) -> Table:
    """A table of a layout."""
    return lake.create_table(
        name,
        [(column.name, type_text(column.type)) for column in layout.columns],
        primary_key=layout.keys,
        partitioned_by=layout.partition_keys,
        options=options,
    )
