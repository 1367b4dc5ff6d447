"""Which of two rows of one key wins: `sequence.field` in all its forms, `ignore-delete`, and rows of one commit."""

from __future__ import annotations

import datetime
import itertools
import random
from decimal import Decimal
from typing import Any

import pytest

from tests.conformance.keyed_tables import KeyedTable
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, WRITERS, Rows, Warehouse, same

Column = tuple[str, str, list[Any]]
_MOMENT = datetime.datetime(2024, 1, 1, 12, 0, 0, 1000)
SEQUENCES: dict[str, list[Column]] = {
    "bigint": [("q", "BIGINT", [-5, 0, 7, 2**40])],
    "timestamp": [("q", "TIMESTAMP(3)", [_MOMENT, _MOMENT.replace(year=1969), _MOMENT.replace(second=1)])],
    "string": [("q", "STRING", ["", "a", "ab", "b", "数"])],
    "decimal-date": [
        ("q", "DECIMAL(20, 2)", [Decimal("-1.50"), Decimal("0.00"), Decimal("99999999999.99")]),
        ("q2", "DATE", [datetime.date(1969, 5, 1), datetime.date(2024, 2, 29)]),
    ],
    "double-tiny-ltz": [
        ("q", "DOUBLE", [-1.5, 0.25]),
        ("q2", "TINYINT", [-128, 5]),
        ("q3", "TIMESTAMP(6) WITH LOCAL TIME ZONE", [_MOMENT, _MOMENT.replace(microsecond=1)]),
    ],
}


def sequenced_rows(source: random.Random, columns: list[Column], ids: int, count: int, v: int) -> Rows:
    """Rows of few keys whose sequences rise, fall, tie and are NULL."""
    return [
        {
            "id": source.randrange(ids),
            **{name: source.choice([None, *values]) for name, _, values in columns},
            "v": v * 100 + number,
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("name", list(SEQUENCES))
def test_sequence_fields(warehouse: Warehouse, name: str, order: str) -> None:
    """NULL loses, ties go to the later row, deletes count like rows: within a commit, across commits and writers."""
    source = random.Random(f"{name} {order}")
    columns = SEQUENCES[name]
    options = {
        "bucket": "1",
        "sequence.field": ",".join(column for column, _, _ in columns),
        "sequence.field.sort-order": order,
        "write-only": "true",
    }
    if name == "bigint" and order == "ascending":
        del options["sequence.field.sort-order"]
    made = KeyedTable(
        warehouse,
        JAVA,
        "t",
        [("id", "INT"), *((column, text) for column, text, _ in columns), ("v", "INT")],
        ["id"],
        options=options,
        readers=(LAKELET, JAVA),
    )
    for step, writer in enumerate((LAKELET, JAVA, LAKELET, JAVA, LAKELET)):
        rows = sequenced_rows(source, columns, 12, 14, step)
        if writer == JAVA and order == "descending":
            # Java's write buffer folds rows of one key as if the order were ascending; across files it is right.
            rows = list({row["id"]: row for row in rows}.values())
        made.write(writer, rows, [source.choice(["+I", "+U", "+I", "-D", "-U"]) for _ in rows])
        made.check()
        if step == 2:
            made.compact()
            made.check([LAKELET])
    made.delete([{"id": id_} for id_ in range(0, 12, 2)])
    made.check()
    # What is older than the deleted row does not come back; what is as new does.
    made.write(LAKELET, sequenced_rows(source, columns, 12, 12, 7))
    made.check()
    made.check_get([{"id": id_} for id_ in range(14)])
    made.check_history()


def test_pypaimon_on_sequence_fields(warehouse: Warehouse) -> None:
    """Upserts with distinct sequences: where all four agree. What pypaimon does with ties and NULL is below."""
    columns = [("id", "INT"), ("q", "BIGINT"), ("v", "INT")]
    options = {"bucket": "2", "sequence.field": "q"}
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["id"], options=options)
    source = random.Random(9)
    numbers = iter(source.sample(range(1000), 80))
    for step, writer in enumerate((LAKELET, PYTHON, NATIVE, JAVA, LAKELET, PYTHON)):
        made.write(writer, [{"id": id_, "q": next(numbers), "v": step} for id_ in source.sample(range(20), 12)])
        made.check()


@pytest.mark.parametrize("case", ["tie", "null", "two nulls"])
def test_ties_and_null(warehouse: Warehouse, case: str) -> None:
    first, second = {"tie": (5, 5), "null": (5, None), "two nulls": (None, None)}[case]
    columns = [("id", "INT"), ("q", "BIGINT"), ("v", "INT")]
    for order, writer in itertools.product(("ascending", "descending"), WRITERS):
        options = {"bucket": "1", "sequence.field": "q", "sequence.field.sort-order": order}
        made = KeyedTable(warehouse, LAKELET, f"{order}_{writer}", columns, ["id"], options=options)
        made.write(
            writer, [{"id": 1, "q": first, "v": 1}, {"id": 1, "q": second, "v": 2}, {"id": 2, "q": second, "v": 1}]
        )
        made.write(writer, [{"id": 1, "q": second, "v": 3}, {"id": 2, "q": first, "v": 2}])
        made.check()


@pytest.mark.parametrize("creator", [LAKELET, JAVA])
def test_ignored_deletes(warehouse: Warehouse, creator: str) -> None:
    """Deletes that were written before the option was set are ignored too."""
    columns = [("id", "INT"), ("v", "INT")]
    made = KeyedTable(warehouse, creator, "t", columns, ["id"], options={"bucket": "1"})
    kinds = ["+I", "-D", "+U", "-U", "+I", "-D"]
    made.write(LAKELET, [{"id": id_, "v": 0} for id_ in range(8)])
    made.write(JAVA, [{"id": id_, "v": 1} for id_ in range(2, 8)], kinds)
    made.check()
    made.table.set_options({"ignore-delete": "true"})
    made.model.ignore_delete = True
    for id_, v in ((3, 0), (5, 0), (7, 0)):
        made.model.rows[f"[{id_}]"] = {"id": id_, "v": v}
    made.check((LAKELET, JAVA))
    for step, writer in enumerate((LAKELET, JAVA)):
        made.write(writer, [{"id": id_, "v": 10 + step} for id_ in range(step, step + 6)], kinds)
        made.check((LAKELET, JAVA))
    # Both readers of pypaimon let the deletes count that were written before.
    for reader in (PYTHON, NATIVE):
        assert len(warehouse.rows(reader, "t")) == len(made.model.rows) - 1


def test_ignored_update_before(warehouse: Warehouse) -> None:
    columns = [("id", "INT"), ("v", "INT")]
    made = KeyedTable(warehouse, JAVA, "t", columns, ["id"], options={"bucket": "1", "ignore-update-before": "true"})
    kinds = ["+I", "-D", "-U", "-U", "+U", "-D"]
    for step, writer in enumerate((LAKELET, JAVA, LAKELET)):
        rows = [{"id": id_, "v": step} for id_ in range(step * 2, step * 2 + 6)]
        warehouse.write(writer, "t", rows, kinds=kinds)
        kept = [number for number, kind in enumerate(kinds) if kind != "-U"]
        chosen = [rows[number] for number in kept]
        made.model.write(chosen, made.spell(chosen), [kinds[number] for number in kept])
        made.note()
        made.check()


@pytest.mark.parametrize("writer", [LAKELET, JAVA, PYTHON, NATIVE])
def test_the_last_row_of_a_commit_wins(warehouse: Warehouse, writer: str) -> None:
    columns = [("id", "STRING"), ("v", "INT")]
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["id"], options={"bucket": "2"})
    source = random.Random(3)
    for step in range(3):
        made.write(writer, [{"id": f"key {source.randrange(15)}", "v": step * 100 + n} for n in range(60)])
    made.check()
    assert {row["id"] for row in made.model.rows.values()} == {f"key {n}" for n in range(15)}


def test_readers_know_who_came_last_by_sequence_not_by_place(warehouse: Warehouse) -> None:
    """Many small files of the same keys by all writers: only the numbers in the rows tell the newest."""
    columns = [("id", "INT"), ("v", "INT")]
    made = KeyedTable(warehouse, LAKELET, "t", columns, ["id"], options={"bucket": "1", "write-only": "true"})
    writers = itertools.cycle((LAKELET, JAVA, PYTHON, LAKELET, NATIVE))
    for step in range(20):
        made.write(next(writers), [{"id": id_, "v": step} for id_ in range(step % 4, 12, 1 + step % 3)])
    made.check()
    assert len(made.table.files()) == 20
    made.compact()
    made.check()
    same(warehouse.rows(LAKELET, "t", snapshot=20), made.model.found(), "lakelet before the compaction")
