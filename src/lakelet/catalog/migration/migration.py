"""Migrate a folder of Parquet files to a table, or into one, without rewriting them.

    list ─ read footers ─ check ─ make the table ─ journal ─ second names ─ commit ─ remove first names ─ remove journal
           └  runner   ┘                                     └  runner   ┘

The files end up in the table's folder under names of its own; their bytes are not touched. Files of hive-style partitions
(`dt=2026-01-01/…`) lack the partition columns, which readers take from the manifest. Nothing is changed before every file
was checked. An interrupted migration is finished by the next call: until the commit all files have their old names, and
the commit is made once. Work on single files runs in this process or, with another runner, wherever an engine runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lakelet.catalog.lake import Lake
from lakelet.catalog.migration.adopted_file import BUCKET, Adoption, adopted_path, data_file, place_file
from lakelet.catalog.migration.adoption_check import fields_of, problems, refuse
from lakelet.catalog.migration.journal import Journal, begin_journal, note_commit, read_journal, remove_journal
from lakelet.catalog.migration.parquet_footers import Footer, read_footer
from lakelet.catalog.migration.source_files import SourceFile, open_folder, source_files
from lakelet.commit.metadata.schemas import read_schema
from lakelet.commit.metadata.table_identity import table_uuid
from lakelet.errors import InvalidError, LakeletError
from lakelet.format.data.file_settings import FileSettings
from lakelet.format.rows.binary_row import encode_row
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.commit_message import CommitMessage
from lakelet.model.data_file import DataFile
from lakelet.model.partition_path import parse_partition_value
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import Snapshot
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, string
from lakelet.storage.disk.links import BehindLinkError
from lakelet.storage.home import TableHome
from lakelet.storage.paths import TablePaths
from lakelet.storage.store import ObjectStore
from lakelet.table import Table
from lakelet.table.usable import check_usable

PartitionColumn = str | tuple[str, str]
_IDENTIFIER = 0
_UNAWARE = -1
Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Runner(Protocol):
    """Runs a function on many pieces, somewhere; both must be picklable for runners on other machines."""

    def __call__(
        self, pieces: Sequence[Piece], work: Callable[[Piece], Result], what: str, /
    ) -> list[tuple[Piece, Result]]:
        """Each piece with its result, in no order; `what` describes the work in error messages."""
        ...


def run_here(pieces: Sequence[Piece], work: Callable[[Piece], Result], what: str) -> list[tuple[Piece, Result]]:
    """One after the other, in this process."""
    return [(piece, work(piece)) for piece in pieces]


@dataclass(frozen=True, slots=True)
class Migration:
    """The result of a migration: the snapshot it made (None: there was nothing to adopt), and how many files and rows it
    holds.
    """

    snapshot: Snapshot | None
    files: int
    rows: int


def migrate(
    lake: Lake,
    table: str,
    source_folder: str,
    *,
    partitioned_by: Sequence[PartitionColumn] = (),
    table_options: Mapping[str, object] | None = None,
    connection: Mapping[str, str] | None = None,
    run: Runner = run_here,
) -> Migration:
    """Adopt the Parquet files of a folder into a table, in one commit; the files are moved out of the folder.

    The table may exist (an append table without buckets, with just these columns); otherwise it is created with the columns
    of the files and with `table_options`. Partition columns are those that the folders name; `partitioned_by` gives their types
    where they are not text, such as [("dt", "DATE")]. Files that are not stored as the table's columns have to be are listed, and
    then nothing is changed. The folder must be in the same store or on the same disk as the warehouse; `connection` is how it is
    reached. After a failure, run it again: it continues where it stopped.
    """
    source = open_folder(source_folder, connection or {})
    job = _Migrating(lake, table, source, run)
    job.check_apart()
    journal = job.left_over(read_journal(source))
    begun = None if journal is None else job.finished(journal)
    files = source_files(source)
    if not files:
        return begun or Migration(None, 0, 0)
    fresh = job.begun(files, partitioned_by, table_options or {})
    done = Migration(None, 0, 0) if fresh is None else job.finished(fresh)
    if begun is None or done.snapshot is None:
        return begun or done
    return Migration(done.snapshot, begun.files + done.files, begun.rows + done.rows)


class _Migrating:
    """The steps of one call."""

    def __init__(self, lake: Lake, name: str, source: ObjectStore, run: Runner) -> None:
        self._lake = lake
        self._name = name
        self._source = source
        self._run = run
        self._what = f"migrating {source.location} to {name}"

    def check_apart(self) -> None:
        """InvalidError if the folder is part of the table's own, or the other way round."""
        root = f"{self._root()}/"
        folder = f"{self._source.location.rstrip('/')}/"
        if folder.startswith(root) or root.startswith(folder):
            raise InvalidError(f"{folder} and the table's folder {root} lie within each other")

    def left_over(self, journal: Journal | None) -> Journal | None:
        """An interrupted migration to be finished first. One into a table that was dropped since is discarded: its files
        begin anew.
        """
        if journal is None:
            return None
        if journal.table != self._root():
            raise InvalidError(
                f"{self._source.location}: a migration into {journal.table} was begun and must be finished first, "
                f"by running it again; found {self._root()}"
            )
        if self._lake.table_exists(self._name) and table_uuid(self._open().home) == journal.table_uuid:
            return journal
        remove_journal(self._source)
        return None

    def begun(
        self, files: Sequence[SourceFile], columns: Sequence[PartitionColumn], options: Mapping[str, object]
    ) -> Journal | None:
        """Check all files, create the table if there is none, and write the journal; None where no file has a row."""
        footers = self._run(files, _ReadFooter(self._source), self._what)
        if self._lake.table_exists(self._name):
            schema = self._open().schema
            _check_partitions(schema, columns, files[0].keys)
            self._check(footers, schema.fields)
        else:
            fields, keys = _new_columns(footers, columns, self._source)
            self._check(footers, fields)
            schema = self._created(fields, keys, options).schema
        home = self._open().home
        adopted = sorted((file for file, footer in footers if footer.rows), key=lambda file: file.path)
        if not adopted:
            return None
        prefix = f"{FileSettings.of(schema).prefix}{home.ids.uuid()}"
        names = tuple((file, f"{prefix}-{number}.parquet") for number, file in enumerate(adopted))
        user = f"migrate-{home.ids.uuid()}"
        journal = Journal(home.where(home.paths.root), table_uuid(home), user, schema.id, names)
        begin_journal(self._source, journal)
        return journal

    def finished(self, journal: Journal) -> Migration:
        """Adopt the files of a journal and remove it; steps done before are not repeated."""
        table = self._open()
        home = table.home
        schema = read_schema(home, journal.schema_id)
        commit, done = table.new_commit(journal.user, _IDENTIFIER).look_back()
        rows = 0
        if done is None and not journal.committed:
            placed = self._run(
                [_adoption(file, name, schema) for file, name in journal.files],
                _Place(self._source, home, schema),
                self._what,
            )
            rows = sum(file.row_count for _, file in placed)
            done = commit.commit(_messages(home, placed))
            note_commit(self._source, journal)
        with suppress(BehindLinkError):
            # The rows are in the table now; what a link leads to may be read from elsewhere as well.
            self._source.delete([file.path for file, _ in journal.files])
        remove_journal(self._source)
        return Migration(done, len(journal.files), rows or (done.delta_record_count or 0 if done else 0))

    def _check(self, footers: Sequence[tuple[SourceFile, Footer]], fields: Sequence[Field]) -> None:
        by_name = {field.name: field for field in fields}
        found: dict[str, Sequence[str]] = {}
        for file, footer in footers:
            try:
                values = {name: _value(by_name[name], text) for name, text in file.partition}
                texts = problems(footer, fields, values, file.keys)
            except LakeletError as error:
                texts = [str(error)]
            if texts:
                found[f"{self._source.location}/{file.path}"] = texts
        refuse(found, self._what)

    def _created(self, fields: Sequence[Field], keys: Sequence[str], options: Mapping[str, object]) -> Table:
        table = self._lake.create_table(
            self._name, fields, partitioned_by=keys, options={**options, "bucket": _UNAWARE}, if_not_exists=True
        )
        _check_unaware(self._name, table.schema)
        return table

    def _root(self) -> str:
        database, _, name = self._name.partition(".")
        return f"{self._lake.location.rstrip('/')}/{TablePaths.of(database, name).root}"

    def _open(self) -> Table:
        table = self._lake.table(self._name)
        _check_unaware(self._name, table.schema)
        return table


@dataclass(frozen=True, slots=True)
class _ReadFooter:
    source: ObjectStore

    def __call__(self, file: SourceFile) -> Footer:
        return read_footer(self.source, file.path)


@dataclass(frozen=True, slots=True)
class _Place:
    """Gives a file its name in the table, and returns its metadata for the manifest."""

    source: ObjectStore
    home: TableHome
    schema: TableSchema

    def __call__(self, adoption: Adoption) -> DataFile:
        place_file(self.source, self.home, self.schema, adoption)
        footer = read_footer(self.home.store, adopted_path(self.home, self.schema, adoption))
        return data_file(self.home, self.schema, adoption, footer)


def _new_columns(
    footers: Sequence[tuple[SourceFile, Footer]], columns: Sequence[PartitionColumn], source: ObjectStore
) -> tuple[list[Field], tuple[str, ...]]:
    """The columns of a table created from these files, and its partition columns."""
    file, footer = min(footers, key=lambda pair: (pair[1].problem is not None, pair[0].path))
    refuse({f"{source.location}/{file.path}": [footer.problem]} if footer.problem else {}, source.location)
    types = dict(_typed(column) for column in columns)
    if types and tuple(types) != file.keys:
        raise InvalidError(
            f"partitioned_by: expected the columns that the folders of {source.location} name, "
            f"{', '.join(file.keys) or 'none'}; found {', '.join(types)}"
        )
    fields = fields_of(footer, f"{source.location}/{file.path}")
    present = {field.name for field in fields}
    missing = [
        Field(-1, name, string() if (text := types.get(name)) is None else parse_type(text))
        for name in file.keys
        if name not in present
    ]
    return [*fields, *missing], file.keys


def _typed(column: PartitionColumn) -> tuple[str, str | None]:
    return (column, None) if isinstance(column, str) else column


def _check_partitions(schema: TableSchema, columns: Sequence[PartitionColumn], keys: tuple[str, ...]) -> None:
    named = tuple(_typed(column)[0] for column in columns) or schema.partition_keys
    if keys != schema.partition_keys or named != schema.partition_keys:
        raise InvalidError(
            f"the table is partitioned by {', '.join(schema.partition_keys) or 'nothing'}; the folders name "
            f"{', '.join(keys) or 'nothing'}, partitioned_by {', '.join(named) or 'nothing'}"
        )


def _check_unaware(name: str, schema: TableSchema) -> None:
    check_usable(schema)
    if schema.primary_keys or bucket_mode(schema) is not BucketMode.BUCKET_UNAWARE:
        raise InvalidError(
            f"{name}: files can be adopted by append tables without buckets only, for others decide the files of rows; "
            "write their rows anew, as bulk_load and INSERT … SELECT do"
        )


def _value(field: Field, text: str | None) -> object:
    if text is None and not field.type.nullable:
        raise InvalidError(f"column {field.name!r} is {field.type}, but the folder says NULL")
    return None if text is None else parse_partition_value(text, field.type)


def _adoption(file: SourceFile, name: str, schema: TableSchema) -> Adoption:
    values = {key: _value(schema.field(key), text) for key, text in file.partition}
    partition = encode_row(list(values.values()), schema.partition_types)
    return Adoption(file.path, file.size, name, partition, values)


def _messages(home: TableHome, placed: Sequence[tuple[Adoption, DataFile]]) -> tuple[CommitMessage, ...]:
    by_partition: dict[bytes, list[DataFile]] = {}
    for adoption, file in placed:
        by_partition.setdefault(adoption.partition, []).append(file)
    written_for = table_uuid(home)
    return tuple(
        CommitMessage(partition, BUCKET, _UNAWARE, tuple(files), table_uuid=written_for)
        for partition, files in by_partition.items()
    )
