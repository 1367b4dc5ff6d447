"""Schemas of primary-key tables change between writes, by Lakelet and by Java: old and new files merge into one table."""

from __future__ import annotations

from typing import Any

import pytest

from lakelet import InvalidError
from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.line_process import HarnessError
from tests.conformance.tables import JAVA, LAKELET, Rows, Warehouse

COLUMNS = [("id", "INT"), ("k", "STRING"), ("p", "STRING"), ("v", "INT"), ("d", "DECIMAL(9, 2)"), ("s", "VARCHAR(9)")]


class Evolving(KeyedTable):
    """Changes the schema, the table's and the model's."""

    def rename(self, changer: str, old: str, new: str) -> None:
        if changer == JAVA:
            self.by_java({"op": "rename", "name": old, "to": new})
        else:
            self.table.rename_column(old, new)
        self.model.key = [new if name == old else name for name in self.model.key]
        self.model.sequence = [new if name == old else name for name in self.model.sequence]
        self.each(lambda row: {new if name == old else name: value for name, value in row.items()})

    def add(self, changer: str, name: str, text: str) -> None:
        if changer == JAVA:
            self.by_java({"op": "add", "name": name, "type": text})
        else:
            self.table.add_column(name, text)
        self.each(lambda row: {**row, name: None})

    def drop(self, changer: str, name: str) -> None:
        if changer == JAVA:
            self.by_java({"op": "drop", "name": name})
        else:
            self.table.drop_column(name)
        self.each(lambda row: {other: value for other, value in row.items() if other != name})

    def widen(self, changer: str, name: str, text: str) -> None:
        """To a type in which values are spelled as before."""
        if changer == JAVA:
            self.by_java({"op": "type", "name": name, "type": text})
        else:
            self.table.change_type(name, text)

    def by_java(self, change: dict[str, Any]) -> None:
        self.warehouse.java.alter(self.warehouse.folder, self.full_name, change)

    def each(self, change: Any) -> None:
        self.model.rows = {key: change(row) for key, row in self.model.rows.items()}

    def put(self, writer: str, ids: range, v: int) -> None:
        """Rows of the columns there are now; every third takes its key out."""
        values: dict[str, Any] = {"p": "a", "s": f"s{v}", "note": f"note {v}", "v": v, "w": v, "n": v}
        rows: Rows = []
        for id_ in ids:
            row = {field.name: values.get(field.name) for field in self.fields}
            row[self.id_column] = id_
            row[self.key_column] = f"k{id_ % 3}"
            rows.append(row)
        self.write(writer, rows, ["-D" if id_ % 5 == v % 5 else "+U" for id_ in ids])

    @property
    def id_column(self) -> str:
        return next(field.name for field in self.fields if field.id == 0)

    @property
    def key_column(self) -> str:
        return next(field.name for field in self.fields if field.id == 1)


LAYOUTS: dict[str, dict[str, Any]] = {
    "fixed": {"options": {"bucket": "2", "write-only": "true"}},
    "thin": {"options": {"bucket": "1", "data-file.thin-mode": "true", "write-only": "true"}},
    "partitioned": {"options": {"bucket": "1"}, "partitioned_by": ["p"]},
    "dynamic": {"options": {"dynamic-bucket.target-row-num": "5"}},
    "sequenced": {"options": {"bucket": "1", "sequence.field": "v"}},
    "orc": {"options": {"bucket": "1", "file.format": "orc", "write-only": "true"}},
    "avro": {"options": {"bucket": "1", "file.format": "avro", "data-file.thin-mode": "true", "write-only": "true"}},
}


@pytest.mark.parametrize("layout", ["fixed", "dynamic", "sequenced", "avro"])
def test_columns_change_between_writes(warehouse: Warehouse, layout: str) -> None:
    key = ["id", "k", "p"] if layout == "partitioned" else ["k", "id"]
    made = Evolving(
        warehouse, JAVA, "t", COLUMNS, key, readers=(LAKELET, JAVA), **{"partitioned_by": [], **LAYOUTS[layout]}
    )
    steps = [
        lambda by: made.add(by, "note", "STRING"),
        lambda by: made.rename(by, "d", "price"),
        lambda by: made.widen(by, "v", "BIGINT"),
        lambda by: made.drop(by, "price"),
        lambda by: made.widen(by, "s", "STRING"),
        lambda by: made.add(by, "d", "DATE"),
        lambda by: made.rename(by, "note", "remark"),
    ]
    made.put(LAKELET, range(10), 0)
    made.put(JAVA, range(5, 12), 1)
    for number, step in enumerate(steps):
        step((LAKELET, JAVA)[number % 2])
        made.check([LAKELET])
        made.put((JAVA, LAKELET)[number % 2], range(number, number + 9), number + 2)
        if number == 3:
            made.compact()
        made.put((LAKELET, JAVA)[number % 2], range(number + 3, number + 12), number + 2)
        made.check()
    made.check_ordered()
    made.check_get([{"id": id_, "k": f"k{id_ % 3}", "p": "a"} for id_ in range(25)])
    made.check_where("v >= 5", ["v >= 5"], lambda row: row["v"] >= 5)
    made.check_where("remark IS NULL", ["remark isnull"], lambda row: row["remark"] is None)
    made.check_where("s = 's3' AND id > 4", ["s = s3", "id > 4"], lambda row: row["s"] == "s3" and row["id"] > 4)
    for version in range(1, max(made.states) + 1, 3):
        found = warehouse.agree("t", readers=(LAKELET, JAVA), snapshot=version)
        assert len(found) == len(made.states[version])


@pytest.mark.parametrize("changer", [LAKELET, JAVA])
@pytest.mark.parametrize("layout", ["fixed", "thin", "partitioned", "orc", "avro"])
def test_a_key_column_is_renamed(warehouse: Warehouse, layout: str, changer: str) -> None:
    """Files keep the old name in `_KEY_*` and in the values; the ids of the columns tell."""
    key = ["id", "k", "p"] if layout == "partitioned" else ["k", "id"]
    made = Evolving(
        warehouse, LAKELET, "t", COLUMNS, key, readers=(LAKELET, JAVA), **{"partitioned_by": [], **LAYOUTS[layout]}
    )
    made.put(LAKELET, range(8), 0)
    made.put(JAVA, range(4, 12), 1)
    made.rename(changer, "k", "code")
    made.check()
    made.put(LAKELET, range(2, 10), 2)
    made.put(JAVA, range(6, 14), 3)
    made.check()
    made.rename(changer, "id", "k")
    made.put(LAKELET, range(9, 16), 4)
    made.check()
    made.check_get([{"k": id_, "code": f"k{id_ % 3}", "p": "a"} for id_ in range(20)])
    made.check_where("k > 5", ["k > 5"], lambda row: row["k"] > 5)
    made.compact()
    made.check()


def test_nobody_changes_the_type_of_a_key_column(warehouse: Warehouse) -> None:
    """The buckets of all rows would change with it."""
    made = Evolving(warehouse, LAKELET, "t", COLUMNS, ["k"], options={"bucket": "1"})
    with pytest.raises(InvalidError, match="primary key"):
        made.widen(LAKELET, "k", "VARCHAR(40)")
    with pytest.raises(HarnessError, match="primary key"):
        made.widen(JAVA, "k", "VARCHAR(40)")
