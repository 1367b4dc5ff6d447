"""Random INSERT, UPDATE, DELETE and MERGE of an Iceberg table give the rows that they give in a plain DuckDB table.

Between statements the table is partitioned anew, and other engines delete rows by delete files, which statements then have to
heed. Every statement makes one snapshot, or none where it changed nothing. `LAKELET_CASES` multiplies the number of runs.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.core import given
from pyiceberg.typedef import Record

import lakelet
from lakelet import Lake
from lakelet.iceberg.scan import scan_of
from lakelet.iceberg.table import IcebergTable
from lakelet.sql.session import Session
from tests.iceberg.delete_commits import commit_deletes, equality_deletes, position_deletes
from tests.property.sql.test_sql_changes import Both, _delete, _insert, _merge, _update, _update_from
from tests.tiers.examples import examples
from tests.unit.iceberg.commit.tables import check_sums, set_partitions

_NAME = "iceberg.d.t"
_ALL = "SELECT * FROM t ORDER BY ALL"
_PARTITIONS: list[dict[str, str]] = [
    {},
    {"p": "identity"},
    {"id": "bucket[3]"},
    {"s": "truncate[1]", "v": "identity"},
    {"v": "truncate[2]", "p": "void"},
]


@dataclass
class _Iceberg(Both):
    """An Iceberg table and one of DuckDB's."""

    keys: list[str] = field(default_factory=list)
    catalog_lake: Lake = field(kw_only=True)
    others: bool = False

    @property
    def table(self) -> IcebergTable:
        return self.catalog_lake.catalogs.open("iceberg").table("d.t")

    def run(self, ours: str, theirs: str | None = None) -> None:
        before = len(self.table.metadata.snapshots)
        rows = self.lake.run(_named(ours)).rows()[0][1]
        found = self.duck.execute(theirs or ours).fetchall()
        assert rows == found[0][0], ours
        assert len(self.table.metadata.snapshots) - before == (1 if rows else 0), ours
        self.check(ours)

    def check(self, what: str) -> None:
        """Both hold the same, and so does what pyiceberg reads, where it reads the table."""
        expected = self.duck.execute(_ALL).fetchall()
        assert self.lake.run(_named(_ALL)).rows() == expected, what
        table = self.table
        if not any(file.has_equality_deletes for file in scan_of(table).files):
            there = table.library.scan().to_arrow().to_pylist()
            assert sorted((tuple(row.values()) for row in there), key=repr) == sorted(expected, key=repr), what
        # Snapshots of the other engine count nothing.
        if table.metadata.snapshots and not self.others:
            check_sums(table)


def _named(text: str) -> str:
    return re.sub(r"\b(UPDATE|INTO|FROM|USING) t\b", rf"\1 {_NAME}", text)


def _partition_anew(both: Both, data: st.DataObject) -> None:
    assert isinstance(both, _Iceberg)
    set_partitions(both.table, data.draw(st.sampled_from(_PARTITIONS)))


def _delete_positions(both: Both, data: st.DataObject) -> None:
    """Another engine deletes a row of some file."""
    assert isinstance(both, _Iceberg)
    table = both.table
    files = [file for file in scan_of(table).files if not file.deletes]
    if not files:
        return
    file = data.draw(st.sampled_from(files))
    place = data.draw(st.integers(0, file.row_count - 1))
    row = [one for batch in scan_of(table).read(file) for one in batch.to_pylist()][place]
    deletes = position_deletes(
        table.library, {file.path: [place]}, partition=Record(*file.partition), spec_id=file.spec_id, bounds=True
    )
    commit_deletes(table.library, deletes)
    both.duck.execute(
        "DELETE FROM t WHERE rowid = (SELECT min(rowid) FROM t WHERE id = $id AND p IS NOT DISTINCT FROM $p "
        "AND v IS NOT DISTINCT FROM $v AND s IS NOT DISTINCT FROM $s)",
        row,
    )
    both.others = True
    both.check("delete positions")


def _delete_values(both: Both, data: st.DataObject) -> None:
    """Another engine deletes the rows that have some value."""
    assert isinstance(both, _Iceberg)
    library = both.table.library
    plain = [number for number, spec in library.specs().items() if not spec.fields]
    if library.current_snapshot() is None or not plain:
        return
    value = data.draw(st.none() | st.integers(-5, 5))
    rows = pa.table({"v": pa.array([value], pa.int64())})
    commit_deletes(library, equality_deletes(library, rows, spec_id=plain[0]))
    both.duck.execute("DELETE FROM t WHERE v IS NOT DISTINCT FROM $1", [value])
    both.others = True
    both.check("delete values")


_STEPS: list[Callable[[Both, st.DataObject], None]] = [
    *(_insert, _update, _update_from, _delete, _merge, _merge),
    *(_partition_anew, _delete_positions, _delete_values),
]


@settings(
    deadline=None,
    max_examples=examples(12),
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from(_PARTITIONS), st.data())
def test_statements_change_rows_as_in_duckdb(partitions: dict[str, str], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as duck:
        lake = lakelet.connect(folder)
        session = Session(lake)
        session.run("CREATE DATABASE iceberg.d")
        session.run(f"CREATE TABLE {_NAME} (id INT NOT NULL, p INT, v BIGINT, s STRING)")
        duck.execute("CREATE TABLE t (id INT, p INT, v BIGINT, s VARCHAR)")
        both = _Iceberg(session, duck, catalog_lake=lake)
        try:
            set_partitions(both.table, partitions)
            _insert(both, data)
            for _ in range(data.draw(st.integers(1, 7))):
                data.draw(st.sampled_from(_STEPS))(both, data)
        finally:
            session.close()
