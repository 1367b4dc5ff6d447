"""What tables of folding engines take and refuse: options, changes of them, retracts, deletes, columns that rows lack."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from lakelet import InvalidError, Lake, Table
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.lsm.engine.aggregation import AggregationEngine
from lakelet.lsm.engine.table_engine import table_engine
from lakelet.storage.memory import MemoryStore

COLUMNS = [("k", "INT NOT NULL"), ("n", "INT"), ("m", "INT"), ("t", "STRING"), ("d", "DECIMAL(3, 1)")]
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.d.aggregate-function": "sum"}


def made(options: dict[str, str], columns: Any = COLUMNS) -> Table:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    return lake.create_table("d.t", columns, primary_key=["k"], options={"bucket": "1", **options})


def rows(table: Table) -> list[dict[str, Any]]:
    return table.scan().to_arrow().to_pylist()


def test_rows_of_one_write_and_of_several_are_added_up() -> None:
    table = made(SUM)
    table.write([{"k": 1, "n": 2, "t": "a"}, {"k": 1, "n": 3}])
    table.write([{"k": 1, "n": 4, "m": 7}])
    assert rows(table) == [{"k": 1, "n": 9, "m": 7, "t": "a", "d": None}]
    assert table.get({"k": 1}) == {"k": 1, "n": 9, "m": 7, "t": "a", "d": None}


@pytest.mark.parametrize("missing", [None, "default", "keep"])
def test_a_column_that_a_partial_update_lacks_stays(missing: str | None) -> None:
    table = made({"merge-engine": "partial-update"})
    table.write([{"k": 1, "n": 2}], missing=missing)
    table.write([{"k": 1, "t": "x"}, {"k": 2, "m": 1}], missing=missing)
    table.write([{"k": 1, "n": 5}], missing=missing)
    assert [(row["k"], row["n"], row["m"], row["t"]) for row in rows(table)] == [(1, 5, None, "x"), (2, None, 1, None)]


def test_keep_does_not_write_defaults_unasked() -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    lake.sql("CREATE TABLE d.t (k INT PRIMARY KEY, n INT DEFAULT 3, m INT) WITH ('merge-engine' = 'partial-update')")
    with pytest.raises(InvalidError, match="lacks column 'n' would update it with its default"):
        lake.table("d.t").write([{"k": 1, "m": 2}], missing="keep")


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "max"}, "-D", "'n' is aggregated with 'max'"),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "max"}, "-U", "'fields.n.ignore-retract'"),
        ({"merge-engine": "partial-update"}, "-D", "row 0 takes a row away, which a partial update cannot"),
    ],
    ids=["max-D", "max-U", "partial"],
)
def test_a_retract_that_has_no_meaning_is_refused_and_nothing_is_lost(
    options: dict[str, str], kind: str, message: str
) -> None:
    table = made(options)
    table.write([{"k": 1, "n": 2}])
    with pytest.raises(InvalidError, match=message):
        table.write([{"k": 1, "n": 2}], kinds=[kind])
    assert [row["n"] for row in rows(table)] == [2]


def test_a_column_that_is_not_null_is_not_set_to_null() -> None:
    table = made({"merge-engine": "aggregation"}, [("k", "INT NOT NULL"), ("n", "INT NOT NULL")])
    table.write([{"k": 1, "n": 2}])
    with pytest.raises(InvalidError, match="column 'n' is NOT NULL and cannot"):
        table.write([{"k": 1, "n": 2}], kinds=["-D"])


def test_rows_that_no_option_removes_are_not_deleted() -> None:
    table = made(SUM)
    table.write([{"k": 1, "n": 2}])
    for delete in (lambda: table.delete([{"k": 1}]), lambda: table.delete(where="n = 2")):
        with pytest.raises(InvalidError, match="'merge-engine' = 'aggregation'"):
            delete()
    assert [row["n"] for row in rows(table)] == [2]


def test_a_delete_removes_the_row_where_options_say_so() -> None:
    for options in (
        {**SUM, "aggregation.remove-record-on-delete": "true"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    ):
        table = made(options)
        table.write([{"k": 1, "n": 2}, {"k": 2, "n": 3}])
        table.write([{"k": 1}], kinds=["-D"])
        assert [row["k"] for row in rows(table)] == [2]
        table.write([{"k": 1, "m": 5}])
        assert [(row["k"], row["n"], row["m"]) for row in rows(table)] == [(1, None, 5), (2, 3, None)]


@pytest.mark.parametrize(
    "options",
    [
        {**SUM, "aggregation.remove-record-on-delete": "true"},
        {**SUM, "aggregation.remove-record-on-delete": "true", "sequence.field": "m"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        {
            "merge-engine": "partial-update",
            "fields.m.sequence-group": "n,d",
            "partial-update.remove-record-on-sequence-group": "m",
        },
    ],
    ids=["aggregation", "sequence", "partial", "group"],
)
def test_deleted_rows_are_gone_and_later_rows_begin_anew(options: dict[str, str]) -> None:
    table = made(options)
    table.write([{"k": key, "n": 10 + key, "m": 5, "t": "old", "d": Decimal("1.5")} for key in range(4)])
    table.delete([{"k": 0}, {"k": 9}])
    table.delete(where="n = 11")
    lake = Lake(table.home.store)
    assert lake.sql("DELETE FROM d.t WHERE k = 2 RETURNING n").to_arrow().to_pylist() == [{"n": 12}]
    assert [row["k"] for row in rows(table)] == [3]
    table.write([{"k": key, "m": 6, "n": 1} for key in range(4)])
    expected = [{"k": key, "n": 1, "m": 6, "t": None, "d": None} for key in range(3)]
    assert sorted(rows(table), key=lambda row: row["k"])[:3] == expected
    table.compact(True)
    assert sorted(rows(table), key=lambda row: row["k"])[:3] == expected


def test_rows_that_no_group_removes_are_not_deleted() -> None:
    table = made(
        {
            "merge-engine": "partial-update",
            "fields.m.sequence-group": "n",
            "partial-update.remove-record-on-sequence-group": "m",
        }
    )
    table.write([{"k": 1, "t": "x"}])
    with pytest.raises(InvalidError, match="a row without a value in m cannot be deleted"):
        table.delete([{"k": 1}])


def test_a_delete_that_later_rows_would_be_added_to_is_refused() -> None:
    table = made(
        {**SUM, "aggregation.remove-record-on-delete": "true"},
        [("k", "INT NOT NULL"), ("n", "INT NOT NULL"), ("d", "INT")],
    )
    table.write([{"k": 1, "n": 2, "d": 1}])
    with pytest.raises(InvalidError, match="column 'n' is NOT NULL"):
        table.delete([{"k": 1}])


MERGE = "MERGE INTO d.t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN"


@pytest.mark.parametrize("text", ["UPDATE d.t SET n = 3", f"{MERGE} UPDATE SET n = 3"])
def test_aggregated_rows_are_not_updated(text: str) -> None:
    table = made(SUM)
    table.write([{"k": 1, "n": 2}])
    with pytest.raises(InvalidError, match=r"'merge-engine' = 'aggregation'.*insert rows, which are merged"):
        Lake(table.home.store).sql(text)
    assert [row["n"] for row in rows(table)] == [2]


GROUP = {
    "merge-engine": "partial-update",
    "fields.m.sequence-group": "t,d",
    "fields.d.aggregate-function": "sum",
}


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("n = 3", [(1, 3, 7, "a", 1), (2, 3, None, None, None)]),
        ("n = n + k, t = 'b' WHERE k = 1", [(1, 3, 7, "b", 1), (2, 5, None, None, None)]),
        ("t = NULL WHERE k = 1", [(1, 2, 7, None, 1), (2, 5, None, None, None)]),
        ("m = 8, t = 'b' WHERE TRUE", [(1, 2, 8, "b", 1), (2, 5, 8, "b", None)]),
        ("n = NULL WHERE n = 2", "would get NULL in column 'n'"),
        ("t = 'b' WHERE k = 2", "column 't' changes with its sequence group alone"),
        ("m = NULL WHERE k = 1", "column 'm' changes with its sequence group alone"),
        ("m = 6 WHERE k = 1", "a lesser value in the sequence columns of column 'm'"),
        ("d = 2 WHERE k = 1", r"column 'd' is aggregated \('sum'\) and cannot be set"),
    ],
)
def test_partial_updates_are_updated_or_refused(change: str, wanted: Any) -> None:
    table = made(GROUP)
    table.write([{"k": 1, "n": 2, "m": 7, "t": "a", "d": Decimal(1)}, {"k": 2, "n": 5}])
    before = rows(table)
    sql = Lake(table.home.store).sql
    if isinstance(wanted, str):
        with pytest.raises(InvalidError, match=wanted):
            sql(f"UPDATE d.t SET {change}")
        assert rows(table) == before
        return
    returned = sql(f"UPDATE d.t SET {change} RETURNING *").rows()
    assert [tuple(row.values()) for row in rows(table)] == wanted
    assert [row for row in wanted if row in returned] == sorted(returned, key=lambda row: row[0])
    table.compact(True)
    assert [tuple(row.values()) for row in rows(table)] == wanted


def test_a_value_that_only_an_unmerged_row_shows_is_not_lost_by_an_update() -> None:
    """Written without its sequence it is there until the key is written once more."""
    table = made(GROUP)
    table.write([{"k": 1, "n": 2, "t": "a"}])
    with pytest.raises(InvalidError, match="column 't' changes with its sequence group alone"):
        Lake(table.home.store).sql("UPDATE d.t SET n = 3")
    assert [(row["n"], row["t"]) for row in rows(table)] == [(2, "a")]


def test_merge_into_a_partial_update() -> None:
    table = made({"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"})
    table.write([{"k": number, "n": number, "t": "old"} for number in (1, 2, 3)])
    lake = Lake(table.home.store)
    lake.sql(
        "MERGE INTO d.t USING (VALUES (1, 10), (2, 20), (4, 40)) AS s(k, n) ON t.k = s.k WHEN MATCHED AND s.n > 15 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, s.n) "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t = 'alone'"
    )
    assert [(row["k"], row["n"], row["t"]) for row in rows(table)] == [(1, 11, "old"), (3, 3, "alone"), (4, 40, None)]
    lake.sql("INSERT INTO d.t (k, n) VALUES (1, 5), (5, 50) ON CONFLICT DO UPDATE SET n = t.n + excluded.n")
    assert [row["n"] for row in rows(table)] == [16, 3, 40, 50]
    lake.sql(f"{MERGE} DELETE")
    assert [row["k"] for row in rows(table)] == [3, 4, 5]


def test_a_column_that_cannot_be_null_and_is_aggregated_keeps_a_row_from_being_updated() -> None:
    columns = [("k", "INT NOT NULL"), ("g", "INT"), ("n", "INT NOT NULL"), ("t", "STRING")]
    options = {"merge-engine": "partial-update", "fields.g.sequence-group": "n"}
    for function, refused in (("sum", True), ("max", False)):
        table = made({**options, "fields.n.aggregate-function": function}, columns)
        table.write([{"k": 1, "g": 1, "n": 2, "t": "a"}])
        sql = Lake(table.home.store).sql
        if refused:
            with pytest.raises(InvalidError, match="column 'n' is NOT NULL, and would be aggregated"):
                sql("UPDATE d.t SET t = 'b'")
        else:
            sql("UPDATE d.t SET t = 'b'")
            assert rows(table) == [{"k": 1, "g": 1, "n": 2, "t": "b"}]


def test_rules_of_a_table_with_rows_stay() -> None:
    table = made(SUM)
    table.set_options({"fields.n.aggregate-function": "max"})
    table.write([{"k": 1, "n": 2}])
    for key, text in (
        ("fields.n.aggregate-function", "sum"),
        ("fields.m.aggregate-function", "sum"),
        ("fields.default-aggregate-function", "max"),
        ("fields.n.ignore-retract", "true"),
        ("aggregation.remove-record-on-delete", "true"),
        ("merge-engine", "deduplicate"),
    ):
        with pytest.raises(InvalidError, match=f"option '{key}' cannot be changed on a live table"):
            table.set_options({key: text})


def test_a_column_that_is_added_has_the_function_that_was_set_before() -> None:
    table = made(SUM)
    table.write([{"k": 1, "n": 2}])
    table.set_options({"fields.x.aggregate-function": "sum"})
    table.add_column("x", "INT")
    table.write([{"k": 1, "x": 3}, {"k": 1, "x": 4}])
    assert rows(table)[0]["x"] == 7
    table.rename_column("x", "y")
    table.write([{"k": 1, "y": 1}])
    assert rows(table)[0]["y"] == 8


def test_a_change_to_a_function_that_there_is_not_is_refused() -> None:
    table = made(SUM)
    with pytest.raises(InvalidError, match="no aggregate function 'avg'"):
        table.set_options({"fields.m.aggregate-function": "avg"})
    with pytest.raises(InvalidError, match="'nn' is not a column; did you mean n"):
        made({"merge-engine": "aggregation", "fields.nn.aggregate-function": "sum"})


def test_groups_follow_their_columns_names_and_keep_them() -> None:
    table = made({"merge-engine": "partial-update", "fields.n,m.sequence-group": "t"})
    table.rename_column("m", "v")
    table.rename_column("t", "u")
    assert table.schema.options["fields.n,v.sequence-group"] == "u"
    table.write([{"k": 1, "n": 2, "v": 2, "u": "new"}])
    table.write([{"k": 1, "n": 2, "v": 1, "u": "old"}])
    assert rows(table)[0]["u"] == "new"
    for name in ("n", "v", "u"):
        with pytest.raises(InvalidError, match=f"column '{name}' is in the option 'fields.n,v.sequence-group'"):
            table.drop_column(name)


def test_a_decimal_that_its_column_cannot_hold_is_an_error_that_says_what_to_do() -> None:
    table = made(SUM)
    table.write([{"k": 1, "d": Decimal("99.9")}])
    table.write([{"k": 1, "d": Decimal("0.1")}])
    with pytest.raises(InvalidError, match=r"column 'd': a sum has more digits than DECIMAL\(3, 1\) holds"):
        rows(table)
    table.change_type("d", "DECIMAL(5, 1)")
    assert rows(table)[0]["d"] == Decimal("100.0")


def test_a_compaction_of_the_newest_runs_does_not_bring_a_deleted_row_back() -> None:
    table = made({**SUM, "aggregation.remove-record-on-delete": "true", "num-sorted-run.compaction-trigger": "3"})
    table.write([{"k": key, "n": 5, "t": "old" * key} for key in range(2000)])
    table.compact(True)
    table.delete([{"k": 1}])
    for _ in range(4):
        table.write([{"k": 1, "n": 1}])
    assert table.get({"k": 1}, columns=["n", "t"]) == {"n": 4, "t": None}


def test_describe_shows_how_columns_merge() -> None:
    table = made(
        {"merge-engine": "partial-update", "fields.m.sequence-group": "n", "fields.n.aggregate-function": "sum"}
    )
    described = Lake(table.home.store).sql("DESCRIBE d.t").to_arrow().to_pylist()
    assert {row["column_name"]: row["key"] for row in described} == {
        "k": "primary",
        "n": "sum by m",
        "m": "sequence",
        "t": "last_non_null_value",
        "d": "last_non_null_value",
    }
    table = made({**SUM, "sequence.field": "m"})
    described = Lake(table.home.store).sql("DESCRIBE d.t").to_arrow().to_pylist()
    assert [row["key"] for row in described] == ["primary", "sum", "sequence", "last_non_null_value", "sum"]


@pytest.mark.parametrize(
    ("function", "column", "commutes"), [("sum", "n", True), ("max", "t", True), ("sum", "d", False)]
)
def test_some_aggregates_need_no_order(function: str, column: str, commutes: bool) -> None:
    types = dict(COLUMNS)
    table = made(
        {"merge-engine": "aggregation", f"fields.{column}.aggregate-function": function},
        [("k", "INT NOT NULL"), (column, types[column])],
    )
    engine = table_engine(latest_schema(table.home))
    assert isinstance(engine, AggregationEngine)
    assert engine.commutes is commutes
