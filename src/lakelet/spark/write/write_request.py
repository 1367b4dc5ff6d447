"""The checked arguments of `ls.write` and of the jobs that write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from lakelet.errors import InvalidError

_MODES = ("append", "upsert", "overwrite", "overwrite_partitions")
_REPLACING = ("overwrite", "overwrite_partitions")
_DUPLICATES = ("raise", "any")
# What the driver takes of a frame: as many rows take tasks twice as long on two cores, most of it on the way to Python.
DRIVER_ROWS = 250_000
DRIVER_BYTES = 128 << 20


class WriteArguments(TypedDict, total=False):
    """Keyword arguments of jobs that write, with the meaning and the defaults that they have in `ls.write`."""

    mode: str
    partition: Mapping[str, object] | None
    on_duplicate: str
    commit_user: str | None
    commit_identifier: int | None
    parallelism: int | None
    driver_rows: int
    driver_bytes: int


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The arguments of one write beside its rows and its table; InvalidError for those that make no sense."""

    mode: str = "append"
    partition: Mapping[str, object] | None = None
    on_duplicate: str = "raise"
    kinds: str | None = None
    missing: str | None = None
    commit_user: str | None = None
    commit_identifier: int | None = None
    parallelism: int | None = None
    driver_rows: int = DRIVER_ROWS
    driver_bytes: int = DRIVER_BYTES
    # A stream adds text for the snapshot, whether a write without rows makes one, and whether it looks for files to compact.
    properties: Mapping[str, str] | None = None
    ignores_empty: bool | None = None
    looks: bool | None = None

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise InvalidError(f"mode {self.mode!r}: expected one of {', '.join(_MODES)}")
        if self.partition is not None and self.mode != "overwrite":
            raise InvalidError(f"partition= goes with mode='overwrite', found mode={self.mode!r}")
        for name, number in (("driver_rows", self.driver_rows), ("driver_bytes", self.driver_bytes)):
            if not is_whole(number) or number < 0:
                raise InvalidError(f"{name} {number!r}: expected a whole number from 0 on")
        if self.on_duplicate not in _DUPLICATES:
            raise InvalidError(f"on_duplicate {self.on_duplicate!r}: expected one of {', '.join(_DUPLICATES)}")
        if self.parallelism is not None and self.parallelism < 1:
            raise InvalidError(f"parallelism {self.parallelism}: expected a number from 1 on")

    @property
    def replaces(self) -> bool:
        """Whether rows take the place of all others, of the table or of partitions."""
        return self.mode in _REPLACING


def is_whole(value: object) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)
