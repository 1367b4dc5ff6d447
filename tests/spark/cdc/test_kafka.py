"""From a real PostgreSQL through a real Kafka into tables, by the command line: they are equal to the source in the end.

Triggers write the events as Debezium does without a schema, decimals as text. Statements are random, with changed keys, deletes
and columns that are added on the way; the topic has three partitions, and some events come twice.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakelet
from tests.services.kafka import KafkaService, kafka
from tests.services.postgres import PostgresService, postgres
from tests.services.server import ServiceMissing
from tests.spark.java import spark_environment
from tests.spark.programs import kafka_produce

pytestmark = [pytest.mark.deep]

SOURCE = """
CREATE TABLE item (id BIGINT PRIMARY KEY, price NUMERIC(20, 4), note TEXT, born DATE, at TIMESTAMP(6), seen TIMESTAMPTZ);
CREATE SEQUENCE place;
CREATE TABLE outbox (n BIGINT PRIMARY KEY, key JSONB, value JSON);
CREATE FUNCTION event() RETURNS TRIGGER AS $$
DECLARE n BIGINT := nextval('place'); old_row JSON; new_row JSON; op TEXT;
BEGIN
  op := lower(left(TG_OP, 1)); op := CASE op WHEN 'i' THEN 'c' ELSE op END;
  IF TG_OP <> 'INSERT' THEN old_row := row_to_json(OLD); END IF;
  IF TG_OP <> 'DELETE' THEN new_row := row_to_json(NEW); END IF;
  INSERT INTO outbox SELECT n, jsonb_build_object('id', coalesce(new_row, old_row)->'id'), json_build_object(
    'before', old_row, 'after', new_row, 'op', op, 'ts_ms', 1704067200000,
    'source', json_build_object('db', 'shop', 'schema', 'public', 'table', 'item', 'lsn', n, 'ts_ms', 1704067200000));
  RETURN NULL;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER events AFTER INSERT OR UPDATE OR DELETE ON item FOR EACH ROW EXECUTE FUNCTION event();
"""
COLUMNS = [
    ("id", "BIGINT NOT NULL"),
    ("price", "DECIMAL(20, 4)"),
    ("note", "STRING"),
    ("born", "DATE"),
    ("at", "TIMESTAMP(6)"),
    ("seen", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("source_position", "STRING"),
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, java: str) -> Iterator[KafkaService]:
    yield from _started(kafka(tmp_path_factory.mktemp("kafka"), java))


@pytest.fixture(scope="module")
def source() -> Iterator[PostgresService]:
    yield from _started(postgres())


def _started(context: Any) -> Iterator[Any]:
    try:
        started = context.__enter__()
    except ServiceMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs this service: {missing}")
        pytest.skip(str(missing))
    try:
        yield started
    finally:
        context.__exit__(None, None, None)


def statements(random: random.Random, count: int, *, more: bool) -> str:
    """Random changes of a few keys."""
    made: list[str] = []
    for _ in range(count):
        key, other = random.randrange(20), random.randrange(20)
        price = random.choice(["NULL", str(Decimal(random.randrange(-(10**18), 10**18)).scaleb(-4))])
        note = random.choice(["NULL", "'ä\"\\n\n,}'", "''", "'x'"])
        at = random.choice(["NULL", "'0999-12-31 23:59:59.999999'", "'2024-02-29 12:00:00.5'"])
        seen = random.choice(["NULL", "'2024-01-01 00:00:00.123456+05:30'"])
        extra = (", qty", f", {2**60 + key}") if more else ("", "")
        row = f"{price}, {note}, '2024-01-{1 + key:02}', {at}, {seen}{extra[1]}"
        names = f"price, note, born, at, seen{extra[0]}"
        made += {
            0: [
                f"INSERT INTO item (id, {names}) VALUES ({key}, {row}) ON CONFLICT (id) DO UPDATE SET price = {price};"
            ],
            1: [f"UPDATE item SET ({names}) = ROW({row}) WHERE id = {key};"],
            2: [f"DELETE FROM item WHERE id = {key};"],
            3: [
                f"UPDATE item SET id = {other} WHERE id = {key} AND NOT EXISTS (SELECT 1 FROM item WHERE id = {other});"
            ],
        }[random.choice([0, 0, 1, 2, 3])]
    return "\n".join(made)


def send(source: PostgresService, broker: KafkaService, file: Path, after: int, random: random.Random) -> int:
    """Sends the events after a place, some of them twice, and returns the last place."""
    chosen = (
        f"SELECT n || ' ' || json_build_object('key', key::text, 'value', value::text) FROM outbox WHERE n > {after}"
    )
    lines = [line.split(" ", 1) for line in source.run(f"{chosen} ORDER BY n;").splitlines()]
    again = [line for line in lines if random.random() < 0.2]
    file.write_text("".join(line + "\n" for _, line in [*lines, *again]))
    run([sys.executable, kafka_produce.__file__, str(file), broker.bootstrap, "item", broker.spark_jars])
    return int(lines[-1][0]) if lines else after


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


ENVIRONMENT: dict[str, str] = {}


def synced(broker: KafkaService, tmp_path: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "lakelet", "cdc", "sync", "--kafka", broker.bootstrap, "--topic", "item", "--json"),
        *("--checkpoint", str(tmp_path / "checkpoint"), "--warehouse", str(tmp_path / "wh"), "--table", "shop.item"),
        *("--set", "decimals=string", "--set", "metadata=source_position", "--set", "order=source"),
        *("--conf", f"spark.jars={broker.spark_jars}", *more),
    ]


def test_tables_equal_their_source(source: PostgresService, broker: KafkaService, java: str, tmp_path: Path) -> None:
    ENVIRONMENT.update({**os.environ, **spark_environment(java)})
    chosen = random.Random(7)
    lake = lakelet.connect(str(tmp_path / "wh"))
    lake.create_database("shop")
    options = {"bucket": 2, "sequence.field": "source_position"}
    table = lake.create_table("shop.item", COLUMNS, primary_key=["id"], options=options)
    source.run(SOURCE)
    last = 0
    for more in (False, True):
        if more:
            source.run("ALTER TABLE item ADD COLUMN qty BIGINT;")
            lake.table("shop.item").add_column("qty", "BIGINT")
        source.run(statements(chosen, 150, more=more))
        last = send(source, broker, tmp_path / "events", last, chosen)
        told = json.loads(run(synced(broker, tmp_path)).splitlines()[-1])
        assert told["quarantined"] == 0
        assert told["rows"] > 0
        found = table.scan().to_arrow().drop_columns(["source_position"]).to_pylist()
        expected = source.run("SELECT row_to_json(item) FROM item ORDER BY id;").splitlines()
        assert sorted(map(shown, found), key=lambda row: row["id"]) == [
            json.loads(line, parse_float=str) for line in expected
        ]
    # Nothing new: nothing is committed.
    before = len(table.snapshots())
    run(synced(broker, tmp_path))
    assert len(table.snapshots()) == before


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row as row_to_json shows it."""
    made = dict(row)
    made["price"] = None if row["price"] is None else str(row["price"])
    made["born"] = row["born"].isoformat()
    made["at"] = None if row["at"] is None else _iso(row["at"].isoformat())
    made["seen"] = None if row["seen"] is None else _iso(row["seen"].isoformat().removesuffix("+00:00")) + "+00:00"
    return made


def _iso(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def test_a_broker_that_is_gone_is_one_line(java: str, tmp_path: Path, broker: KafkaService) -> None:
    ENVIRONMENT.update({**os.environ, **spark_environment(java)})
    gone = KafkaService("127.0.0.1:1", broker.spark_jars)
    done = subprocess.run(
        synced(gone, tmp_path, "--conf", "spark.sql.streaming.kafka.useDeprecatedOffsetFetching=false"),
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 1
    assert "UnavailableError" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
