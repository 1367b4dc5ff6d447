"""Random tables of every layout for the SQL oracle, and plain DuckDB tables with the same rows beside them."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from lakelet import Lake, Table
from lakelet.errors import InvalidError
from lakelet.sql.engine.duck_types import duck_type

_DAY = dt.date(2024, 1, 1)
_MOMENT = dt.datetime(2024, 1, 1, 12)
MOMENTS = [_MOMENT, _MOMENT + dt.timedelta(microseconds=1), _MOMENT + dt.timedelta(days=1), dt.datetime(2023, 6, 1)]
TEXTS = ["", "a", "ab", "abc", "b", "B", "é", "it's", "100%", "a_b", "\U0001d11e", "zz"]
FLOATS = [0.0, -0.0, 1.5, -1.5, 0.1, math.nan, math.inf, -math.inf, 2.0, 7.0]

# The columns of a table: the type, and the values that rows have.
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "id": ("BIGINT NOT NULL", [*range(12), *range(100, 110)]),
    "p": ("STRING NOT NULL", ["x", "y", "z"]),
    "i": ("INT", [-2, -1, 0, 1, 2, 3, 4, 5, 7, 2**31 - 1]),
    "n": ("DECIMAL(10, 2)", [Decimal(text) for text in ("0.00", "1.00", "1.01", "-1.01", "2.50", "99999999.99")]),
    "d": ("DOUBLE", FLOATS),
    "f": ("FLOAT", [0.0, -0.0, 1.5, -1.5, 0.25, math.nan, math.inf, 2.0]),
    "s": ("STRING", TEXTS),
    "day": ("DATE", [_DAY + dt.timedelta(days=shift) for shift in (-400, -1, 0, 1, 2)]),
    "ts": ("TIMESTAMP(6)", MOMENTS),
    "tz": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]),
    "flag": ("BOOLEAN", [True, False]),
    "l": ("ARRAY<INT>", [[], [1], [1, 2], [3, None], [0, 1, 2]]),
}
NULLABLE = [name for name, (kind, _) in COLUMNS.items() if not kind.endswith("NOT NULL")]


@dataclass(frozen=True, slots=True)
class Source:
    """What a query may select from: how the lake calls it, how DuckDB does, and the DuckDB type of each column."""

    ours: str
    theirs: str
    columns: dict[str, str]
    snapshot: bool = False


@dataclass(slots=True)
class RandomTable:
    """A table `name` of the lake, filled and changed at random; `steps` says how, for whoever looks into a failure."""

    lake: Lake
    rng: random.Random
    name: str
    keyed: bool = False
    table: Table = field(init=False)
    steps: list[str] = field(init=False, default_factory=list)

    def build(self) -> None:
        """Makes the table and does a few things to it."""
        self._create()
        self._write()
        self.go_on()

    def go_on(self) -> None:
        """Does a few more things to the table."""
        steps = [self._write, self._delete, self._compact, self._evolve, self._tag, self._roll_back]
        for _ in range(self.rng.randint(0, 5)):
            self.rng.choices(steps, weights=[5, 2, 2, 3, 1, 1])[0]()

    def sources(self, judge: duckdb.DuckDBPyConnection) -> list[Source]:
        """The table and its versions; DuckDB gets a plain table for each."""
        found = [self._plain(judge, self.name, self.table.scan().to_arrow(), None)]
        for snapshot in self.rng.sample(self.table.snapshots(), min(2, len(self.table.snapshots()))):
            found.append(self._version(judge, snapshot.id, str(snapshot.id)))
        for tag in self.table.tag_names():
            found.append(self._version(judge, tag, f"'{tag}'"))
        return found

    # ------------------------------------------------------------------ steps

    def _create(self) -> None:
        rng = self.rng
        formats = ["parquet", "parquet", "parquet", "orc", "avro", *(["sst", "sst"] if self.keyed else [])]
        options: dict[str, str] = {"file.format": rng.choice(formats)}
        partitioned = rng.choice([[], [], ["p"], ["p", "day"] if not self.keyed else ["p"]])
        key: list[str] = []
        if self.keyed:
            key = ["id", "p"] if partitioned else ["id"]
            options["bucket"] = rng.choice(["1", "2", "-1"])
            if rng.random() < 0.3:
                options |= {"deletion-vectors.enabled": "true", "file.format": "parquet"}
            elif rng.random() < 0.4:
                options |= {
                    "sequence.field": "ts",
                    "sequence.field.sort-order": rng.choice(["ascending", "descending"]),
                }
            if rng.random() < 0.3:
                options["ignore-delete"] = "true"
            options |= rng.choice([{}, {"write-only": "true"}, {"write-only": "true", "write-buffer-size": "300 b"}])
            options |= rng.choice([{}, {}, {"data-file.thin-mode": "true"}])
        else:
            if rng.random() < 0.5:
                options |= {"deletion-vectors.enabled": "true", "file.format": "parquet"}
            if rng.random() < 0.3:
                options |= {"bucket": "2", "bucket-key": "id"}
        if rng.random() < 0.4:
            options["target-file-size"] = "1 b"
        if rng.random() < 0.3:
            options["metadata.stats-mode"] = rng.choice(["none", "counts", "full", "truncate(1)"])
        columns = [(name, kind) for name, (kind, _) in COLUMNS.items()]
        self.table = self.lake.create_table(
            self.name, columns, primary_key=key, partitioned_by=partitioned, options=options
        )
        self.steps.append(f"create key={key} partitions={partitioned} {options}")

    def _write(self) -> None:
        rows = [self._row() for _ in range(self.rng.choice([1, 3, 8, 15]))]
        schema = self.table.scan().arrow_schema
        self.table.write(pa.Table.from_pylist(rows, schema))
        self.steps.append(f"write {rows}")

    def _row(self) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for one in self.table.schema.fields:
            values = COLUMNS[one.name.partition("_")[0]][1]
            missing = one.type.nullable and self.rng.random() < 0.2
            row[one.name] = None if missing else self.rng.choice(values)
        return row

    def _delete(self) -> None:
        condition = self.rng.choice(["id < 3", "p = 'x'", "id % 2 = 0", "id > 8 AND p <> 'y'"])
        try:
            self.table.delete(where=condition)
        except InvalidError as error:
            self.steps.append(f"delete refused: {error}")
            return
        self.steps.append(f"delete {condition}")

    def _compact(self) -> None:
        full = self.rng.random() < 0.5
        self.table.compact(full=full)
        self.steps.append(f"compact full={full}")

    def _tag(self) -> None:
        name = f"tag_{len(self.steps)}"
        self.table.tags.create(name, self.rng.choice(self.table.snapshots()).id)
        self.steps.append(f"tag {name}")

    def _roll_back(self) -> None:
        """Ids of snapshots are given away again."""
        to = self.rng.choice(self.table.snapshots()).id
        self.table.rollback(to)
        self.table = self.lake.table(self.name)
        self.steps.append(f"roll back to {to}")

    def _evolve(self) -> None:
        """Changes the schema: a new type, a column away or new, or two columns that swap their names."""
        schema, rng = self.table.schema, self.rng
        kept = {*schema.partition_keys, schema.options.get("sequence.field")}
        free = [name for name in NULLABLE if name in schema.names and name not in kept]
        wider = {"i": "BIGINT", "f": "DOUBLE", "n": "DECIMAL(14, 2)", "l": None}
        what = rng.choice(["widen", "drop", "again", "swap", "move"])
        if what == "widen":
            for name in [name for name in free if wider.get(name)]:
                try:
                    self.table.change_type(name, str(wider[name]))
                except InvalidError:
                    continue
        elif what == "drop" and len(free) > 6:
            self.table.drop_column(rng.choice(free))
        elif what == "again" and free:
            name = rng.choice(free)
            self.table.drop_column(name)
            self.table.add_column(name, COLUMNS[name][0])
        elif what == "swap" and free:
            # The old files have the new column's name for another column.
            name = rng.choice(free)
            old = f"{name}_{len(self.steps)}"
            self.table.rename_column(name, old)
            self.table.add_column(name, COLUMNS[name][0])
        elif what == "move":
            self.table.move_column(rng.choice(schema.names), first=True)
        self.table = self.lake.table(self.name)
        self.steps.append(f"evolve {what}: {[f'{one.name} {one.type}' for one in self.table.schema.fields]}")

    # ------------------------------------------------------------------ the same rows in DuckDB

    def _version(self, judge: duckdb.DuckDBPyConnection, version: int | str, text: str) -> Source:
        spelled = self.rng.choice(["FOR VERSION AS OF {}", "VERSION AS OF {}", "AT (VERSION => {})"])
        rows = self.table.scan(version=version).to_arrow()
        return self._plain(judge, f"{self.name}_{version}", rows, f"{self.name} {spelled.format(text)}", version)

    def _plain(
        self,
        judge: duckdb.DuckDBPyConnection,
        name: str,
        rows: pa.Table,
        ours: str | None,
        version: int | str | None = None,
    ) -> Source:
        schema = self.table.scan(version=version).schema
        types = {one.name: duck_type(one.type) for one in schema.fields}
        columns = ", ".join(f'CAST("{column}" AS {kind}) AS "{column}"' for column, kind in types.items())
        judge.register("rows_of_table", rows)
        judge.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {columns} FROM rows_of_table")
        judge.unregister("rows_of_table")
        return Source(ours or name, name, types, ours is not None)
