"""A table that is published as an Iceberg table: after random operations pyiceberg reads the rows that our scan shows.

Of a table with a primary key these are the rows of the read-optimized table, and after a full compaction all of them; with
deletion vectors they are those of the table at any time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table import StaticTable

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.table.table import Table
from tests.tiers.examples import examples

COLUMNS = [("id", "BIGINT"), ("part", "STRING"), ("n", "INT"), ("s", "STRING"), ("d", "DECIMAL(9, 2)"), ("f", "DOUBLE")]
# Not every reader knows snappy, the default.
OPTIONS = {"metadata.iceberg.storage": "table-location", "metadata.iceberg.manifest-compression": "deflate"}
VECTORS = {
    "metadata.iceberg.format-version": "3",
    "deletion-vectors.enabled": "true",
    "deletion-vectors.bitmap64": "true",
}

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 40), st.integers(1, 12)),
        st.tuples(st.just("overwrite"), st.integers(0, 40), st.sampled_from(["p0", "p1", "p2"])),
        st.tuples(st.just("compact"), st.booleans(), st.none()),
        st.tuples(st.just("delete"), st.integers(0, 40), st.none()),
        st.tuples(st.just("alter"), st.sampled_from(["add", "rename", "drop", "widen"]), st.none()),
        st.tuples(st.just("rollback"), st.integers(0, 5), st.none()),
        st.tuples(st.just("expire"), st.integers(1, 3), st.none()),
        st.tuples(st.just("tag"), st.none(), st.none()),
    ),
    min_size=2,
    max_size=14,
)


def rows(start: int, count: int) -> list[dict[str, Any]]:
    texts = [None, "", "a" * 40, "é" * 17, "z"]
    return [
        {
            "id": id_,
            "part": f"p{id_ % 3}" if id_ % 7 else None,
            "n": id_ - 20 if id_ % 5 else None,
            "s": texts[id_ % 5],
            "f": float("nan") if id_ % 4 == 0 else -0.0,
        }
        for id_ in range(start, start + count)
    ]


def shown(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


class Published:
    """One table and what is done to it."""

    def __init__(self, folder: Path, *, keyed: bool, vectors: bool) -> None:
        self.folder = folder
        self.lake: Lake = lakelet.connect(str(folder))
        self.lake.create_database("d")
        keys: dict[str, Any] = {"primary_key": ["id", "part"]} if keyed else {}
        options = {**OPTIONS, **({"bucket": "1"} if keyed else {}), "num-sorted-run.compaction-trigger": "3"}
        if vectors:
            options |= VECTORS
        self.table: Table = self.lake.create_table("d.t", COLUMNS, partitioned_by=["part"], options=options, **keys)
        self.keyed = keyed
        self.shown = "t$ro" if keyed and not vectors else "t"
        self.made = 0
        self.extra: list[str] = []

    def run(self, name: str, first: Any, second: Any) -> None:
        getattr(self, f"_{name}")(first, second)

    def check(self) -> None:
        if self.table.latest_snapshot() is None:
            return
        metadata = self.folder / "d.db" / "t" / "metadata"
        number = (metadata / "version-hint.text").read_text()
        assert number == str(self.table.latest_snapshot().id)  # type: ignore[union-attr]
        found = StaticTable.from_metadata(str(metadata / f"v{number}.metadata.json")).scan().to_arrow()
        expected = self.lake.sql(f'SELECT * FROM d."{self.shown}"').to_arrow()
        # The schema of the last commit is published.
        assert shown(found.rename_columns([str(place) for place in range(found.num_columns)])) == shown(
            expected.select(range(found.num_columns)).rename_columns([str(place) for place in range(found.num_columns)])
        )

    def _write(self, start: int, count: int) -> None:
        made = rows(start, count)
        names = set(self.table.schema.names)
        data = [{key: value for key, value in row.items() if key in names} for row in made]
        if self.keyed:
            data = [{**row, "part": row["part"] or "p0"} for row in data]
        self.table.write(pa.Table.from_pylist(data), missing="default")

    def _overwrite(self, start: int, part: str) -> None:
        names = set(self.table.schema.names)
        data = [{k: v for k, v in {**row, "part": part}.items() if k in names} for row in rows(start, 3)]
        self.table.write(pa.Table.from_pylist(data), mode="overwrite", partition={"part": part}, missing="default")

    def _compact(self, full: bool, _: None) -> None:
        self.table.compact(full=full)

    def _delete(self, id_: int, _: None) -> None:
        self.table.delete(where=f"id >= {id_} AND id < {id_ + 4}")

    def _alter(self, kind: str, _: None) -> None:
        self.made += 1
        if kind == "add":
            self.table.add_column(f"x{self.made}", "INT")
            self.extra.append(f"x{self.made}")
        elif kind == "rename" and self.extra:
            self.table.rename_column(self.extra[0], f"y{self.made}")
            self.extra[0] = f"y{self.made}"
        elif kind == "drop" and self.extra:
            self.table.drop_column(self.extra.pop())
        elif kind == "widen":
            self.table.change_type("n", "BIGINT")
        # What an ALTER changes is published by the next commit.
        self._write(self.made, 2)

    def _rollback(self, back: int, _: None) -> None:
        ids = [snapshot.id for snapshot in self.table.snapshots()]
        if ids:
            self.table.rollback(max(ids) - min(back, len(ids) - 1))

    def _expire(self, retain: int, _: None) -> None:
        self.table.expire_snapshots(retain_max=retain)

    def _tag(self, _: None, __: None) -> None:
        if self.table.latest_snapshot() is not None:
            self.made += 1
            self.table.tags.create(f"t{self.made}")


@given(keyed=st.booleans(), vectors=st.booleans(), operations=OPERATIONS)
@settings(max_examples=examples(24), deadline=None)
def test_pyiceberg_reads_what_is_published(keyed: bool, vectors: bool, operations: list[tuple[str, Any, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        published = Published(Path(folder), keyed=keyed, vectors=vectors)
        for name, first, second in operations:
            published.run(name, first, second)
            published.check()
