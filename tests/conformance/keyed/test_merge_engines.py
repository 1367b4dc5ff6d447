"""Random tables of the engines `aggregation` and `partial-update`: Lakelet and Java Paimon make the same rows of the same writes.

One table is written and compacted by both in turn and read by both, a second by Java alone; a model in plain Python says what is
in them. LAKELET_CASES multiplies the number of tables; a failure names its seed, and LAKELET_SEED runs the seeds from there on.
"""

from __future__ import annotations

import pytest

from tests.conformance.tables import DATABASE, JAVA, LAKELET, Rows, Warehouse, in_order, same, spell_rows
from tests.property.engine_tables import KEY, EngineTable, Versions
from tests.tiers.examples import FIRST_SEED, examples

STEPS = 8


@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
@pytest.mark.parametrize("number", range(examples(12)))
def test_both_fold_alike(warehouse: Warehouse, engine: str, number: int) -> None:
    run = _Run(warehouse, EngineTable(FIRST_SEED + number, engine), f"{engine.replace('-', '_')}_{number}")
    for _ in range(STEPS):
        run.step()
        run.check()


class _Run:
    """The two tables and the model of them."""

    def __init__(self, warehouse: Warehouse, table: EngineTable, name: str) -> None:
        self.warehouse, self.given = warehouse, table
        self.shared, self.alone = name, f"{name}_java"
        # A compaction drops deletes, so that it must come to both at once.
        options = {**table.options, "bucket": "1", "write-only": "true"}
        warehouse.create(
            table.random.choice([LAKELET, JAVA]), self.shared, table.columns, primary_key=[KEY], options=options
        )
        warehouse.create(JAVA, self.alone, table.columns, primary_key=[KEY], options=options)
        self.table = warehouse.table(self.shared)
        self.model = Versions(table)
        self.log: list[str] = [str(table.options), str(table.columns)]

    def step(self) -> None:
        source, warehouse = self.given.random, self.warehouse
        if source.random() < 0.25:
            self.log.append("compact")
            self.model.compact()
            warehouse.java.compact(warehouse.folder, f"{DATABASE}.{self.alone}")
            if source.random() < 0.5:
                self.table.compact(True)
            else:
                warehouse.java.compact(warehouse.folder, f"{DATABASE}.{self.shared}")
            return
        rows = self.given.rows()
        kinds = [row["_kind"] for row in rows]
        self.model.write(rows)
        writer = source.choice([LAKELET, LAKELET, JAVA])
        self.log += [writer, *map(str, rows)]
        warehouse.write(JAVA, self.alone, rows, kinds=kinds)
        warehouse.write(writer, self.shared, rows, kinds=kinds)

    def check(self) -> None:
        wanted = self._spelled(spell_rows(self.model.rows(), self.table.schema.fields))
        log = "\n".join(self.log)
        same(self._spelled(self.warehouse.rows(JAVA, self.alone)), wanted, f"{log}\nJava alone")
        same(self._spelled(self.warehouse.rows(JAVA, self.shared)), wanted, f"{log}\nJava")
        same(self._spelled(self.warehouse.rows(LAKELET, self.shared)), wanted, f"{log}\nLakelet")

    def _spelled(self, rows: Rows) -> Rows:
        """The rows with those arrays sorted that have no order."""
        for row in rows:
            for name in self.given.unordered:
                row[name] = None if row[name] is None else sorted(row[name], key=repr)
        return in_order(rows)
