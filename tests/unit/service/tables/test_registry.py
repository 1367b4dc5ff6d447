"""Tables of the service are native tables: created, attached, archived, dropped, and found again by a restart."""

from pathlib import Path
from typing import Any

import pytest

from lakelet.options import SERVICE_STATUS
from tests.unit.service.served_lake import MORNING, ServedLake


def test_a_table_has_the_columns_and_keys_that_its_properties_choose(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("plain")
        served.create("by_id", properties={"primary_key": "id", "buckets": "2"})
        served.create("by_both", properties={"primary_key": "id, timestamp"})
        served.create("folders", properties={"partitioning": "id-day"})
        served.create("declared", properties={"payload.price": "DECIMAL(10, 2)", "file.compression": "zstd"})
        lake = served.lake
        plain = lake.table("default.plain").schema
        assert [(field.name, str(field.type)) for field in plain.fields] == [
            ("id", "STRING NOT NULL"),
            ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
            ("payload_rest", "STRING"),
            ("dt", "DATE"),
        ]
        assert (plain.partition_keys, plain.primary_keys, plain.options["bucket-key"]) == (("dt",), (), "id")
        by_id = lake.table("default.by_id").schema
        assert (by_id.partition_keys, by_id.primary_keys, by_id.options["bucket"]) == ((), ("id",), "2")
        by_both = lake.table("default.by_both").schema
        assert (by_both.partition_keys, by_both.primary_keys) == (("dt",), ("id", "timestamp", "dt"))
        assert lake.table("default.folders").schema.partition_keys == ("id", "dt")
        assert str(lake.table("default.declared").schema.field("payload").type) == "ROW<`price` DECIMAL(10, 2)>"
        served.write("declared", {"price": "9.95"})
        assert served.payloads("declared") == [{"price": "9.95"}]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"table_name": "1t"}, 400),
        ({"table_name": "a" * 65}, 400),
        ({"table_name": "../t"}, 400),
        ({"table_name": "t", "config": {"buffer_size": -1}}, 400),
        ({"table_name": "t", "config": {"retention_days": 2**31}}, 400),
        ({"table_name": "t", "config": {"buffer_size": "many"}}, 400),
        ({"table_name": "t", "config": {"bufer_size": 1}}, 400),
        ({"table_name": "t", "config": {"properties": {"service.status": "deleting"}}}, 400),
        ({"table_name": "t", "config": {"properties": {"merge-engine": "aggregation"}}}, 400),
        ({"table_name": "t", "config": {"properties": {"no-such-option": "1"}}}, 400),
        ({"table_name": "t", "config": {"properties": {"primary_key": "payload"}}}, 400),
        ({"table_name": "t", "config": {"properties": {"payload.x": "NO TYPE"}}}, 400),
        ({"table_name": "T_there"}, 409),
        ({"table_name": "t_there"}, 409),
        ({"table_name": "t_there", "if_not_exists": True}, 200),
        ({"table_name": "t", "config": {"properties": {"attach": "default.nowhere"}}}, 404),
    ],
)
def test_what_cannot_be_created_is_refused(tmp_path: Path, body: dict[str, Any], status: int) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t_there")
        answer = served.request("POST", "/v1/tables", json=body)
        assert answer.status_code == status, answer.text
        assert served.lake.tables("default") == ["t_there"]


def test_zero_is_the_default_of_sizes_and_intervals(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", buffer_size=0)
        config = served.request("GET", "/v1/tables/t").json()["table_info"]["config"]
        assert (config["buffer_size"], config["flush_interval_seconds"], config["retention_days"]) == (10_000, 30, 0)


def test_a_restart_serves_the_same_tables(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", buffer_size=7, retention_days=0, backup_enabled=True)
        served.write("t", {"a": 1})
        created = served.request("GET", "/v1/tables/t").json()["table_info"]["created_at"]
    with ServedLake(tmp_path) as served:
        info = served.request("GET", "/v1/tables/t").json()["table_info"]
        assert (info["created_at"], info["config"]["buffer_size"], info["config"]["backup_enabled"]) == (
            created,
            7,
            True,
        )
        assert served.payloads("t") == [{"a": 1}]


def test_an_archived_table_refuses_rows_until_it_is_active_again(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        assert served.request("PATCH", "/v1/tables/t", json={"status": "archived"}).status_code == 200
        body = {"table": "t", "id": "a", "timestamp": MORNING, "payload": {}}
        assert served.request("POST", "/v1/data", json=body).status_code == 400
        assert served.request("DELETE", "/v1/data/t/a").status_code == 400
        assert served.request("GET", "/v1/tables").json()["tables"][0]["status"] == "archived"
        assert served.request("PATCH", "/v1/tables/t", json={"status": "deleting"}).status_code == 400
    with ServedLake(tmp_path) as served:
        assert served.request("POST", "/v1/data", json=body).status_code == 400
        served.request("PATCH", "/v1/tables/t", json={"status": "active"})
        assert served.request("POST", "/v1/data", json=body).status_code == 200


def test_patch_changes_what_it_names(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", buffer_size=7, retention_days=3)
        options = served.lake.table("default.t").options
        assert options["partition.expiration-time"] == "3 d"
        change = {"config": {"retention_days": 0, "properties": {"file.compression": "zstd"}}}
        info = served.request("PATCH", "/v1/tables/t", json=change).json()["table_info"]
        assert (info["config"]["buffer_size"], info["config"]["retention_days"]) == (7, 0)
        options = served.lake.table("default.t").options
        assert "partition.expiration-time" not in options
        assert options["file.compression"] == "zstd"


def test_drop_leaves_a_table_of_the_lake_with_all_rows(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"a": 1})
        answer = served.request("DELETE", "/v1/tables/t").json()
        assert (answer["success"], answer["files_deleted"]) == (True, 0)
        assert served.request("GET", "/v1/tables/t").status_code == 404
        assert served.rows("SELECT count(*) AS n FROM t") == [{"n": 1}]
        assert not [key for key in served.lake.table("default.t").options if key.startswith("service.")]
        served.create("t2", properties={"attach": "t"})
        assert served.payloads("t2") == [{"a": 1}]


def test_cascade_deletes_files_and_logs_and_says_how_many(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"a": 1})
        served.flush("t")
        answer = served.request("DELETE", "/v1/tables/t?cascade=true").json()
        assert answer["files_deleted"] == 1
        assert served.lake.tables("default") == []
        assert list((tmp_path / "wal").iterdir()) == []
        assert served.request("DELETE", "/v1/tables/t?cascade=true").status_code == 404
        assert served.request("DELETE", "/v1/tables/t?cascade=true&if_exists=true").status_code == 200
        served.create("t")
        assert served.records("t") == []


def test_a_drop_that_a_crash_interrupted_is_finished_by_the_next_start(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {"a": 1})
        served.create("stays")
    served.lake.table("default.t").set_options({SERVICE_STATUS.name: "deleting"})
    with ServedLake(tmp_path) as served:
        assert served.lake.tables("default") == ["stays"]
        assert served.request("GET", "/v1/tables/t").status_code == 404


def test_list_has_a_pattern_and_a_total(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        for name in ("users", "user_events", "orders"):
            served.create(name)
        answer = served.request("GET", "/v1/tables?pattern=user*").json()
        assert ([one["name"] for one in answer["tables"]], answer["total"]) == (["user_events", "users"], 2)
        assert served.request("GET", "/v1/tables").json()["total"] == 3
        keys = {"name", "created_at", "last_write", "status", "record_count", "file_count", "size_bytes"}
        assert set(answer["tables"][0]) == keys


def test_statistics_come_from_metadata_and_count_buffered_records(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        served.write("t", {}, id="a", timestamp="2026-01-30T23:59:59.5Z")
        served.write("t", {}, id="b", timestamp="2026-02-01T01:00:00+02:00")
        served.flush("t")
        served.write("t", {}, id="c")
        stats = served.request("GET", "/v1/tables/t").json()["stats"]
        assert (stats["record_count"], stats["buffered_records"]) == (3, 1)
        assert stats["file_count"] == 2
        assert stats["size_bytes"] > 0
        assert stats["oldest_record"] == "2026-01-30T23:59:59.500000Z"
        assert stats["newest_record"] == "2026-01-31T23:00:00Z"
        total = served.request("GET", "/v1/stats").json()
        assert total == {"tables": 1, "records": 3, "files": 2, "bytes": stats["size_bytes"], "buffered_records": 1}


def test_a_table_made_elsewhere_is_served_with_its_own_columns(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        lake = served.lake
        lake.create_database("shop")
        sales = lake.create_table(
            "shop.sales",
            [
                ("id", "STRING NOT NULL"),
                ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
                ("amount", "DECIMAL(10, 2)"),
                ("Note", "STRING"),
            ],
        )
        sales.write([{"id": "old", "timestamp": None, "amount": None, "Note": "there before"}])
        served.create("sales", properties={"attach": "shop.sales"})
        served.write("sales", {"amount": 9.95, "Note": "x"}, id="a")
        for payload in ({"amount": "much"}, {"note": "other case"}, {"new": 1}, {"amount": 9.999}):
            body = {"table": "sales", "id": "b", "timestamp": MORNING, "payload": payload}
            answer = served.request("POST", "/v1/data", json=body)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), payload
        assert served.payloads("sales", "a") == [{"amount": "9.95", "Note": "x"}]
        assert served.payloads("sales", "old") == [{"Note": "there before"}]
        assert len(sales.schemas()) == 2
        answer = served.request(
            "POST", "/v1/tables", json={"table_name": "again", "config": {"properties": {"attach": "shop.sales"}}}
        )
        assert answer.status_code == 409
    with ServedLake(tmp_path) as served:
        assert len(served.records("sales", "a")) == 1


def test_a_table_without_the_columns_of_a_record_is_not_attached(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.lake.create_table("default.no_time", [("id", "STRING NOT NULL")])
        served.lake.create_table("default.numbered", [("id", "BIGINT"), ("timestamp", "TIMESTAMP(6)")])
        for name in ("no_time", "numbered"):
            body = {"table_name": name, "config": {"properties": {"attach": name}}}
            assert served.request("POST", "/v1/tables", json=body).status_code == 400
            assert served.request("GET", f"/v1/tables/{name}").status_code == 404


def test_a_table_that_cannot_be_opened_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        for name in ("good", "bad", "torn"):
            served.create(name)
            served.write(name, {"n": 1})
        logs = Path(served.service.tables.open("torn").wal_path)
    for schema in (tmp_path / "warehouse" / "default.db" / "bad" / "schema").iterdir():
        schema.write_text("{ broken")
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "wal-99999.log").write_bytes(b"no log at all" * 10)
    with ServedLake(tmp_path) as served:
        assert served.rows("SELECT count(*) AS n FROM good") == [{"n": 1}]
        health = served.request("GET", "/v1/health").json()
        assert health["status"] == "ok"
        assert {name for name in health["details"] if name.startswith("table.")} == {"table.bad", "table.torn"}
        for name in ("bad", "torn"):
            body = {"table": name, "id": "a", "timestamp": "2026-01-31T10:00:00Z", "payload": {}}
            assert served.request("POST", "/v1/data", json=body).status_code == 503
            assert served.request("GET", f"/v1/tables/{name}").status_code == 503
    assert (logs / "wal-99999.log").exists()


def test_a_table_of_the_lake_that_is_not_served_is_refused_without_its_folder(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t")
        assert served.request("DELETE", "/v1/tables/t").status_code == 200
        there = served.request("POST", "/v1/tables", json={"table_name": "t"})
        assert (there.status_code, there.json()["code"]) == (409, "already-exists")
        assert "attach" in there.json()["detail"]
        body = {"table_name": "u", "config": {"properties": {"attach": "shop.nowhere"}}}
        missing = served.request("POST", "/v1/tables", json=body)
        assert missing.status_code == 404
        assert str(tmp_path) not in there.text + missing.text


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"bucket": "-2"}, "postponed"),
        ({"buckets": "-2"}, "postponed"),
        ({"deletion-vectors.enabled": "true", "write-only": "true"}, "write-only"),
        ({"changelog-producer": "input"}, "changelog-producer"),
    ],
)
def test_a_table_that_could_not_be_written_to_is_refused(
    tmp_path: Path, properties: dict[str, str], words: str
) -> None:
    with ServedLake(tmp_path) as served:
        body = {"table_name": "t", "config": {"properties": {"primary_key": "id", **properties}}}
        answer = served.request("POST", "/v1/tables", json=body)
        assert (answer.status_code, words in answer.text) == (400, True)
        assert served.lake.tables("default") == []
        served.create("t", properties={"primary_key": "id"})
        # In memory: its flush would hide it.
        served.write("t", {"a": 1})
        properties = {"bucket" if name == "buckets" else name: text for name, text in properties.items()}
        answer = served.request("PATCH", "/v1/tables/t", json={"config": {"properties": properties}})
        assert answer.status_code == 400
        served.write("t", {"a": 2}, id="b")
        served.flush("t")
        assert served.rows("SELECT count(*) AS n FROM default.t") == [{"n": 2}]


def test_a_table_that_is_only_read_can_be_attached_and_altered(tmp_path: Path) -> None:
    columns = [("id", "STRING NOT NULL"), ("timestamp", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("n", "BIGINT")]
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "bucket": "-1"}
    with ServedLake(tmp_path) as served:
        served.lake.create_database("shop", if_not_exists=True)
        table = served.lake.create_table("shop.sums", columns, primary_key=["id"], options=options)
        for _ in range(2):
            table.write([{"id": "a", "timestamp": None, "n": 2}])
        served.create("sums", properties={"attach": "shop.sums"})
        assert served.request("PATCH", "/v1/tables/sums", json={"config": {"buffer_size": 7}}).status_code == 200
        answer = served.request("POST", "/v1/query", json={"sql": "SELECT n FROM sums"})
        assert answer.json()["result_json"] == '[{"n":4}]'
        body = {"table": "sums", "id": "a", "timestamp": MORNING, "payload": {"n": 1}}
        answer = served.request("POST", "/v1/data", json=body)
        assert (answer.status_code, "merge-engine" in answer.text) == (400, True)
