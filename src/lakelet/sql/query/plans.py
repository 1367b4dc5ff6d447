"""Plans of the latest queries, kept: a version of a table never changes, nor does what a query reads of it.

A plan is known by the snapshot, with its delta manifest list, for a rollback gives ids away again, and by the schema that it is
read in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

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
        self._lock = threading.Lock()
        self._views: OrderedDict[object, TableView] = OrderedDict()
        self._outdated: OrderedDict[object, dict[str, Positions] | None] = OrderedDict()

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
        with self._lock:
            found = self._views.get(key)
            if found is not None:
                self._views.move_to_end(key)
                return found
        # A few rows are merged faster than positions of all rows are found.
        view = table_view(scan, texts, location, self._finder(scan) if scan.limit is None else None)
        if view.plan.files <= _MOST_FILES:
            with self._lock:
                self._views[key] = view
                while len(self._views) > _KEPT:
                    self._views.popitem(last=False)
        return view

    def _finder(self, scan: TableScan) -> Outdated:
        """Finds rows that do not count, each split's once: which rows of the same files win never changes, nor does the order of
        rows within a file."""
        reader: list[Outdated] = []
        # What decides between rows is in the schema and its options.
        deciding = (scan.schema.id, scan.schema.fields, tuple(sorted(scan.schema.options.items())))

        def outdated(split: Split) -> dict[str, Positions] | None:
            key = (scan.home.where(""), deciding, split.paths)
            with self._lock:
                if key in self._outdated:
                    self._outdated.move_to_end(key)
                    return self._outdated[key]
            if not reader:
                reader.append(outdated_rows(scan))
            found = reader[0](split)
            with self._lock:
                self._outdated[key] = found
                while len(self._outdated) > 1 and sum(map(_size, self._outdated.values())) > _POSITION_BYTES:
                    self._outdated.popitem(last=False)
            return found

        return outdated


def _size(positions: dict[str, Positions] | None) -> int:
    return sum(rows.nbytes for rows in (positions or {}).values())
