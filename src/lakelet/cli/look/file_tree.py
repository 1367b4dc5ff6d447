"""`lakelet files`: the live data files as a list, or as a tree of partitions, buckets and levels with their sizes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TypeAlias

from lakelet.cli.look.amounts import bar, shown_bytes, shown_count
from lakelet.cli.look.inspect_table import list_files
from lakelet.cli.output.output import Output
from lakelet.model.data_file import DataFile
from lakelet.table import Table

_BAR = 30
_SHOWN_FILES = 8


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """The location of files; `partition` is the folders between the table and the bucket."""

    partition: str
    bucket: int
    level: int


_Levels: TypeAlias = dict[_Place, list[DataFile]]


def show_files(table: Table, output: Output, *, tree: bool, version: int | None) -> None:
    """Print the list or the tree; programs get the tree as rows, one per level."""
    if not tree:
        list_files(table, output, version)
        return
    levels = _levels(table, version)
    if output.for_programs:
        rows = [
            (place.partition, place.bucket, place.level, len(files), _rows(files), _bytes(files))
            for place, files in levels.items()
        ]
        output.rows(table.name, ("partition", "bucket", "level", "files", "rows", "bytes"), rows)
        return
    _draw(table, output, levels)


def _draw(table: Table, output: Output, levels: _Levels) -> None:
    from rich.text import Text  # noqa: PLC0415 - only pictures need it.
    from rich.tree import Tree  # noqa: PLC0415

    within: dict[object, list[DataFile]] = defaultdict(list)
    for place, files in levels.items():
        for whole in ((), place.partition, (place.partition, place.bucket)):
            within[whole] += files
    root = Tree(Text.assemble((table.name, "bold"), f"  {_amounts(within[()])}"))
    largest = max(map(_bytes, levels.values()), default=0)
    partitions: dict[str, Tree] = {"": root}
    buckets: dict[tuple[str, int], Tree] = {}
    for place, files in levels.items():
        if place.partition not in partitions:
            label = Text.assemble((place.partition, "cyan"), f"  {_amounts(within[place.partition])}")
            partitions[place.partition] = root.add(label)
        spot = (place.partition, place.bucket)
        if spot not in buckets:
            label = Text.assemble((f"bucket {place.bucket}", "magenta"), f"  {_amounts(within[spot])}")
            buckets[spot] = partitions[place.partition].add(label)
        drawn = bar(_bytes(files), largest, _BAR)
        label = Text.assemble((f"level {place.level}", "green"), f"  {drawn}  {_amounts(files)}")
        branch = buckets[spot].add(label)
        for file in files[:_SHOWN_FILES]:
            amounts = f"{shown_bytes(file.size)}, {shown_count(file.row_count, 'row')}"
            branch.add(Text(f"{file.name}  {amounts}", "dim", no_wrap=True, overflow="ellipsis"))
        if len(files) > _SHOWN_FILES:
            branch.add(Text(f"… {shown_count(len(files) - _SHOWN_FILES, 'more file')}", "dim"))
    output.picture(root)


def _levels(table: Table, version: int | None) -> _Levels:
    """The files of each level of each bucket, in the order of partitions, buckets and levels."""
    found: dict[_Place, list[DataFile]] = defaultdict(list)
    root = table.home.paths.root
    for path, file in table.files(version=version):
        folder, bucket, _ = path.rsplit("/", 2)
        partition = "/".join(part for part in folder.removeprefix(root).split("/") if "=" in part)
        found[_Place(partition, _bucket(bucket), file.level)].append(file)
    return {place: sorted(found[place], key=lambda file: -file.size) for place in sorted(found)}


def _bucket(folder: str) -> int:
    name = folder.removeprefix("bucket-")
    # Rows without a bucket yet are in `bucket-postpone`, which has the number that Paimon assigns to it.
    return int(name) if name.lstrip("-").isdigit() else -2


def _rows(files: list[DataFile]) -> int:
    return sum(file.row_count for file in files)


def _bytes(files: list[DataFile]) -> int:
    return sum(file.size for file in files)


def _amounts(files: list[DataFile]) -> str:
    return f"{shown_count(len(files), 'file')}, {shown_bytes(_bytes(files))}, {shown_count(_rows(files), 'row')}"
