"""Which files of a table are published: those of which every row is live and shown as it is stored.

    no primary key                     all files; deletion vectors, if any, say which of their rows are deleted
    primary key                        the topmost level
    primary key, deletion vectors      all levels above 0, whose superseded rows the vectors name

A bucket that has files above the topmost level, from when the table had more levels, has no others published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.schema import TableSchema
from lakelet.options import DELETION_VECTORS_ENABLED, TableOptions

_MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class PublishedLevels:
    """The levels of a table that are published: from `lowest` on; with `topmost` none but the highest of a bucket."""

    name: str
    lowest: int | None
    topmost: bool

    @staticmethod
    def of(schema: TableSchema, options: TableOptions) -> PublishedLevels:
        """The rule for a table."""
        if not schema.primary_keys:
            return PublishedLevels("all", None, topmost=False)
        if options.get(DELETION_VECTORS_ENABLED):
            return PublishedLevels("above 0", 1, topmost=False)
        top = UniversalPolicy.of(options).num_levels - 1
        return PublishedLevels(str(top), top, topmost=True)

    def shows(self, level: int) -> bool:
        """Whether a file of this level that is added is published."""
        if self.lowest is None:
            return True
        return level == self.lowest if self.topmost else level >= self.lowest

    def hides_others(self, level: int) -> bool:
        """Whether a file of this level hides others of its bucket that are published already."""
        return self.topmost and self.lowest is not None and level > self.lowest

    def choose(self, live: pa.Table) -> tuple[pa.Table, str]:
        """Of all live files those that are published, and the name of the rule; another name where no commit can continue."""
        if self.lowest is None:
            return live, self.name
        level = live.column("_LEVEL").to_numpy()
        if not self.topmost:
            return live.filter(pa.array(level >= self.lowest)), self.name
        highest = _highest_levels(live, level)
        chosen = live.filter(pa.array((level == highest) & (level >= self.lowest)))
        return chosen, _MIXED if (highest > self.lowest).any() else self.name


def _highest_levels(live: pa.Table, level: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of each file the highest level of its bucket."""
    keys = live.select(["_PARTITION", "_BUCKET"]).append_column("level", pa.array(level))
    highest = keys.group_by(["_PARTITION", "_BUCKET"], use_threads=False).aggregate([("level", "max")])
    rows = keys.append_column("row", pa.array(np.arange(len(level))))
    joined = rows.join(highest, ["_PARTITION", "_BUCKET"], use_threads=False).sort_by("row")
    found: np.ndarray[Any, Any] = joined.column("level_max").to_numpy()
    return found
