"""`ls.remove_orphan_files`: list bucket folders and delete orphan files on executors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakelet.commit.retention.orphans import OrphanReport
from lakelet.spark.jobs.spread import spread
from lakelet.spark.opened_table import open_table
from lakelet.storage.home import TableHome
from lakelet.storage.store import Listing
from lakelet.table.time_arguments import Age

_FOLDERS = 64
_FILES = 1000


def remove_orphan_files(
    spark: SparkSession,
    warehouse: str | os.PathLike[str],
    table: str,
    older_than: Age = "1 d",
    *,
    dry_run: bool = False,
    options: Mapping[str, str] | None = None,
) -> OrphanReport:
    """Removes files that nothing on any branch refers to and that were last modified before `older_than`.

    The age protects files that writers have not committed yet. Less than a day is safe only where nobody is writing.
    """
    opened = open_table(warehouse, table, options)
    return opened.table.remove_orphan_files(older_than, dry_run=dry_run, work=_OnExecutors(spark, opened.home))


@dataclass(frozen=True, slots=True)
class _OnExecutors:
    spark: SparkSession
    home: TableHome

    def list_folders(self, folders: Sequence[str]) -> list[Listing]:
        parts = [tuple(folders[start : start + _FOLDERS]) for start in range(0, len(folders), _FOLDERS)]
        where = self.home.where(self.home.paths.root)
        found = spread(self.spark, parts, _List(self.home), f"listing folders of {where}")
        by_folder = {folder: one for part, listings in found for folder, one in zip(part, listings, strict=True)}
        return [by_folder[folder] for folder in folders]

    def delete(self, paths: Sequence[str]) -> None:
        parts = [tuple(paths[start : start + _FILES]) for start in range(0, len(paths), _FILES)]
        where = self.home.where(self.home.paths.root)
        spread(self.spark, parts, _Delete(self.home), f"removing orphan files of {where}")


@dataclass(frozen=True, slots=True)
class _List:
    home: TableHome

    def __call__(self, folders: Sequence[str]) -> list[Listing]:
        return [self.home.store.list_folder(folder) for folder in folders]


@dataclass(frozen=True, slots=True)
class _Delete:
    home: TableHome

    def __call__(self, paths: Sequence[str]) -> int:
        self.home.store.delete(list(paths))
        return len(paths)
