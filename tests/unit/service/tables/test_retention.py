"""Retention of tables that nobody writes to."""

import time
from datetime import timedelta
from pathlib import Path

from tests.unit.service.served_lake import ServedLake

LATE = "2126-01-31T10:00:00Z"
BY_DATE = {"partition.expiration-strategy": "values-time"}
KEPT, GONE = [{"n": 2}], [{"n": 1}]


def test_expired_days_of_an_idle_table_are_dropped(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=BY_DATE)
        served.create("by_key", properties={"primary_key": "id"}, retention_days=30)
        for table in ("t", "by_key"):
            served.write(table, {"n": 1}, id="old", timestamp="2020-01-31T10:00:00Z")
            served.write(table, {"n": 2}, id="new", timestamp=LATE)
            served.flush(table)
        assert served.run(served.service.retention.sweep()) == 0
        served.request("PATCH", "/v1/tables/t", json={"config": {"retention_days": 30}})
        assert served.payloads("t", "old") == GONE
        assert served.run(served.service.retention.sweep()) == 1
        assert (served.payloads("t", "old"), served.payloads("t", "new")) == ([], KEPT)
        assert served.run(served.service.retention.sweep()) == 0


def test_start_drops_days_that_expired_meanwhile(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", properties=BY_DATE)
        served.write("t", {"n": 1}, id="old", timestamp="2020-01-31T10:00:00Z")
        served.flush("t")
        served.request("PATCH", "/v1/tables/t", json={"config": {"retention_days": 30}})
    with ServedLake(tmp_path) as served:
        end = time.monotonic() + 900
        while served.payloads("t", "old") and time.monotonic() < end:
            pass
        assert served.payloads("t", "old") == []
        # A table whose files cannot be read keeps nobody from the others.
        served.lake.drop_table("default.t")
        assert served.run(served.service.retention.sweep()) == 0


def test_a_day_that_was_written_to_is_kept_whatever_its_date(tmp_path: Path) -> None:
    with ServedLake(tmp_path) as served:
        served.create("t", retention_days=30)
        served.write("t", {"n": 1}, id="old", timestamp="2020-01-31T10:00:00Z")
        served.flush("t")
        assert served.run(served.service.retention.sweep()) == 0
        assert served.payloads("t", "old") == GONE
        served.lake.table("default.t").expire_partitions(older_than=timedelta(0))
        assert served.payloads("t", "old") == []
