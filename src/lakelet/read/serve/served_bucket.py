"""The lookup files of one bucket, open for single keys: which row of a key wins.

key ─ files whose range admits it, newest first (`served_file`) ─ the row that wins
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelet.model.split import Split
from lakelet.read.serve.served_block import ServedRow
from lakelet.read.serve.served_file import RowHolder, ServedFile

Hit = tuple[ServedFile, ServedRow, RowHolder]
"""A row of a key, its file and what has its row."""


class ServedBucket:
    """The files of a bucket, oldest first. `is_gone` says whether a deletion vector deletes a row.

    A `lone` file has all rows of the bucket as they are: its schema is the table's, no deletion vector is over it, and no
    column that is asked for is nested.
    """

    __slots__ = ("_files", "_is_gone", "_newest_first", "_split", "lone")

    def __init__(self, split: Split, files: Sequence[ServedFile], is_gone: Callable[[Hit], bool]) -> None:
        self._split = split
        self._files = tuple(files)
        self._newest_first = tuple(reversed(files))
        self._is_gone = is_gone
        is_lone = len(self._files) == 1 and self._files[0].is_plain and not self._files[0].has_vector
        self.lone = self._files[0] if is_lone else None

    @property
    def is_open(self) -> bool:
        """Whether all of its lookup files were there when they were last used, and are not dropped."""
        return all(file.is_open for file in self._files)

    def open(self) -> None:
        """Open all lookup files, which are made if need be."""
        for file in self._files:
            file.open()

    def newest(self, key: bytes, ignore_delete: bool) -> Hit | None:
        """The row of a key with the greatest sequence number, be it a retract; None where there is none.

        Files are in the order of their greatest sequence numbers: once none of those left can have a greater one, the rest is
        not looked at. Of rows with one sequence number that of the later file wins.
        """
        best: Hit | None = None
        best_sequence = 0
        for file in self._newest_first:
            if best is not None and file.max_sequence <= best_sequence:
                break
            if not file.low <= key <= file.high:
                continue
            found = file.find(key)
            if found is None:
                continue
            row, block = found
            sequence, is_retract, _, _ = row
            if (ignore_delete and is_retract) or (file.has_vector and self._is_gone((file, row, block))):
                continue
            if best is None or sequence > best_sequence:
                best, best_sequence = (file, row, block), sequence
        return best

    def oldest(self, key: bytes, ignore_delete: bool) -> Hit | None:
        """The row of a key with the least sequence number; of rows with one sequence number that of the later file wins."""
        hits = self.every(key, ignore_delete)
        return min(reversed(hits), key=lambda hit: hit[1][0], default=None)

    def every(self, key: bytes, ignore_delete: bool) -> list[Hit]:
        """All rows of a key that are not deleted, oldest file first."""
        hits: list[Hit] = []
        for file in self._files:
            found = file.find(key) if file.low <= key <= file.high else None
            if found is not None:
                hit = (file, *found)
                is_ignored = ignore_delete and found[0][1]
                if not is_ignored and not (file.has_vector and self._is_gone(hit)):
                    hits.append(hit)
        return hits
