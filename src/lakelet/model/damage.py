"""The result of a table check: which files are damaged, how, and which rows they held."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """One damaged file, with its contents as far as the table's other files describe them.

    `kind` is "snapshot", "schema", "manifest list", "manifest", "index manifest", "index file", "statistics" or "data file".
    `partition` is the folder of the partition, `keys` the range of primary keys, `rows` how many rows were in the file (for an
    index file: how many rows or keys it covers), `snapshot` the oldest snapshot that is known to have added the file.
    """

    kind: str
    path: str
    problem: str
    partition: str | None = None
    bucket: int | None = None
    keys: str | None = None
    rows: int | None = None
    snapshot: int | None = None


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """The progress of a check through the data files."""

    files_done: int
    files: int
    bytes_done: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was checked, and what is damaged: nothing, where `damages` is empty. `quick` says that no data file was opened."""

    versions: int
    metadata_files: int
    data_files: int
    rows: int
    bytes: int
    quick: bool
    damages: tuple[Damage, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages
