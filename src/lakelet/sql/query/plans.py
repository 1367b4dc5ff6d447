"""Plans of the latest queries, kept: a version of a table never changes, nor does what a query reads of it.

A plan is known by the snapshot, with its delta manifest list, for a rollback gives ids away again, and by the schema that it is
read in.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.cache.lru_cache import LruCache
from lakelet.model.split import Split
from lakelet.sql.query.native_files import Outdated, Positions
from lakelet.sql.query.table_view import TableView, outdated_rows, table_view
from lakelet.table.read.table_scan import TableScan

_KEPT = 128
# A plan of more files than this is made anew.
_MOST_FILES = 10_000
# Positions of rows that do not count are kept up to this size.
_POSITION_BYTES = 128 << 20


class Plans:
    """The latest plans, by what they are plans of, and the rows of merged files that do not count, by the files."""

    def __init__(self) -> None:
        self._views: LruCache[TableView] = LruCache()
        # In tuples, for there may be none to leave out.
        self._outdated: LruCache[tuple[dict[str, Positions] | None]] = LruCache()

    def view(self, scan: TableScan, texts: Sequence[str], location: str | None) -> TableView:
        """What a query reads of a table where one of these conditions holds."""
        if scan.snapshot is None:
            return table_view(scan, texts, location, None)
        key = (
            scan.home.where(scan.home.paths.branch_root),
            (scan.snapshot.id, scan.snapshot.delta_manifest_list, scan.snapshot.base_manifest_list),
            # The columns and options too: a branch that takes the place of another brings schemas of its own under the same
            # ids, and some options decide how files are read together.
            (scan.schema.id, scan.schema.fields, tuple(sorted(scan.schema.options.items()))),
            (scan.columns, scan.limit, scan.ordered, scan.level, tuple(texts)),
        )
        found = self._views.get(key)
        if found is not None:
            return found
        # A few rows are merged faster than positions of all rows are found.
        view = table_view(scan, texts, location, self._finder(scan) if scan.limit is None else None)
        if view.plan.files <= _MOST_FILES:
            self._views.put(key, view, limit=_KEPT)
        return view

    def _finder(self, scan: TableScan) -> Outdated:
        """Finds rows that do not count, each split's once: which rows of the same files win never changes, nor does the order of
        rows within a file."""
        reader: list[Outdated] = []
        # What decides between rows is in the schema and its options.
        deciding = (scan.schema.id, scan.schema.fields, tuple(sorted(scan.schema.options.items())))

        def outdated(split: Split) -> dict[str, Positions] | None:
            key = (scan.home.where(""), deciding, split.paths)
            kept = self._outdated.get(key)
            if kept is not None:
                return kept[0]
            if not reader:
                reader.append(outdated_rows(scan))
            found = reader[0](split)
            # The latest are kept whatever their size.
            self._outdated.put(key, (found,), min(_size(found), _POSITION_BYTES), limit=_POSITION_BYTES)
            return found

        return outdated


def _size(positions: dict[str, Positions] | None) -> int:
    return sum(rows.nbytes for rows in (positions or {}).values())
