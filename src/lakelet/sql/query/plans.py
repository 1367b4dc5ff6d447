"""A cache of the plans of the latest queries: a version of a table is immutable, and so is its plan.

The key of a plan is the snapshot with its delta manifest list, for ids are reused after a rollback, and the schema that it is
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
# A plan of more files than this is not cached.
_MOST_FILES = 10_000
# The limit of the cached positions of superseded rows.
_POSITION_BYTES = 128 << 20


class Plans:
    """The latest plans, and the positions of superseded rows in merged files by the files of a split."""

    def __init__(self) -> None:
        self._views: LruCache[TableView] = LruCache()
        # In tuples, for the cached value may be None.
        self._outdated: LruCache[tuple[dict[str, Positions] | None]] = LruCache()

    def view(self, scan: TableScan, texts: Sequence[str], location: str | None) -> TableView:
        """The view of a table pruned by these conditions, one of which every needed row satisfies."""
        if scan.snapshot is None:
            return table_view(scan, texts, location, None)
        key = (
            scan.home.where(scan.home.paths.branch_root),
            (scan.snapshot.id, scan.snapshot.delta_manifest_list, scan.snapshot.base_manifest_list),
            # The columns and options too: a branch that replaces another has schemas of its own under the same
            # ids, and some options decide how files are read together.
            (scan.schema.id, scan.schema.fields, tuple(sorted(scan.schema.options.items()))),
            (scan.columns, scan.limit, scan.ordered, scan.level, tuple(texts)),
        )
        found = self._views.get(key)
        if found is not None:
            return found
        # With a limit, merging a few rows is faster than finding the positions of all superseded ones.
        view = table_view(scan, texts, location, self._finder(scan) if scan.limit is None else None)
        if view.plan.files <= _MOST_FILES:
            self._views.put(key, view, limit=_KEPT)
        return view

    def _finder(self, scan: TableScan) -> Outdated:
        """A function that finds the superseded rows of a split, cached: the winning rows of the same files never change, nor does
        the order of rows within a file."""
        reader: list[Outdated] = []
        # The schema and its options determine which row of a key wins.
        deciding = (scan.schema.id, scan.schema.fields, tuple(sorted(scan.schema.options.items())))

        def outdated(split: Split) -> dict[str, Positions] | None:
            key = (scan.home.where(""), deciding, split.paths)
            kept = self._outdated.get(key)
            if kept is not None:
                return kept[0]
            if not reader:
                reader.append(outdated_rows(scan))
            found = reader[0](split)
            # The latest entry is cached whatever its size.
            self._outdated.put(key, (found,), min(_size(found), _POSITION_BYTES), limit=_POSITION_BYTES)
            return found

        return outdated


def _size(positions: dict[str, Positions] | None) -> int:
    return sum(rows.nbytes for rows in (positions or {}).values())
