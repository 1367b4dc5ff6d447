"""Random primary-key tables under random upserts, deletes, overwrites, compactions and schema changes by random writers.

After each step Lakelet and Java give the rows of the model, in the end at every version; in tables that pypaimon can write,
its two readers too. LAKELET_CASES multiplies the number of tables; a failure names its seed, and LAKELET_SEED runs the
seeds from there on.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from tests.conformance import random_tables
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, READERS, Rows, Warehouse, json_type
from tests.tiers.examples import FIRST_SEED, examples

CASES = examples(2)
STEPS = 9
KEYS = 30

KEY_TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INT", "BIGINT", "BIGINT", "STRING", "STRING", "VARCHAR(12)", "CHAR(4)"),
    *("BYTES", "BINARY(6)", "DATE", "TIME(3)", "DECIMAL(5, 2)", "DECIMAL(18, 6)", "DECIMAL(38, 18)"),
    *("TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
]
SEQUENCE_TYPES = ["INT", "BIGINT", "TINYINT", "DATE", "TIMESTAMP(3)", "STRING", "DECIMAL(18, 6)"]
# Types whose values are spelled alike after they were widened.
WIDER = {
    "TINYINT": "SMALLINT",
    "SMALLINT": "INT",
    "INT": "BIGINT",
    "DECIMAL(5, 2)": "DECIMAL(20, 2)",
    "VARCHAR(12)": "STRING",
}
# pypaimon's readers have trouble of their own with other types; see test_keyed_types.
PYPAIMON_KEYS = ["INT", "BIGINT", "STRING", "DATE", "DECIMAL(5, 2)", "TIMESTAMP(3)"]
PYPAIMON_VALUES = ["INT", "BIGINT", "STRING", "DATE", "DOUBLE", "DECIMAL(18, 6)", "TIMESTAMP(6)", "ARRAY<INT>"]


class Run(KeyedTable):
    """One table: `mode` is fixed, dynamic, cross (KEY_DYNAMIC) or pypaimon (fixed or dynamic, within what it can do)."""

    # A compaction forgets deletes, and with them what older rows lose against: it must not come unasked.
    with_sequence: ClassVar[dict[str, str]] = {"write-only": "true"}
    key_types: Sequence[str] = KEY_TYPES

    def __init__(self, warehouse: Warehouse, seed: int, mode: str) -> None:
        self.source = source = random.Random(f"{mode} {seed}")
        self.log: list[str] = []
        self.mode = mode
        self.written = 0
        self.changed_at = 0
        pypaimon = mode == "pypaimon"
        key_types = source.sample(PYPAIMON_KEYS if pypaimon else self.key_types, source.choice([1, 1, 2, 3]))
        columns = [(f"k{number}", text) for number, text in enumerate(key_types)]
        key = [name for name, _ in columns]
        for number in range(source.randint(1, 4)):
            text = source.choice(PYPAIMON_VALUES) if pypaimon else random_tables.random_type(source)
            columns.append((f"c{number}", text))
        options = self.random_options()
        sequence = self.random_sequence()
        columns += [(name, source.choice(SEQUENCE_TYPES)) for name in sequence]
        if sequence:
            options |= {"sequence.field": ",".join(sequence), **self.with_sequence}
            if source.random() < 0.4:
                options["sequence.field.sort-order"] = "descending"
        columns.append(("v", "INT"))
        self.partitioned = mode == "cross" or source.random() < 0.5
        if self.partitioned:
            columns.append(("p", "STRING"))
            key += [] if mode == "cross" else ["p"]
        source.shuffle(columns)
        source.shuffle(key)
        creator = source.choice([LAKELET, JAVA])
        self.log.append(f"{creator} creates {columns} key {key} {options}")
        super().__init__(
            warehouse,
            creator,
            f"{mode}{seed}",
            columns,
            key,
            partitioned_by=["p"] if self.partitioned else [],
            options=options,
            readers=READERS if pypaimon else (LAKELET, JAVA),
        )
        self.keys = [
            {
                name: source.choice("abc") if name == "p" else self.value(self.table.schema.field(name).type)
                for name in key
            }
            for _ in range(KEYS)
        ]

    def random_sequence(self) -> list[str]:
        if self.source.random() < 0.5 or self.mode in ("cross", "pypaimon"):
            return []
        return [f"q{number}" for number in range(self.source.randint(1, 2))]

    def random_options(self) -> dict[str, str]:
        source = self.source
        options = {
            "file.format": "parquet"
            if self.mode == "pypaimon"
            else source.choice(["parquet", "parquet", "orc", "avro"])
        }
        if self.mode == "cross" or (self.mode != "fixed" and source.random() < 0.5) or self.mode == "dynamic":
            options["dynamic-bucket.target-row-num"] = str(source.choice([3, 7, 1000]))
            if source.random() < 0.3:
                options["dynamic-bucket.max-buckets"] = "2"
        else:
            options["bucket"] = str(source.choice([1, 1, 2, 5]))
        if source.random() < 0.4:
            options["data-file.thin-mode"] = "true"
        if source.random() < 0.5:
            options["write-only"] = "true"
        if source.random() < 0.15 and self.mode not in ("pypaimon", "cross"):
            options["ignore-delete"] = "true"
        if source.random() < 0.3:
            options["target-file-size"] = "1 kb"
        return options

    def value(self, data_type: Any) -> Any:
        """Of a key: CHAR in its full length, seconds without a fraction."""
        if str(data_type).startswith("CHAR"):
            return "".join(self.source.choices("abz", k=4))
        if str(data_type).startswith("TIMESTAMP(0)"):
            return random_tables.random_value(self.source, data_type).replace(microsecond=0)
        return random_tables.random_value(self.source, data_type)

    def row_of(self, key: dict[str, Any]) -> dict[str, Any]:
        self.written += 1
        row = {
            field.name: key[field.name]
            if field.name in key
            else self.written
            if field.name == "v"
            else self.small(field.type)
            if field.name[0] == "q"
            else random_tables.random_value(self.source, field.type)
            for field in self.fields
        }
        if self.mode == "cross":
            row["p"] = self.source.choice("abc")
        return row

    def small(self, data_type: Any) -> Any:
        """Few values, so that sequences tie."""
        made = random.Random(self.source.randrange(9))
        return random_tables.random_value(made, data_type)

    def some_rows(self, *, distinct: bool = False) -> Rows:
        count = self.source.choice([1, 3, 10, 25])
        keys = self.source.sample(self.keys, min(count, KEYS)) if distinct else self.source.choices(self.keys, k=count)
        rows = [self.row_of(key) for key in keys]
        return list(dict(zip(self.spell_keys(rows), rows, strict=True)).values()) if distinct else rows

    def writer(self) -> str:
        if self.mode == "cross":
            return LAKELET
        return self.source.choice(
            [LAKELET, JAVA, PYTHON, NATIVE] if self.mode == "pypaimon" else [LAKELET, LAKELET, JAVA]
        )

    # ---------------------------------------------------------------- operations

    def upsert(self) -> None:
        writer = self.writer()
        # Java's write buffer folds rows of one key in ascending order, whatever the order is.
        rows = self.some_rows(distinct=writer == JAVA and self.model.descending)
        kinds = None
        if writer in (LAKELET, JAVA) and self.source.random() < 0.6:
            kinds = [self.source.choice(["+I", "+U", "+I", "-D", "-U"]) for _ in rows]
        self.log.append(f"{writer} writes {len(rows)} {kinds or ''}")
        self.write(writer, rows, kinds)

    def remove(self) -> None:
        if self.model.ignore_delete:
            return
        if self.source.random() < 0.5:
            keys = self.source.sample(self.keys, 8)
            self.log.append("lakelet deletes by key")
            self.delete(keys)
            return
        limit = self.source.randint(0, self.written)
        self.log.append(f"lakelet deletes where v < {limit}")
        self.table.delete(where=f"v < {limit}")
        self.model.delete([key for key, row in self.model.rows.items() if row["v"] < limit])
        self.note()

    def overwrite(self) -> None:
        writer = self.source.choice([LAKELET, JAVA]) if self.mode != "cross" else LAKELET
        rows = self.some_rows(distinct=True)
        whole = not self.partitioned or self.source.random() < 0.3
        replaced = {row.get("p") for row in rows}
        if self.mode == "cross" and not whole:
            return
        self.log.append(f"{writer} overwrites {'all' if whole else replaced} with {len(rows)}")
        self.warehouse.write(writer, self.name, rows, overwrite={} if whole else True)
        self.model.clear(lambda row: whole or row["p"] in replaced)
        if whole:
            self.model.versions = {}
        self.model.versions = {key: version for key, version in self.model.versions.items() if key in self.model.rows}
        self.model.write(rows, self.spell(rows), None)
        self.note()

    def compact_all(self) -> None:
        self.log.append("java compacts")
        self.compact()

    def evolve(self) -> None:
        source = self.source
        free = [field for field in self.fields if field.name[0] == "c"]
        choice = source.choice(["add", "drop", "rename", "widen", "key"])
        name = f"c{self.written}_{len(self.log)}"
        field = source.choice(free) if free else None
        wider = WIDER.get(str(field.type)) if field else None
        if choice == "key":
            old = source.choice([one for one in self.model.key if one != "p"])
            new = f"k{self.written}_{len(self.log)}"
            self.alter({"op": "rename", "name": old, "to": new}, lambda table: table.rename_column(old, new))
            self.renamed(old, new)
        elif choice == "add" or field is None:
            text = random_tables.random_type(source, 1) if self.mode != "pypaimon" else source.choice(PYPAIMON_VALUES)
            self.alter({"op": "add", "name": name, "type": json_type(text)}, lambda table: table.add_column(name, text))
            self.model.rows = {key: {**row, name: None} for key, row in self.model.rows.items()}
        elif choice == "widen" and wider:
            self.alter(
                {"op": "type", "name": field.name, "type": wider}, lambda table: table.change_type(field.name, wider)
            )
        elif choice == "drop":
            self.alter({"op": "drop", "name": field.name}, lambda table: table.drop_column(field.name))
            for row in self.model.rows.values():
                row.pop(field.name)
        else:
            self.alter(
                {"op": "rename", "name": field.name, "to": name}, lambda table: table.rename_column(field.name, name)
            )
            self.renamed(field.name, name)
        latest = self.table.latest_snapshot()
        self.changed_at = latest.id if latest else 0

    def renamed(self, old: str, new: str) -> None:
        def change(row: dict[str, Any]) -> dict[str, Any]:
            return {new if name == old else name: value for name, value in row.items()}

        self.model.key = [new if name == old else name for name in self.model.key]
        self.model.rows = {key: change(row) for key, row in self.model.rows.items()}
        self.keys = [change(key) for key in self.keys]

    def alter(self, by_java: dict[str, Any], by_lakelet: Any) -> None:
        # The states that were noted keep their rows as they were.
        self.model.rows = {key: dict(row) for key, row in self.model.rows.items()}
        changer = self.source.choice([LAKELET, JAVA])
        self.log.append(f"{changer}: {by_java}")
        if changer == JAVA:
            self.warehouse.java.alter(self.warehouse.folder, self.full_name, by_java)
        else:
            by_lakelet(self.table)

    # ---------------------------------------------------------------- comparing

    def go(self) -> None:
        operations = [self.upsert] * 6 + [self.remove] * 2 + [self.overwrite, self.compact_all, self.evolve]
        self.upsert()
        for _ in range(STEPS):
            self.source.choice(operations)()
            self.check()
        self.log.append("in the end")
        self.buckets()
        self.check_ordered()
        self.check_get(self.source.sample(self.keys, KEYS // 2))
        bound = self.written * 2 // 3
        self.check_where(f"v >= {bound}", [f"v >= {bound}"], lambda row: row["v"] >= bound)
        self.look_back()

    def look_back(self) -> None:
        """Older versions of any schema; the model knows those since the last change of it, and the changes between them."""
        ids = [id_ for id_ in sorted(self.states) if id_ > 0]
        for id_ in self.source.sample(ids, min(3, len(ids))):
            self.log.append(f"version {id_}")
            found = self.warehouse.agree(self.name, readers=(LAKELET, JAVA), snapshot=id_)
            assert len(found) == len(self.states[id_])
        self.states = {id_: state for id_, state in self.states.items() if id_ > self.changed_at}
        if not self.changed_at:
            self.states[0] = {}
        if len(self.states) > 1:
            self.log.append(f"changes of {list(self.states)}")
            self.check_history(seed=self.written, most=3)


@pytest.mark.parametrize("mode", ["fixed", "dynamic", "cross", "pypaimon"])
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_random_keyed_tables(warehouse: Warehouse, seed: int, mode: str) -> None:
    run = None
    try:
        run = Run(warehouse, seed, mode)
        run.go()
    except Exception as error:
        raise AssertionError(f"{mode}, seed {seed}:\n  " + "\n  ".join(run.log if run else [])) from error
