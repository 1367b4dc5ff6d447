"""A version of an Iceberg table as a SQL view for DuckDB: files that it reads as we do by its own reader, others by ours.

    SELECT CAST("qty" AS BIGINT) AS "quantity", … FROM read_parquet(['/…/00000-0.parquet', …])
    UNION ALL SELECT … FROM <rows of the other files>

DuckDB could read by field ids too, but returns NULL for every column of a file without ids. So each file's footer is read once,
and files with the same columns share one SELECT, by the names that the columns have in them. Our reader gets files in other
stores and formats, files with equality deletes, nested columns whose members changed, and types that the two read differently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.errors import InvalidError
from lakelet.iceberg.scan import IcebergScan, PlainColumn, PlainColumns, ScanFile
from lakelet.read.prefetch import prefetched
from lakelet.sql.engine.duckdb_engine import Space
from lakelet.sql.iceberg.duck_columns import duck_column, reads_alike
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.query.native_files import FILE_NUMBER, GLOB, ROW_NUMBER, Positions
from lakelet.sql.query.native_select import file_selects, shielded
from lakelet.sql.query.relation import Rows

_PARQUET = "PARQUET"
_AHEAD = 4
# The memory of a file in a view and its scan.
_FILE_BYTES = 1500


@dataclass(frozen=True, slots=True)
class IcebergView:
    """The view of an Iceberg table in a query. `native` has the files assigned to DuckDB, by the columns selected from them and
    their stored columns; `gone` their deleted positions."""

    scan: IcebergScan
    native: dict[tuple[str, object], list[ScanFile]] = field(default_factory=dict)
    gone: dict[str, Positions] = field(default_factory=dict)
    ours: list[ScanFile] = field(default_factory=list)

    @property
    def files(self) -> list[ScanFile]:
        """All files assigned to DuckDB."""
        return [file for files in self.native.values() for file in files]

    @property
    def paths(self) -> list[str]:
        """Their local paths."""
        return [self._local(file) for file in self.files]

    @property
    def is_local(self) -> bool:
        """Whether all its files are on this machine."""
        return all(self.scan.local_path(file.path) is not None for file in self.scan.files)

    @property
    def nbytes(self) -> int:
        """The estimated size in memory."""
        return _FILE_BYTES * (len(self.scan.files) + 1) + sum(int(one.nbytes) for one in self.gone.values())

    def sql(self, space: Space) -> str:
        """The query that returns the rows."""
        parts: list[str] = []
        for (columns, _), files in self.native.items():
            parts += file_selects(columns, [self._local(file) for file in files], self.gone, space.add_frame)
        if self.ours:
            parts.append(f"SELECT {cast_columns(self.scan)} FROM {space.add_rows(Rows(self.scan.schema, self._ours))}")
        if not parts:
            nulls = ", ".join(
                f"CAST(NULL AS {duck_column(one.type)}) AS {quoted(one.name)}" for one in self.scan.schema
            )
            return f"SELECT {nulls} WHERE false"
        return " UNION ALL ".join(parts)

    def count(self) -> int | None:
        """The row count from the plan; None with equality deletes, which need a read."""
        if any(file.has_equality_deletes for file in self.scan.files):
            return None
        gone = (self.scan.deleted(file) for file in self.scan.files)
        rows = sum(file.row_count for file in self.scan.files)
        return rows - sum(0 if positions is None else len(positions) for positions in gone)

    def blame(self, error: BaseException) -> None:
        """Raises the error of a file that DuckDB reads, if one of them caused DuckDB's error."""
        self.scan.blame(self.files)

    def summary(self) -> str:
        """The pruning summary for EXPLAIN: what is read of the table, out of how much."""
        plan, left_out = self.scan.plan, sum(len(positions) for positions in self.gone.values())
        rows = sum(file.row_count for file in (*self.files, *self.ours))
        deletes = {delete.path for file in plan.files for delete in file.deletes}
        lines = [
            f"snapshot: {'none' if self.scan.snapshot_id is None else self.scan.snapshot_id}",
            f"manifests: {plan.manifests_read} of {plan.manifests_total}",
            f"files: {len(plan.files)} of {plan.files_total} ({len(self.files)} read by DuckDB, {len(self.ours)} by Lakelet)",
            f"rows: {rows - left_out} at most" + (f", {left_out} left out that are deleted" if left_out else ""),
        ]
        return "\n".join([*lines, *([f"delete files: {len(deletes)}"] if deletes else [])])

    def _local(self, file: ScanFile) -> str:
        path = self.scan.local_path(file.path)
        assert path is not None
        return path

    def _ours(self, wanted: Sequence[str] | None, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        if len(self.ours) == 1:
            yield from self.scan.read(self.ours[0], wanted)
            return
        # The next files are prefetched while one is read.
        under_way: deque[Generator[pa.RecordBatch, None, None]] = deque()
        with ThreadPoolExecutor(_AHEAD) as pool:
            try:
                for file in self.ours:
                    under_way.append(prefetched(self.scan.read(file, wanted), pool))
                    if len(under_way) == _AHEAD:
                        yield from under_way.popleft()
                while under_way:
                    yield from under_way.popleft()
            finally:
                for batches in under_way:
                    batches.close()


def iceberg_view(scan: IcebergScan) -> IcebergView:
    """Assign the files of a scan to the readers; InvalidError if two columns differ in case alone."""
    _check_names(scan)
    view = IcebergView(scan)
    candidates = [file for file in scan.files if _reachable(scan, file)]
    found = {file.path: scan.plain_columns(file) for file in candidates}
    for file in scan.files:
        key = _key(found.get(file.path))
        if key is None:
            view.ours.append(file)
            continue
        gone = scan.deleted(file)
        if gone is not None:
            if len(gone) == file.row_count:
                continue
            view.gone[view._local(file)] = gone
        view.native.setdefault(key, []).append(file)
    return view


def _check_names(scan: IcebergScan) -> None:
    # DuckDB ignores the case of ASCII letters, but not of others.
    folded: dict[bytes, str] = {}
    for name in scan.schema.names:
        other = folded.setdefault(name.encode().lower(), name)
        if other != name:
            raise InvalidError(
                f"table {scan.table}: column {name!r} differs from {other!r} only in case, and SQL takes both for one"
            )


def _reachable(scan: IcebergScan, file: ScanFile) -> bool:
    path = scan.local_path(file.path)
    return path is not None and not GLOB & set(path) and file.format == _PARQUET and not file.has_equality_deletes


def _key(plain: PlainColumns | None) -> tuple[str, object] | None:
    """The selected and the stored columns of a file; None for files that our reader reads."""
    if plain is None:
        return None
    names = [name.lower() for name, _ in plain.stored]
    if len(set(names)) < len(names) or ROW_NUMBER in names or FILE_NUMBER in names:
        return None
    alike = all(one.stored_type is None or reads_alike(one.stored_type, one.type) for one in plain.columns)
    return (", ".join(_selected(one) for one in plain.columns), plain.stored) if alike else None


def _selected(column: PlainColumn) -> str:
    target = duck_column(column.type)
    if column.stored_name is None:
        return f"CAST(NULL AS {target}) AS {quoted(column.name)}"
    source = quoted(column.stored_name)
    if pa.types.is_floating(column.stored_type):
        source = shielded(source, "FLOAT" if column.stored_type == pa.float32() else "DOUBLE")
    return f"CAST({source} AS {target}) AS {quoted(column.name)}"


def cast_columns(scan: IcebergScan) -> str:
    """SQL that casts the columns of our reader to their types in queries."""
    return ", ".join(
        f"CAST({quoted(one.name)} AS {duck_column(one.type)}) AS {quoted(one.name)}" for one in scan.schema
    )
