"""A lake: the databases and tables below one folder or bucket.

    lake = lakelet.connect("./warehouse")
    lake.create_database("shop")
    orders = lake.create_table("shop.orders", pa.schema([("id", pa.int64()), ("dt", pa.string())]), partitioned_by=["dt"])

The catalog is the folder itself: a table exists once `<db>.db/<table>/schema/schema-0` does. There is no catalog service.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from lakelet.callbacks.iceberg.rest_settings import check_rest_settings
from lakelet.catalog.given_definition import (
    Columns,
    given_fields,
    given_names,
    moved_keys,
    named_by_days,
    option_texts,
)
from lakelet.catalog.metadata_cache.iceberg_open import iceberg_source, load_iceberg
from lakelet.catalog.rename import in_the_way, move_table
from lakelet.catalog.replacement import exchange
from lakelet.catalog.rest_catalogs import GivenRestCatalogs
from lakelet.catalog.table_files import make_table, remove_table
from lakelet.catalog.views import View, read_view, remove_view, view_names, write_view
from lakelet.clock import Clock, SystemClock
from lakelet.commit.callbacks.callback_classes import allowed_modules, check_callbacks
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.version_ids import schema_ids
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.events import TableDropped, TableRenamed, TableReplaced, publish, uncertain
from lakelet.ids import Ids, RandomIds
from lakelet.model.arrow.arrow_types import arrow_schema
from lakelet.model.literals import parse_literal
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.schema_change.replaced_schema import replaced_schema
from lakelet.model.text import check_text
from lakelet.options import (
    CALLBACKS_ALLOW,
    PARTITION,
    PARTITION_LEGACY_NAME,
    PATH,
    PRIMARY_KEY,
    check_options,
)
from lakelet.session_factory import open_session
from lakelet.storage.home import TableHome
from lakelet.storage.metadata_source import MetadataSource
from lakelet.storage.paths import MAIN_BRANCH, TablePaths, check_name, database_folder, database_of_folder
from lakelet.storage.store import ObjectStore

if TYPE_CHECKING:
    from lakelet.cache.coordinator import TieredCacheCoordinator
    from lakelet.catalog.sql_result import SqlResult
    from lakelet.iceberg.catalog.catalogs import Catalogs
    from lakelet.iceberg.metadata.source import IcebergMetadataSource
    from lakelet.table.table import Table

_SESSIONS = threading.Lock()


class SqlSession(Protocol):
    """The part of a SQL session that a lake uses: it runs statements one after the other."""

    def run(
        self,
        text: str,
        params: Mapping[str, object] | Sequence[object] | None,
        frames: Mapping[str, object] | None,
        caller: FrameType | None,
    ) -> SqlResult: ...


class Lake:
    """The databases and tables of one store."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        options: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        metadata: MetadataSource | None = None,
        iceberg_metadata: IcebergMetadataSource | None = None,
        cache: TieredCacheCoordinator | None = None,
    ) -> None:
        self._store = store
        self._options = dict(options or {})
        self._callback_modules = allowed_modules(self._options.get(CALLBACKS_ALLOW.name))
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        # The metadata sources of all native tables, and of those of Iceberg catalogs, used in place of the store; these have
        # one over the cache, unless another is given.
        self._metadata = metadata
        self._iceberg_metadata = iceberg_metadata
        self._cache = cache
        if cache is not None:
            load_iceberg(cache, self)
        self._session: SqlSession | None = None
        self._catalogs: Catalogs | None = None
        self._rest_catalogs = GivenRestCatalogs(store, self._options)

    def __repr__(self) -> str:
        return f"Lake({self._store.location!r})"

    @property
    def location(self) -> str:
        """The warehouse's folder or bucket."""
        return self._store.location

    @property
    def opened_with(self) -> Mapping[str, str]:
        """The options that it was opened with, for opening it elsewhere. Secrets may be among them."""
        return dict(self._options)

    @property
    def cache(self) -> TieredCacheCoordinator:
        """The metadata cache: its contents, metrics and invalidation. Tables are named `database.table`."""
        if self._cache is None:
            raise InvalidError(f"{self!r} was opened without a metadata cache: open it by lakelet.connect()")
        return self._cache

    @property
    def catalogs(self) -> Catalogs:
        """The Iceberg catalogs that the lake knows; InvalidError where pyiceberg is not installed."""
        try:
            from lakelet.iceberg.catalog.catalogs import Catalogs  # noqa: PLC0415 - pyiceberg loads with it, and need not be there.
        except ImportError as error:
            raise InvalidError(f"Iceberg tables need pyiceberg: pip install lakelet[iceberg] ({error})") from error

        if self._catalogs is None:
            source = self._iceberg_metadata
            if source is None and self._cache is not None:
                source = iceberg_source(self._cache)
            self._catalogs = Catalogs(self._store, self._options, source)
        return self._catalogs

    def sql(
        self,
        text: str,
        params: Mapping[str, object] | Sequence[object] | None = None,
        *,
        frames: Mapping[str, object] | None = None,
    ) -> SqlResult:
        """Run SQL: queries over the lake's tables on DuckDB, and statements that create, change and maintain tables.

        `params` are values for `$name`, or for `?`; data frames are named like tables, by `frames` or as variables of the calling
        code. USE and SET hold for the statements that follow, and temporary tables last for them, in all threads.
        """
        # Threads share one session, and so its temporary tables.
        with _SESSIONS:
            if self._session is None:
                self._session = open_session(self)
            session = self._session
        return session.run(text, params, frames, sys._getframe(1))

    # ------------------------------------------------------------------ databases

    def databases(self) -> list[str]:
        """The names of all databases."""
        folders = self._store.list_folder("").folders
        names = (database_of_folder(folder) for folder in folders)
        return sorted(name for name in names if name is not None and _is_name(name))

    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a database."""
        folder = database_folder(name)
        if name in self.databases():
            if if_not_exists:
                return
            raise AlreadyExistsError(f"database {name!r} exists in {self.location}")
        self._store.make_folder(folder)

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Drop a database; with its tables, and whatever else is in its folder, only if `cascade` is given."""
        if name not in self.databases():
            if if_exists:
                return
            raise self._no_database(name)
        tables = self.tables(name)
        if tables and not cascade:
            raise InvalidError(
                f"database {name!r} holds {len(tables)} tables ({', '.join(tables[:5])}): drop them first, or pass cascade=True"
            )
        views = view_names(self._store, name)
        if views and not cascade:
            raise InvalidError(
                f"database {name!r} holds {len(views)} views ({', '.join(views[:5])}): drop them first, or pass cascade=True"
            )
        inside = self._store.list_folder(database_folder(name))
        others = [*inside.folders, *(info.path for info in inside.files)]
        if others and not cascade:
            raise InvalidError(
                f"database {name!r} holds no tables, but {self.location}/{others[0]}: remove it first, or pass cascade=True"
            )
        for view in views:
            remove_view(self._store, name, view)
        # Of a database that is linked from elsewhere only the link is removed.
        linked = self._store.is_linked(database_folder(name))
        for table in () if linked else tables:
            self.drop_table(f"{name}.{table}")
        self._store.delete_folder(database_folder(name))
        for table in tables if linked else ():
            publish(TableDropped(self._home(TablePaths.of(name, table)).table_name, MAIN_BRANCH))

    # ------------------------------------------------------------------ tables

    def tables(self, database: str) -> list[str]:
        """The names of a database's tables."""
        if database not in self.databases():
            raise self._no_database(database)
        folders = self._store.list_folder(database_folder(database)).folders
        names = [folder.rsplit("/", 1)[-1] for folder in folders]
        return sorted(
            name for name in names if _is_name(name) and schema_ids(self._home(TablePaths.of(database, name)))
        )

    def table(self, name: str) -> Table:
        """The table of that name."""
        home = self._home(TablePaths.of(*_split(name)))
        if not schema_ids(home):
            raise self._no_table(name)
        return _opened(name, home)

    def table_home(self, name: str) -> TableHome:
        """The place of the table of that name, whether there is one or not."""
        return self._home(TablePaths.of(*_split(name)))

    def table_exists(self, name: str) -> bool:
        """Whether there is a table of that name."""
        return bool(schema_ids(self._home(TablePaths.of(*_split(name)))))

    def create_table(
        self,
        name: str,
        columns: Columns | Any,
        *,
        primary_key: Sequence[str] | None = (),
        partitioned_by: Sequence[str] | None = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create a table. `columns` is an Arrow schema, a list of (name, type) pairs such as ("id", "BIGINT NOT NULL"), or a
        frame (Arrow, pandas, polars), of which only the columns are used: `write` writes its rows.
        """
        database, _ = _split(name)
        home = self._home(TablePaths.of(*_split(name)))
        schema = self.planned_schema(columns, primary_key, partitioned_by, options or {}, comment)
        if database not in self.databases():
            raise self._no_database(database)
        self._check_no_view(name)
        if schema_ids(home):
            if if_not_exists:
                return _opened(name, home)
            raise AlreadyExistsError(f"table {name!r} exists in {self.location}")
        try:
            make_table(home, schema)
        except AlreadyExistsError:
            if not if_not_exists:
                raise
            return _opened(name, home)
        from lakelet.table.write.closed_format import warn_of_closed_format  # noqa: PLC0415 - as below.

        warn_of_closed_format(home.where(home.paths.root), schema)
        return _opened(name, home)

    def replace_table(
        self,
        name: str,
        columns: Columns,
        data: Any = None,
        *,
        primary_key: Sequence[str] | None = (),
        partitioned_by: Sequence[str] | None = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
    ) -> Table:
        """Create a table, or replace an existing one, with the rows of `data`, which may come from the replaced table.

        Where the keys and buckets stay the same the history is kept: one commit replaces all rows, and earlier versions can
        be read. Otherwise the old table is dropped once the new one is complete.
        """
        home = self._home(TablePaths.of(*_split(name)))

        def create(called: str) -> Table:
            return self.create_table(
                called,
                columns,
                primary_key=primary_key,
                partitioned_by=partitioned_by,
                options=options,
                comment=comment,
            )

        if not schema_ids(home):
            made = create(name)
            if data is not None:
                made.write(data)
            return made
        from lakelet.table.write.closed_format import warn_of_closed_format  # noqa: PLC0415 - as below.
        from lakelet.table.write.replacement import replace_rows  # noqa: PLC0415

        old = latest_schema(home)
        # The spelling of partition folders stays as it is.
        named = old.options.get(PARTITION_LEGACY_NAME.name, PARTITION_LEGACY_NAME.default_text)
        kept = {PARTITION_LEGACY_NAME.name: named} if old.partition_keys else {}
        target = self.planned_schema(columns, primary_key, partitioned_by, {**kept, **(options or {})}, comment)
        if PARTITION_LEGACY_NAME.name not in {*old.options, *(options or {})}:
            unsaid = {key: text for key, text in target.options.items() if key != PARTITION_LEGACY_NAME.name}
            target = replace(target, options=unsaid)
        new = replaced_schema(old, target)
        if new is None:
            made = exchange(self, name, create, data, self._ids.uuid()[:8])
        else:
            replace_rows(home, old, new, arrow_schema(new.fields).empty_table() if data is None else data)
            warn_of_closed_format(home.where(home.paths.root), new, old)
            made = _opened(name, home)
        publish(TableReplaced(home.table_name, MAIN_BRANCH))
        return made

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a table and all its files. Symbolic links are removed, and their targets stay: a table whose folder is linked
        from elsewhere is only removed from the warehouse.
        """
        home = self._home(TablePaths.of(*_split(name)))
        if not schema_ids(home):
            if if_exists:
                return
            raise self._no_table(name)
        from lakelet.table.versions.republish import withdraw  # noqa: PLC0415 - as below.

        withdraw(home)
        remove_table(home)

    def rename_table(self, name: str, new_name: str) -> Table:
        """Rename a table, possibly into another database."""
        old, new = TablePaths.of(*_split(name)), TablePaths.of(*_split(new_name))
        if not schema_ids(self._home(old)):
            raise self._no_table(name)
        if _split(new_name)[0] not in self.databases():
            raise self._no_database(_split(new_name)[0])
        if schema_ids(self._home(new)):
            raise AlreadyExistsError(f"table {new_name!r} exists in {self.location}")
        self._check_no_view(new_name)
        found = in_the_way(self._store, old, new)
        if found is not None:
            raise AlreadyExistsError(f"{self.location}/{found} is in the way of {new_name!r}: remove {new.root} first")
        home, before = self._home(new), self._home(old).table_name
        from lakelet.table.versions.republish import republish, withdraw  # noqa: PLC0415 - as below.

        withdraw(self._home(old))
        with uncertain(before, MAIN_BRANCH, "rename"), uncertain(home.table_name, MAIN_BRANCH, "rename"):
            move_table(self._store, old, new)
        publish(TableRenamed(before, MAIN_BRANCH, home.table_name))
        republish(home)
        return _opened(new_name, home)

    def now_ms(self) -> int:
        """The time of the lake's clock, in milliseconds since 1970."""
        return self._clock.now_ms()

    # ------------------------------------------------------------------ views

    def views(self, database: str) -> list[str]:
        """The names of a database's views, which `CREATE VIEW` makes."""
        if database not in self.databases():
            raise self._no_database(database)
        return view_names(self._store, database)

    def view(self, name: str) -> View:
        """The query of a view, and the database in which its names are resolved."""
        return read_view(self._store, *_split(name))

    def keep_view(self, name: str, view: View, *, replace: bool = False) -> None:
        """Store a view whose query has been checked; AlreadyExistsError where there is a table or, unless it is to be
        replaced, a view of that name.
        """
        database, called = _split(name)
        if database not in self.databases():
            raise self._no_database(database)
        if schema_ids(self._home(TablePaths.of(database, called))):
            raise AlreadyExistsError(f"{name!r} is a table in {self.location}")
        if not write_view(self._store, database, called, view, replace=replace):
            raise AlreadyExistsError(f"view {name!r} exists in {self.location}")

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a view."""
        database, called = _split(name)
        if called not in view_names(self._store, database):
            if if_exists:
                return
            raise NotFoundError(f"view {name!r} is not in {self.location}")
        remove_view(self._store, database, called)

    # ------------------------------------------------------------------ inside

    def planned_schema(
        self,
        columns: Columns,
        primary_key: Sequence[str] | None,
        partitioned_by: Sequence[str] | None,
        options: Mapping[str, object],
        comment: str | None,
    ) -> TableSchema:
        """The schema of a table that is created with these arguments, checked; nothing is created."""
        texts = option_texts(options)
        check_options(texts)
        check_callbacks(texts, self._callback_modules)
        check_rest_settings(texts, texts, self._rest_catalogs)
        if PATH.name in texts:
            raise InvalidError(
                f"option {PATH.name!r}: the location of a table follows from its name, found {texts[PATH.name]!r}"
            )
        fields = given_fields(columns)
        partitioned_by = moved_keys(texts, PARTITION, given_names(partitioned_by))
        primary_key = moved_keys(texts, PRIMARY_KEY, given_names(primary_key))
        for field in fields:
            if field.default is not None:
                parse_literal(field.default, field.type, f"default of column {field.name!r}")
        if PARTITION_LEGACY_NAME.name not in texts and named_by_days(fields, partitioned_by):
            # Stored, so that every engine spells the folders alike.
            texts[PARTITION_LEGACY_NAME.name] = "false"
        schema = new_schema(
            fields,
            partition_keys=partitioned_by,
            primary_keys=primary_key,
            options=texts,
            comment=comment,
            time_ms=self._clock.now_ms(),
        )
        from lakelet.lsm.engine.table_engine import check_rule_columns  # noqa: PLC0415 - as below.
        from lakelet.table.usable import check_usable  # noqa: PLC0415 - as below.
        from lakelet.table.write.writable import check_new_schema  # noqa: PLC0415

        check_usable(schema)
        check_new_schema(schema)
        check_rule_columns(schema)
        return schema

    def _check_no_view(self, name: str) -> None:
        database, called = _split(name)
        if called in view_names(self._store, database):
            raise AlreadyExistsError(f"{name!r} is a view in {self.location}: drop it first, or take another name")

    def _home(self, paths: TablePaths) -> TableHome:
        home = TableHome(self._store, paths, self._clock, self._ids, self._callback_modules, metadata=self._metadata)
        return replace(home, rest_catalogs=self._rest_catalogs)

    def _no_database(self, name: str) -> NotFoundError:
        return NotFoundError(
            f"database {name!r} is not in {self.location}; there are {', '.join(self.databases()) or 'none'}"
        )

    def _no_table(self, name: str) -> NotFoundError:
        return NotFoundError(f"table {name!r} is not in {self.location}")


def _opened(name: str, home: TableHome) -> Table:
    from lakelet.table.table import Table  # noqa: PLC0415 - it loads all that writes; who only asks does without.

    return Table(name, home)


def _split(name: str) -> tuple[str, str]:
    parts = check_text(name, "table name").split(".")
    if len(parts) != 2:
        raise InvalidError(f"table name {name!r}: expected database.table")
    return check_name(parts[0], "database"), check_name(parts[1], "table")


def _is_name(name: str) -> bool:
    try:
        check_name(name, "table")
    except InvalidError:
        return False
    return True
