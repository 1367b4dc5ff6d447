"""Odd, malformed and zoned events: each is applied as it means, or put aside with a reason, and stops nothing."""

import json
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakelet
from lakelet.errors import InvalidError, NotFoundError
from lakelet.spark.cdc.arguments import settings_of
from lakelet.spark.cdc.event_files import event_files
from lakelet.spark.cdc.replay import replay_cdc
from lakelet.spark.cdc.route import SourceTable
from lakelet.spark.cdc.sync import sync_cdc
from lakelet.spark.session import settings
from tests.spark.cdc.cdc_frames import reasons, rows, synced
from tests.spark.cdc.sample_events import AFTER, canal, debezium, maxwell, text
from tests.spark.cdc.sample_events import FIELDS as EVERY_TYPE

FIELDS: list[dict[str, Any]] = [{"field": "id", "type": "int32"}, {"field": "qty", "type": "int32", "optional": True}]
TEXTS: list[dict[str, Any]] = [
    {"field": "id", "type": "int32"},
    {"field": "note", "type": "string", "optional": True},
    {"field": "bytes", "type": "bytes", "optional": True},
    {"field": "list", "type": "array", "optional": True},
]


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    return str(tmp_path / "wh")


def item(id: int, qty: int | None) -> dict[str, Any]:
    return {"id": id, "qty": qty}


@pytest.mark.deep
def test_a_replay_takes_only_what_was_for_its_table(spark: SparkSession, warehouse: str) -> None:
    """Two streams share the quarantine of a database; an event of one never goes into the other's table."""
    wide: list[object] = [debezium("c", None, item(7, 2**40), fields=FIELDS, table="a"), "junk"]
    other: list[object] = [debezium("c", None, {**item(8, 2**40)}, fields=FIELDS, table="b")]
    first: list[object] = [debezium("c", None, item(1, 1), fields=FIELDS)]
    synced(spark, warehouse, [*first, *wide], table="shop.one")
    synced(spark, warehouse, [*first, *other], table="shop.two")
    lake = lakelet.connect(warehouse)
    for name in ("shop.one", "shop.two"):
        lake.table(name).change_type("qty", "BIGINT")
    # As tables of their own they were for no table of the source's names either.
    assert replay_cdc(spark, warehouse, database="shop", primary_key=["id"], overwrite=True).applied == 0
    assert sorted(lake.tables("shop")) == ["cdc_quarantine", "one", "two"]
    counts = replay_cdc(spark, warehouse, table="shop.two", overwrite=True)
    assert (counts.applied, counts.remaining) == (1, 0)
    assert [row["id"] for row in rows(warehouse, "shop.one")] == [1]
    assert [row["id"] for row in rows(warehouse, "shop.two")] == [1, 8]
    assert replay_cdc(spark, warehouse, table="shop.one", overwrite=True).remaining == 1


def test_a_layout_that_is_none_stops_nothing(spark: SparkSession, warehouse: str) -> None:
    """Schemas are written by others as well: each of these raised an error in the batch, again and again."""
    good = debezium("c", None, item(1, 1), fields=FIELDS)

    def with_schema(schema: object) -> dict[str, Any]:
        return {"schema": schema, "payload": good["payload"]}

    sides = [{"field": "after", "fields": "x"}, {"field": "after", "fields": [{"type": "int32"}]}, "after", None]
    wrong: list[object] = [with_schema({"fields": [side]}) for side in sides]
    wrong += [with_schema({"fields": 7}), with_schema("{no JSON")]
    for column in (
        {"field": "c", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "x"}},
        {
            "field": "c",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "9", "connect.decimal.precision": "5"},
        },
        {"field": "", "type": "int32"},
        {"field": "_KEY_id", "type": "int32"},
        {"field": "qty", "type": "int32"},
    ):
        wrong.append(debezium("c", None, item(2, 1), fields=[*FIELDS, column]))
    wrong += ['{"op":"c","source":{"table":"item"},"after":{"id":3,"":1}}', '{"op":"c","after":{"id":1,"id":2}}']
    counts = synced(spark, warehouse, [*wrong, good])
    assert (counts.quarantined, [row["id"] for row in rows(warehouse)]) == (len(wrong), [1])
    assert all(reasons(warehouse))


@pytest.mark.deep
def test_canal_types_that_are_none_stop_nothing(spark: SparkSession, warehouse: str) -> None:
    row = {"id": "1", "price": "1", "note": "x"}
    wrong: list[object] = [canal("INSERT", [row], mysqlType=one) for one in ("x", 7, {"id": "bigint", "": "int"})]
    wrong += [canal("INSERT", [row], mysqlType={"id": "bigint", "note": one}) for one in ("time(99)", "decimal(5,9)")]
    counts = synced(spark, warehouse, [*wrong, canal("INSERT", [row])], format="canal")
    assert (counts.quarantined, len(rows(warehouse))) == (len(wrong), 1)


def test_a_value_that_was_not_sent_is_no_value_in_any_type(spark: SparkSession, warehouse: str) -> None:
    sent = {"id": 1, "note": "n", "bytes": "AQI=", "list": [1]}
    unsent = "__debezium_unavailable_value"
    events: list[object] = [debezium("c", None, sent, fields=TEXTS, lsn=1)]
    for place, change in enumerate(
        ({"note": unsent}, {"bytes": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, {"list": [unsent]}), 2
    ):
        events.append(debezium("u", None, {**sent, **change}, fields=TEXTS, lsn=place))
    counts = synced(spark, warehouse, events)
    assert (counts.quarantined, rows(warehouse)) == (3, [{**sent, "bytes": b"\1\2", "list": "[1]"}])
    # For a delete only the key counts.
    assert synced(spark, warehouse, [debezium("d", {"id": 1, "note": unsent}, None, fields=TEXTS)]).quarantined == 0
    assert rows(warehouse) == []


@pytest.mark.deep
def test_a_computed_part_of_the_key_moves_with_its_column(spark: SparkSession, warehouse: str) -> None:
    """The year is of the key: a row whose day changes leaves its old partition."""
    fields = [*FIELDS, {"field": "born", "type": "int32", "name": "io.debezium.time.Date", "optional": True}]
    old, new = {**item(1, 1), "born": 19722}, {**item(1, 1), "born": 19723}
    how: dict[str, Any] = {
        "computed": {"year": "year(born)"},
        "primary_key": ["id", "year"],
        "partitioned_by": ["year"],
        "metadata": ["source_position"],
        "table_options": {"sequence.field": "source_position"},
    }
    synced(spark, warehouse, [debezium("c", None, old, fields=fields, lsn=1)], **how)
    synced(spark, warehouse, [debezium("u", old, new, fields=fields, lsn=2)], **how)
    assert [(row["id"], row["year"]) for row in rows(warehouse)] == [(1, 2024)]
    synced(spark, warehouse, [debezium("d", new, None, fields=fields, lsn=3)], **how)
    assert rows(warehouse) == []


@pytest.mark.deep
def test_another_key_without_a_sequence_is_put_aside(spark: SparkSession, warehouse: str) -> None:
    """The old row has a sequence, and would stay beside the new one."""
    how: dict[str, Any] = {"table_options": {"sequence.field": "qty"}}
    synced(spark, warehouse, [debezium("c", None, item(1, 5), fields=FIELDS)], **how)
    synced(spark, warehouse, [debezium("u", item(1, 5), item(2, None), fields=FIELDS)], **how)
    assert [row["id"] for row in rows(warehouse)] == [1]
    assert "sequence.field, would delete nothing" in reasons(warehouse)[0]


@pytest.mark.deep
def test_binlogs_sort_by_their_number_and_keys_tell_events_apart(spark: SparkSession, warehouse: str) -> None:
    def place(file: str) -> dict[str, Any]:
        return {"lsn": None, "file": file, "pos": 4}

    late = debezium("u", None, item(1, 2), fields=FIELDS, **place("mysql-bin.1000000"))
    synced(spark, warehouse, [late, debezium("c", None, item(1, 1), fields=FIELDS, **place("mysql-bin.999999"))])
    assert [row["qty"] for row in rows(warehouse)] == [2]
    synced(
        spark,
        warehouse,
        [
            maxwell("update", {"id": 1, "qty": qty}, position=f"bin.{file}:4")
            for qty, file in ((4, 1000000), (3, 999999))
        ],
        format="maxwell",
    )
    assert [row["qty"] for row in rows(warehouse)] == [4]
    same = text(debezium("d", None, None, fields=FIELDS))
    keyed = spark.createDataFrame([(same, '{"no": 1}'), (same, '{"no": 2}')], "value string, key string")
    assert sync_cdc(keyed, warehouse, table="shop.item").quarantined == 2  # type: ignore[union-attr]


ODD = (
    "a.b",
    "`",
    "x y",
    "Ä",
    "日",
    "c,d",
    "n\nl",
    ":",
    "<",
    "kind",
    "reason",
    "place",
    "c0",
    "raw",
    "value",
    "Value",
    "'",
    '"',
)


@pytest.mark.deep
def test_columns_of_any_name(spark: SparkSession, warehouse: str) -> None:
    row = {"id": 1, **{name: f"{place}" for place, name in enumerate(ODD)}}
    fields = [{"field": "id", "type": "int32"}, *({"field": one, "type": "string"} for one in ODD)]
    synced(spark, warehouse, [debezium("c", None, {**row, "a.b": "old"}, fields=fields, lsn=1)])
    synced(spark, warehouse, [debezium("u", row, row, lsn=2), debezium("c", None, {**row, "id": 2}, fields=fields)])
    assert rows(warehouse) == [row, {**row, "id": 2}]


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_many_columns_take_no_longer_than_few(spark: SparkSession, warehouse: str) -> None:
    """Spark's search for filters that follow from others took twice as long with every column: minutes with sixteen."""
    row = {"id": 1, **{f"c{place}": place for place in range(60)}}
    fields = [{"field": name, "type": "int32", "optional": name != "id"} for name in row]
    synced(spark, warehouse, [debezium("c", None, row, fields=fields)])
    assert rows(warehouse) == [row]


MYSQL = {"id": "bigint", "day": "date", "at": "datetime(6)", "clock": "time(3)", "seen": "timestamp"}


@pytest.mark.deep
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Pacific/Apia"])
def test_times_are_the_same_in_every_zone(spark: SparkSession, warehouse: str, zone: str) -> None:
    """02:30 on that day does not exist in New York, and its text was another hour's; a day is missing in Apia."""
    gap = 1710037800000
    row = {**AFTER, "at_ms": gap, "born": 15337, "instant": "2011-12-30T23:59:59.999999+05:30"}
    computed = {name: f"date_format({name}, 'yyyy-MM-dd HH:mm:ss')" for name in ("at_ms", "born", "instant")}
    parts = {f"{name}_hour": f"hour({name})" for name in computed}
    texts = {f"{name}_text": rule for name, rule in computed.items()}
    events: list[object] = [
        canal(
            "INSERT",
            [
                {
                    "id": "1",
                    "day": "2011-12-30",
                    "at": "2024-03-10 02:30:00.5",
                    "clock": "02:30:00.25",
                    "seen": "2024-03-10 02:30:00",
                }
            ],
            mysqlType=MYSQL,
        )
    ]
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        synced(spark, warehouse, [debezium("c", None, row, fields=EVERY_TYPE)], computed={**texts, **parts})
        synced(spark, warehouse, events, format="canal", table="shop.canal")
        strings = {"type_mapping": "to-string", "table": "shop.text"}
        synced(spark, warehouse, [debezium("c", None, {**row, "clock": 5400250000}, fields=EVERY_TYPE)], **strings)
    [found] = rows(warehouse)
    local, instant = datetime(2024, 3, 10, 2, 30), datetime(2011, 12, 30, 18, 29, 59, 999999, tzinfo=UTC)
    assert (found["at_ms"], found["born"], found["instant"], found["clock"]) == (
        *(local, date(2011, 12, 29), instant),
        time(1, 0),
    )
    assert [found[f"{name}_text"] for name in computed] == [
        "2024-03-10 02:30:00",
        "2011-12-29 00:00:00",
        "2011-12-30 18:29:59",
    ]
    assert [found[f"{name}_hour"] for name in computed] == [2, 0, 18]
    [mysql] = rows(warehouse, "shop.canal")
    assert (mysql["day"], mysql["clock"], mysql["seen"]) == (date(2011, 12, 30), time(2, 30, 0, 250000), local)
    assert mysql["at"] == datetime(2024, 3, 10, 2, 30, 0, 500000)
    [shown] = rows(warehouse, "shop.text")
    assert (shown["at_ms"], shown["born"], shown["clock"]) == ("2024-03-10 02:30:00", "2011-12-29", "01:30:00.25")
    assert shown["instant"] == row["instant"]


@pytest.mark.deep
def test_two_layouts_that_agree_are_one_part_of_the_plan(spark: SparkSession, warehouse: str) -> None:
    """Events without a schema may each have other columns: a hundred layouts are read as quickly as one."""
    events: list[object] = [{"id": n, f"c{n % 50}": str(n)} for n in range(100)]
    wrapped: list[object] = [
        maxwell("insert", json.loads(json.dumps(one)), xid=place) for place, one in enumerate(events)
    ]
    counts = synced(spark, warehouse, wrapped, format="maxwell")
    assert (counts.quarantined, len(rows(warehouse))) == (0, 100)
    assert {row["id"]: row["c7"] for row in rows(warehouse) if row["c7"]} == {"7": "7", "57": "57"}


def test_the_quarantine_is_no_target(spark: SparkSession, warehouse: str) -> None:
    """A source table of its name became a table without its columns, and every batch with poison failed."""
    log, plain = SourceTable("shop", None, "cdc_quarantine"), SourceTable("shop", None, "item")
    found = settings_of(warehouse, database="shop")
    assert found.target_of(plain) == "shop.item"
    with pytest.raises(InvalidError, match=r"shop\.cdc_quarantine is the quarantine; table_mapping"):
        found.target_of(log)
    assert settings_of(warehouse, database="shop", quarantine="shop.odd").target_of(log) == "shop.cdc_quarantine"
    with pytest.raises(InvalidError, match=r"quarantine .shop\.item. is the table"):
        settings_of(warehouse, table="shop.item", quarantine="shop.item")
    events = [debezium("c", None, item(1, 1), fields=FIELDS), debezium("c", None, item(2, 1), table="cdc_quarantine")]
    counts = synced(spark, warehouse, events, table=None, database="shop", primary_key="id")
    assert (counts.quarantined, list(counts.snapshots)) == (1, ["shop.item"])
    assert "is the quarantine" in reasons(warehouse)[0]


def test_a_text_is_one_name(warehouse: str) -> None:
    """As in `create_table`: it was taken for a list of letters, and all events were put aside for keys that no event has."""
    found = settings_of(warehouse, database="shop", primary_key="id", partitioned_by="day", metadata="op_ts")
    assert (found.key_of("item", "item"), tuple(found.partitioned_by), list(found.made)) == (
        ("id",),
        ("day",),
        ["op_ts"],
    )
    assert settings_of(warehouse, database="shop", primary_key={"item": "id"}).key_of("item", "i") == ("id",)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_folder_that_is_not_there_is_told(spark: SparkSession, tmp_path: Path, streaming: bool) -> None:
    """The command line took it for a defect of its own."""
    with pytest.raises(NotFoundError, match=r"there is no .*/nope: expected a folder"):
        event_files(spark, tmp_path / "nope", streaming=streaming)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "1.json").write_text("{}\n")
    assert event_files(spark, tmp_path / "events", streaming=streaming).columns == ["value"]
