"""Expiry as operations."""

from lakelet.catalog.lake import Lake
from lakelet.operations.expiry import ExpirePartitions, ExpireSnapshots, expire_partitions, expire_snapshots
from lakelet.table import Table


def test_snapshots_beyond_a_count_expire(table: Table) -> None:
    assert expire_snapshots(table, ExpireSnapshots(retain_min=1, retain_max=1, dry_run=True)).ids == (1, 2)
    assert len(table.snapshots()) == 3
    assert expire_snapshots(table, ExpireSnapshots(retain_min=1, retain_max=1, limit=1)).ids == (1,)
    assert [one.id for one in table.snapshots()] == [2, 3]


def test_the_limit_may_be_an_option(table: Table) -> None:
    request = ExpireSnapshots(retain_min=1, retain_max=1, options={"snapshot.expire.limit": "1"})
    assert expire_snapshots(table, request).ids == (1,)


def test_partitions_expire_by_a_time_read_as_asked(lake: Lake) -> None:
    table = lake.create_table("d.p", [("id", "BIGINT"), ("day", "STRING")], partitioned_by=["day"])
    table.write([{"id": 1, "day": "20250101"}, {"id": 2, "day": "20270115"}])
    request = ExpirePartitions("30 d", timestamp_formatter="yyyyMMdd", timestamp_pattern="$day", dry_run=True)
    assert expire_partitions(table, request).partitions == ({"day": "20250101"},)
