"""Random inserts, overwrites, row changes and maintenance, on main and on a branch, over columns and partition specs that change:
every version of an Iceberg table holds its rows, whoever reads it.

The model is `iceberg_model`. After each step the heads of all branches are read by our scan, by SQL and by pyiceberg, whole and
by a condition; at the end every snapshot that there is. `LAKELET_CASES` multiplies the number of runs.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, VoidTransform

import lakelet
from lakelet.errors import ConflictError, InvalidError
from lakelet.iceberg.maintenance.data_file_rewrite import rewrite_data_files
from lakelet.iceberg.maintenance.expiry import expire_snapshots
from lakelet.iceberg.maintenance.manifest_rewrite import rewrite_manifests
from lakelet.iceberg.scan import scan_of
from tests.conformance.iceberg_tables import insert, rows_of
from tests.property.iceberg_model import (
    ID,
    PROMOTIONS,
    TRANSFORMS,
    VALUES,
    Column,
    Condition,
    Row,
    Version,
    conditions,
    literal,
    partition_of,
    shown,
    sql_term,
    sql_type,
)
from tests.tiers.examples import examples

TYPES = ["int", "string", "date", "timestamp", "float", "decimal(9, 2)", "binary"]
BRANCHES = st.sampled_from(["main", "main", "dev"])
NUMBERS = st.integers(0, 99)
T = "iceberg.d.t"


class IcebergTables(RuleBasedStateMachine):
    """A table and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="lakelet-iceberg-model-")
        self.lake = lakelet.connect(str(Path(self.folder) / "lake"))
        self.catalog = self.lake.catalogs.open("iceberg")
        self.ids = 0
        self.heads: dict[str, Version] = {}
        self.snapshots: dict[int, Version] = {}
        self.asked: Condition | None = None

    @initialize(version=st.sampled_from(["1", "2", "2"]))
    def create(self, version: str) -> None:
        self.catalog.create_namespace("d")
        columns = (Column(ID, "id", "long"), *(Column(n, f"c{n}", type_) for n, type_ in enumerate(TYPES, 2)))
        said = ", ".join(f"{one.name} {sql_type(one.type)}{' NOT NULL' if one.id == ID else ''}" for one in columns)
        # Manifests are merged from the second on, so that they are.
        settled = f"'format-version' = '{version}', 'commit.manifest.min-count-to-merge' = '2'"
        self.lake.sql(f"CREATE TABLE {T} ({said}) USING iceberg TBLPROPERTIES ({settled})")
        self.heads = {"main": Version(columns)}
        self.used = {column.id for column in columns}

    @property
    def table(self) -> Table:
        return self.catalog.table("d.t").library

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.heads["main"].columns

    # ---------------------------------------------------------------- inserts

    def new_rows(self, data: st.DataObject) -> list[Row]:
        rows = []
        for _ in range(data.draw(st.integers(1, 5), label="rows")):
            self.ids += 1
            row = {ID: self.ids}
            for column in self.columns[1:]:
                row[column.id] = shown(data.draw(st.sampled_from(VALUES[column.type])), column.type)
            rows.append(row)
        return rows

    def arrow(self, rows: list[Row]) -> pa.Table:
        schema = schema_to_pyarrow(self.table.schema(), include_field_ids=False)
        return pa.Table.from_pylist([{one.name: row.get(one.id) for one in self.columns} for row in rows], schema)

    def made(self, branch: str, version: Version, snapshot_id: int) -> None:
        """Notes a new head."""
        self.heads[branch] = version
        self.snapshots[snapshot_id] = version
        head = self.table.metadata.snapshot_by_name(branch)
        assert head is not None
        assert head.snapshot_id == snapshot_id

    @rule(branch=BRANCHES, data=st.data(), tasks=st.integers(1, 2))
    def append(self, branch: str, data: st.DataObject, tasks: int) -> None:
        if branch not in self.heads:
            return
        parts = [self.new_rows(data) for _ in range(tasks)]
        done = insert(self.catalog, "d.t", *map(self.arrow, parts), branch=branch)
        assert done is not None
        assert done.added_rows == sum(map(len, parts))
        self.made(branch, self.heads[branch].added(row for part in parts for row in part), done.id)

    def older_files(self, branch: str) -> bool:
        """Whether files of another spec than the table's are part of a branch."""
        table = self.table
        head = table.metadata.snapshot_by_name(branch)
        if head is None:
            return False
        files = table.scan(snapshot_id=head.snapshot_id).plan_files()
        return any(task.file.spec_id != table.spec().spec_id for task in files)

    def replaced(
        self, branch: str, rows: list[Row], kept: list[Row], mode: str, partition: dict[str, Any] | None = None
    ) -> None:
        """An overwrite after which `kept` and `rows` are there. Where files of an older spec are in the way, and only there, it
        may be refused; then nothing has changed."""
        before = self.table.metadata_location
        try:
            done = insert(self.catalog, "d.t", self.arrow(rows), mode=mode, partition=partition, branch=branch)
        except InvalidError:
            assert self.older_files(branch)
            assert self.table.metadata_location == before
            return
        assert done is not None
        self.made(branch, Version(self.columns, (*kept, *rows)), done.id)

    @rule(branch=BRANCHES, data=st.data())
    def overwrite_partitions(self, branch: str, data: st.DataObject) -> None:
        if branch not in self.heads:
            return
        rows = self.new_rows(data)
        schema, spec = self.table.schema(), self.table.spec()
        touched = {partition_of(row, spec, schema) for row in rows}
        kept = [row for row in self.heads[branch].rows if partition_of(row, spec, schema) not in touched]
        self.replaced(branch, rows, kept, "overwrite_partitions")

    @rule(branch=BRANCHES, data=st.data())
    def overwrite(self, branch: str, data: st.DataObject) -> None:
        if branch not in self.heads:
            return
        rows = self.new_rows(data)
        done = insert(self.catalog, "d.t", self.arrow(rows), mode="overwrite", branch=branch)
        assert done is not None
        self.made(branch, Version(self.columns, tuple(rows)), done.id)

    @rule(branch=BRANCHES, data=st.data(), pick=NUMBERS)
    def overwrite_one_partition(self, branch: str, data: st.DataObject, pick: int) -> None:
        spec = self.table.spec()
        identities = [one.source_id for one in spec.fields if isinstance(one.transform, IdentityTransform)]
        named = [column for column in self.columns[1:] if column.id in identities]
        if branch not in self.heads or not named:
            return
        column = named[pick % len(named)]
        value = data.draw(st.sampled_from([one for one in VALUES[column.type] if one is not None]), label="value")
        rows: list[Row] = [{**row, column.id: value} for row in self.new_rows(data)]
        kept = [row for row in self.heads[branch].rows if row.get(column.id) != value]
        self.replaced(branch, rows, kept, "overwrite", {column.name: value})

    # ---------------------------------------------------------------- row changes

    def changed(self, branch: str, words: str, rows: list[Row]) -> None:
        """A statement after which a branch has these rows."""
        name = T if branch == "main" else f"{T}$branch_{branch}"
        (done,) = self.lake.sql(words.replace("$t", name)).to_arrow().to_pylist()
        if done["snapshot_id"] is None:
            assert Version(self.columns, tuple(rows)).shown() == self.heads[branch].shown()
        else:
            self.made(branch, Version(self.columns, tuple(rows)), done["snapshot_id"])

    @rule(branch=BRANCHES, data=st.data())
    def delete(self, branch: str, data: st.DataObject) -> None:
        if branch not in self.heads:
            return
        where = data.draw(conditions(self.columns))
        rows = [row for row in self.heads[branch].rows if not where.holds(row)]
        self.changed(branch, f"DELETE FROM $t WHERE {where.sql}", rows)

    @rule(branch=BRANCHES, data=st.data())
    def update(self, branch: str, data: st.DataObject) -> None:
        plain = [one for one in self.columns[1:] if one.type in ("int", "long", "string", "date", "timestamp")]
        if branch not in self.heads or not plain:
            return
        where = data.draw(conditions(self.columns))
        column = data.draw(st.sampled_from(plain))
        value = data.draw(st.sampled_from([one for one in VALUES[column.type] if one is not None]))
        rows = [{**row, column.id: value} if where.holds(row) else row for row in self.heads[branch].rows]
        self.changed(branch, f"UPDATE $t SET `{column.name}` = {literal(value)} WHERE {where.sql}", rows)

    # ---------------------------------------------------------------- columns and partitions

    def changed_columns(self, words: str, columns: tuple[Column, ...]) -> None:
        """All branches show the table's schema; snapshots keep theirs."""
        self.lake.sql(f"ALTER TABLE {T} {words}")
        self.heads = {name: Version(columns, head.rows) for name, head in self.heads.items()}

    @rule(type_=st.sampled_from(TYPES), name=st.sampled_from(["c2", "c3", "new", "Über x", "dot.ted"]))
    def add_column(self, type_: str, name: str) -> None:
        if name in [column.name for column in self.columns]:
            return
        self.lake.sql(f"ALTER TABLE {T} ADD COLUMN `{name}` {sql_type(type_)}")
        id_ = next(field.field_id for field in self.table.schema().fields if field.name == name)
        assert id_ not in self.used
        self.used.add(id_)
        columns = (*self.columns, Column(id_, name, type_))
        self.heads = {branch: Version(columns, head.rows) for branch, head in self.heads.items()}

    @rule(pick=NUMBERS)
    def drop_column(self, pick: int) -> None:
        sources = {field.source_id for field in self.table.spec().fields}
        free = [column for column in self.columns[1:] if column.id not in sources]
        if free:
            gone = free[pick % len(free)]
            self.changed_columns(f"DROP COLUMN `{gone.name}`", tuple(one for one in self.columns if one != gone))

    @rule(pick=NUMBERS, name=st.sampled_from(["c2", "c4", "renamed", "Ünïcode"]))
    def rename_column(self, pick: int, name: str) -> None:
        if name in [column.name for column in self.columns] or len(self.columns) == 1:
            return
        old = self.columns[1:][pick % (len(self.columns) - 1)]
        columns = tuple(Column(one.id, name, one.type) if one == old else one for one in self.columns)
        self.changed_columns(f"RENAME COLUMN `{old.name}` TO `{name}`", columns)

    @rule(pick=NUMBERS)
    def promote_column(self, pick: int) -> None:
        narrow = [column for column in self.columns if column.type in PROMOTIONS]
        if not narrow:
            return
        old = narrow[pick % len(narrow)]
        wide = PROMOTIONS[old.type]
        columns = tuple(Column(one.id, one.name, wide) if one == old else one for one in self.columns)
        self.changed_columns(f"ALTER COLUMN `{old.name}` TYPE {sql_type(wide)}", columns)

    @rule(data=st.data(), fields=st.integers(0, 2))
    def repartition(self, data: st.DataObject, fields: int) -> None:
        """Another spec; three and more of them in most runs."""
        possible = [(column, one) for column in self.columns for one in TRANSFORMS[column.type]]
        chosen = data.draw(st.lists(st.sampled_from(possible), max_size=fields, unique_by=lambda pair: pair[0].id))
        for field in self.table.spec().fields:
            if not isinstance(field.transform, VoidTransform):
                self.lake.sql(f"ALTER TABLE {T} DROP PARTITION FIELD `{field.name}`")
        for column, transform in chosen:
            try:
                self.lake.sql(f"ALTER TABLE {T} ADD PARTITION FIELD {sql_term(column.name, transform)}")
            except InvalidError as error:
                # The name of another field, or of a column, would come twice.
                if "name" not in str(error):
                    raise

    # ---------------------------------------------------------------- branches and maintenance

    @rule()
    @precondition(lambda self: "dev" not in self.heads)
    def create_branch(self) -> None:
        if self.table.current_snapshot() is not None:
            self.lake.sql(f"ALTER TABLE {T} CREATE BRANCH dev")
            self.heads["dev"] = self.heads["main"]

    @rule()
    @precondition(lambda self: "dev" in self.heads)
    def fast_forward(self) -> None:
        table = self.table
        main, line = table.current_snapshot(), table.metadata.snapshot_by_name("dev")
        assert main is not None
        while line is not None and line.snapshot_id != main.snapshot_id:
            line = table.metadata.snapshot_by_id(line.parent_snapshot_id) if line.parent_snapshot_id else None
        try:
            self.lake.sql(f"CALL sys.iceberg_fast_forward('{T}', 'main', 'dev')")
        except ConflictError:
            assert line is None
            return
        assert line is not None
        self.heads["main"] = self.heads["dev"]

    @rule(branch=BRANCHES, least=st.integers(1, 3))
    def rewrite_files(self, branch: str, least: int) -> None:
        if branch not in self.heads:
            return
        done = rewrite_data_files(self.catalog.table("d.t"), min_input_files=least, branch=branch)
        if done.snapshot is not None:
            self.made(branch, Version(self.columns, self.heads[branch].rows), done.snapshot.id)

    @rule()
    def rewrite_the_manifests(self) -> None:
        done = rewrite_manifests(self.catalog.table("d.t"))
        if done.snapshot is not None:
            self.made("main", Version(self.columns, self.heads["main"].rows), done.snapshot.id)

    @rule(keep=st.integers(1, 3))
    def expire(self, keep: int) -> None:
        expire_snapshots(self.catalog.table("d.t"), older_than_ms=2**62, retain_last=keep)
        left = {snapshot.snapshot_id for snapshot in self.table.metadata.snapshots}
        assert left <= set(self.snapshots)
        self.snapshots = {id_: version for id_, version in self.snapshots.items() if id_ in left}

    # ---------------------------------------------------------------- what must hold

    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        """From now on heads are read by another condition."""
        self.asked = data.draw(conditions(self.columns))

    @invariant()
    def heads_hold_their_rows(self) -> None:
        if self.asked is not None and self.asked.column not in self.columns:
            self.asked = None
        for branch, head in self.heads.items():
            name = T if branch == "main" else f"{T}$branch_{branch}"
            if branch == "main":
                assert rows_of(self.table.scan().to_arrow()) == head.shown()
            assert rows_of(self.scanned(ref=branch)) == head.shown(), branch
            assert rows_of(self.lake.sql(f"SELECT * FROM {name}").to_arrow()) == head.shown(), branch
            if self.asked is not None:
                expected = Version(self.columns, tuple(row for row in head.rows if self.asked.holds(row))).shown()
                said = self.lake.sql(f"SELECT * FROM {name} WHERE {self.asked.sql}").to_arrow()
                assert rows_of(said) == expected, (branch, self.asked)
                # A scan leaves out files; those it reads, it reads whole.
                assert expected <= rows_of(self.scanned(ref=branch, where=self.asked.sql)) <= head.shown()

    def scanned(self, **version: Any) -> pa.Table:
        scan = scan_of(self.catalog.table("d.t"), **version)
        return pa.Table.from_batches([batch for file in scan.files for batch in scan.read(file)], scan.schema)

    def teardown(self) -> None:
        try:
            for id_, version in self.snapshots.items():
                assert rows_of(self.table.scan(snapshot_id=id_).to_arrow()) == version.shown(), id_
                assert rows_of(self.scanned(snapshot_id=id_)) == version.shown(), id_
                said = self.lake.sql(f"SELECT * FROM {T} VERSION AS OF {id_}").to_arrow()
                assert rows_of(said) == version.shown(), id_
        finally:
            shutil.rmtree(self.folder)


IcebergTables.TestCase.settings = settings(
    max_examples=examples(8),
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
TestIcebergTables = IcebergTables.TestCase
