"""Random tables under random operations by random writers: Lakelet reads what Java reads, and no row is lost.

LAKELET_CASES multiplies the number of tables; a failure names its seed, and LAKELET_SEED runs the seeds from there on.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from lakelet.model.types import Row
from tests.conformance import random_tables
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, Rows, Warehouse, json_type, same
from tests.tiers.examples import FIRST_SEED, examples

CASES = examples(8)
STEPS = 12


class Run:
    """One table and what is known of it: the ids of its rows with their partition values."""

    def __init__(self, warehouse: Warehouse, seed: int) -> None:
        self.warehouse = warehouse
        self.source = random.Random(seed)
        self.name = f"t{seed}"
        self.next_id = 0
        self.rows: dict[int, Any] = {}
        self.log: list[str] = []
        self.partitioned = self.source.random() < 0.6
        self.create()

    def create(self) -> None:
        source = self.source
        columns = [
            ("id", "INT"),
            *((f"c{number}", random_tables.random_type(source)) for number in range(source.randint(1, 5))),
        ]
        options = {"file.format": source.choice(["parquet", "orc", "avro"]), "write-only": "true"}
        if self.partitioned:
            columns.insert(source.randint(0, len(columns)), ("p", source.choice(random_tables.PARTITIONS)))
        if source.random() < 0.4:
            columns.append(("k", source.choice(random_tables.BUCKET_KEYS)))
            options |= {"bucket": str(source.randint(1, 4)), "bucket-key": "k"}
        if source.random() < 0.5:
            options["manifest.merge-min-count"] = "3"
        creator = source.choice([LAKELET, JAVA])
        self.log.append(f"{creator} creates {columns} {options}")
        partitions = ["p"] if self.partitioned else []
        self.warehouse.create(creator, self.name, columns, partitioned_by=partitions, options=options)

    @property
    def fields(self) -> Any:
        return self.warehouse.table(self.name).schema.fields

    def some_rows(self) -> Rows:
        count = self.source.choice([1, 2, 5, 20])
        made = [random_tables.random_row(self.source, self.fields, self.next_id + number) for number in range(count)]
        self.next_id += count
        return made

    def take(self, rows: Rows) -> None:
        self.rows.update({row["id"]: row.get("p") for row in rows})

    # ------------------------------------------------------------------ operations

    def append(self) -> None:
        writer = self.source.choice([LAKELET, LAKELET, JAVA])
        rows = self.some_rows()
        self.log.append(f"{writer} appends {len(rows)}")
        self.warehouse.write(writer, self.name, rows)
        self.take(rows)

    def overwrite(self) -> None:
        writer, rows = self.source.choice([LAKELET, JAVA]), self.some_rows()
        whole = not self.partitioned or self.source.random() < 0.2
        self.log.append(f"{writer} overwrites {'all' if whole else 'partitions'} with {len(rows)}")
        self.warehouse.write(writer, self.name, rows, overwrite={} if whole else True)
        replaced = [row.get("p") for row in rows]
        self.rows = {} if whole else {id_: p for id_, p in self.rows.items() if p not in replaced}
        self.take(rows)

    def delete(self) -> None:
        divisor = self.source.randint(2, 5)
        self.log.append(f"lakelet deletes id % {divisor} = 0")
        self.warehouse.table(self.name).delete(where=f"id % {divisor} = 0")
        self.rows = {id_: p for id_, p in self.rows.items() if id_ % divisor}

    def compact(self) -> None:
        if not self.rows:
            return  # Java's coordinator ends with an exception where there is no file.
        self.log.append("java compacts")
        self.warehouse.java.compact(self.warehouse.folder, f"db.{self.name}")

    def change_format(self) -> None:
        file_format = self.source.choice(["parquet", "orc", "avro"])
        self.log.append(f"file.format {file_format}")
        self.alter(
            {"op": "option", "key": "file.format", "value": file_format},
            lambda table: table.set_options({"file.format": file_format}),
        )

    def evolve(self) -> None:
        source = self.source
        free = [field for field in self.fields if field.name[0] == "c"]
        choice = source.choice(["add", "drop", "rename", "widen", "nested", "move"])
        name = f"c{self.next_id}_{len(self.log)}"
        text = random_tables.random_type(source, 1)
        if choice == "add" or not free:
            self.alter({"op": "add", "name": name, "type": json_type(text)}, lambda table: table.add_column(name, text))
            return
        field = source.choice(free)
        rows = [one.name for one in free if isinstance(one.type, Row)]
        wider = random_tables.WIDER.get(str(field.type))
        if choice == "nested" and rows:
            path = [source.choice(rows), name]
            self.alter({"op": "add", "name": path, "type": json_type(text)}, lambda table: table.add_column(path, text))
        elif choice == "widen" and wider:
            new = source.choice(wider)
            self.alter(
                {"op": "type", "name": field.name, "type": new}, lambda table: table.change_type(field.name, new)
            )
        elif choice == "drop":
            self.alter({"op": "drop", "name": field.name}, lambda table: table.drop_column(field.name))
        elif choice == "move" and field.name != self.fields[0].name:
            self.alter(
                {"op": "move", "name": field.name, "first": True},
                lambda table: table.move_column(field.name, first=True),
            )
        else:
            self.alter(
                {"op": "rename", "name": field.name, "to": name}, lambda table: table.rename_column(field.name, name)
            )

    def alter(self, by_java: dict[str, Any], by_lakelet: Any) -> None:
        changer = self.source.choice([LAKELET, JAVA])
        self.log.append(f"{changer}: {by_java}")
        if changer == JAVA:
            self.warehouse.java.alter(self.warehouse.folder, f"db.{self.name}", by_java)
        else:
            by_lakelet(self.warehouse.table(self.name))

    # ------------------------------------------------------------------ comparing

    def compare(self) -> None:
        found = self.warehouse.agree(self.name, readers=(LAKELET, JAVA))
        assert sorted(row["id"] for row in found) == sorted(self.rows)
        divisor = self.source.randint(2, 4)
        where = self.warehouse.filtered(LAKELET, self.name, f"id % {divisor} = 1 AND id >= {self.next_id // 2}")
        same(
            where,
            [row for row in found if row["id"] % divisor == 1 and row["id"] >= self.next_id // 2],
            "lakelet, filtered",
        )
        above = [f"id >= {self.next_id // 2}"]
        same(
            self.warehouse.filtered(JAVA, self.name, above),
            [row for row in found if row["id"] >= self.next_id // 2],
            "java, filtered",
        )

    def go(self) -> None:
        operations = (
            [self.append] * 5 + [self.overwrite, self.delete, self.compact, self.change_format] + [self.evolve] * 3
        )
        self.append()
        for step in range(STEPS):
            self.source.choice(operations)()
            if step % 3 == 2:
                self.compare()
        versions = [snapshot.id for snapshot in self.warehouse.table(self.name).snapshots()]
        for version in self.source.sample(versions, min(3, len(versions))):
            self.log.append(f"version {version}")
            self.warehouse.agree(self.name, readers=(LAKELET, JAVA), snapshot=version)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_random_tables(warehouse: Warehouse, seed: int) -> None:
    run = Run(warehouse, seed)
    try:
        run.go()
    except Exception as error:
        raise AssertionError(f"seed {seed}:\n  " + "\n  ".join(run.log)) from error


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + max(1, CASES // 4)))
def test_random_rows_read_by_pypaimon(warehouse: Warehouse, seed: int) -> None:
    """Plain Parquet tables, where pypaimon's readers are at their best."""
    source = random.Random(seed + 1_000_000)
    columns = [("id", "INT"), *((f"c{number}", random_tables.random_type(source)) for number in range(6))]
    warehouse.create(LAKELET, "t", columns)
    fields = warehouse.table("t").schema.fields
    for number, writer in enumerate((LAKELET, PYTHON, JAVA)):
        warehouse.write(
            writer, "t", [random_tables.random_row(source, fields, number * 10 + step) for step in range(10)]
        )
    found = warehouse.agree("t", readers=(LAKELET, JAVA, PYTHON, NATIVE))
    assert sorted(row["id"] for row in found) == list(range(30)), f"seed {seed}: {columns}"
