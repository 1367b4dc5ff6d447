"""Expiry and clean-up beside Java: each leaves the files that the other would leave, and both go on where the other stopped."""

from __future__ import annotations

import shutil
import time
from datetime import datetime, timedelta

import pytest

from lakelet.commit.retention.expiry import ExpiredSnapshots
from tests.conformance.tables import DATABASE, JAVA, LAKELET, Rows, Warehouse

COLUMNS = [("id", "INT"), ("p", "STRING"), ("v", "INT")]
LONG = {"changelog.num-retained.max": "100"}
KINDS = {
    "append": {},
    "keyed": {"bucket": "2", "num-sorted-run.compaction-trigger": "2"},
    "dynamic": {"bucket": "-1", "num-sorted-run.compaction-trigger": "2"},
    "deletion vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "changelog": {"bucket": "1", "changelog-producer": "input"},
    "long changelog": {"bucket": "1", "changelog-producer": "input", "changelog.num-retained.min": "4", **LONG},
    "long changes": {
        "bucket": "1",
        "changelog.num-retained.min": "4",
        "num-sorted-run.compaction-trigger": "2",
        **LONG,
    },
}


def rows(step: int) -> Rows:
    return [{"id": id_, "p": "ab"[id_ % 2], "v": step} for id_ in range(step, step + 6)]


def make(warehouse: Warehouse, kind: str, **options: str) -> None:
    key = [] if kind == "append" else ["id", "p"]
    everything = {**KINDS[kind], "snapshot.num-retained.min": "100", "snapshot.num-retained.max": "100", **options}
    warehouse.create(JAVA, "t", COLUMNS, primary_key=key, partitioned_by=["p"], options=everything)


def fill(warehouse: Warehouse, writers: tuple[str, ...], name: str = "t", start: int = 0) -> None:
    for step, writer in enumerate(writers, start):
        warehouse.write(writer, name, rows(step))


def copy(warehouse: Warehouse, name: str) -> None:
    shutil.copytree(warehouse.path("t"), warehouse.path(name))
    # A copy is a table of its own.
    (warehouse.path(name) / "metadata").unlink(missing_ok=True)


def files(warehouse: Warehouse, name: str) -> set[str]:
    """Everything but hints and what only Lakelet keeps."""
    folder = warehouse.path(name)
    found = {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")
    }
    ours = (
        "commit-users/",
        "expiring/",
        "metadata",
        "schema/",
        "snapshot/EARLIEST",
        "changelog/EARLIEST",
        "changelog/LATEST",
    )
    return {path for path in found if not path.startswith(ours)}


def java(warehouse: Warehouse, command: str, name: str, *arguments: object) -> list[object]:
    return warehouse.java.call(command, warehouse.folder, f"{DATABASE}.{name}", *arguments)


def expire(warehouse: Warehouse, name: str, keep: int | None = None) -> ExpiredSnapshots:
    """Lakelet's expiry, with a commit timeout so short that every snapshot is old enough."""
    table = warehouse.table(name)
    table.set_options({"commit.timeout": "1 ms"})
    time.sleep(0.01)
    expired = table.expire_snapshots(keep)
    table.reset_options(["commit.timeout"])
    return expired


def versions(warehouse: Warehouse, name: str) -> dict[int, Rows]:
    """Every snapshot, as Lakelet and Java agree on it."""
    found = {}
    for snapshot in warehouse.table(name).snapshots():
        found[snapshot.id] = warehouse.agree(name, readers=(LAKELET, JAVA), snapshot=snapshot.id)
    assert [value["id"] for value in java(warehouse, "snapshots", name)] == list(found)  # type: ignore[index,call-overload]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_both_leave_the_same_files(warehouse: Warehouse, kind: str) -> None:
    make(warehouse, kind)
    fill(warehouse, (JAVA,) * 5)
    java(warehouse, "compact", "t") if kind in ("keyed", "dynamic") else None
    tagged = warehouse.agree("t", readers=(LAKELET, JAVA), snapshot=2)
    java(warehouse, "tag", "t", "second", 2)
    before = versions(warehouse, "t")
    for name, counts in (("theirs", 2), ("ours", 2)):
        copy(warehouse, name)
        retained = {"snapshot.num-retained.min": str(counts), "snapshot.num-retained.max": str(counts)}
        warehouse.table(name).set_options(retained)
    java(warehouse, "expire-by-options", "theirs")
    expired = expire(warehouse, "ours")
    assert expired.ids == tuple(before)[:-2]
    assert files(warehouse, "ours") == files(warehouse, "theirs")
    for name in ("ours", "theirs"):
        assert versions(warehouse, name) == {number: before[number] for number in list(before)[-2:]}
        assert warehouse.agree(name, readers=(LAKELET, JAVA), tag="second") == tagged
        assert java(warehouse, "orphans", name, int(time.time() * 1000) + 86_400_000) == []
        assert warehouse.table(name).remove_orphan_files("0 s", dry_run=True).count == 0


@pytest.mark.parametrize("kind", ["append", "keyed", "dynamic", "deletion vectors"])
def test_they_take_turns(warehouse: Warehouse, kind: str) -> None:
    make(warehouse, kind)
    fill(warehouse, (LAKELET, JAVA, LAKELET, JAVA, LAKELET))
    table = warehouse.table("t")
    java(warehouse, "expire", "t", 6)
    expire(warehouse, "t", 5)
    java(warehouse, "tag", "t", "kept")
    kept = warehouse.agree("t", readers=(LAKELET, JAVA))
    fill(warehouse, (JAVA, LAKELET, JAVA), start=5)
    expire(warehouse, "t", 3)
    java(warehouse, "expire", "t", 2)
    fill(warehouse, (LAKELET, JAVA), start=8)
    last = warehouse.agree("t", readers=(LAKELET, JAVA))
    java(warehouse, "expire", "t", 2)
    expire(warehouse, "t", 1)
    assert versions(warehouse, "t") == {table.snapshots()[-1].id: last}
    assert warehouse.agree("t", readers=(LAKELET, JAVA), tag="kept") == kept
    assert table.remove_orphan_files("0 s", dry_run=True).count == 0
    assert java(warehouse, "orphans", "t", int(time.time() * 1000) + 86_400_000) == []
    fill(warehouse, (JAVA, LAKELET), start=10)
    warehouse.agree("t", readers=(LAKELET, JAVA))


def test_pypaimon_reads_what_is_left(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"])
    fill(warehouse, (LAKELET, JAVA, LAKELET, JAVA))
    expected = warehouse.agree("t")
    expire(warehouse, "t", 1)
    assert warehouse.agree("t") == expected


def test_a_named_user_outlives_java_and_its_orphan_removal(warehouse: Warehouse) -> None:
    warehouse.create(LAKELET, "t", COLUMNS)
    table = warehouse.table("t")
    warehouse.write(LAKELET, "t", rows(0))
    table.write(table.scan().to_arrow(), commit_user="job", commit_identifier=4)
    fill(warehouse, (JAVA, JAVA))
    expire(warehouse, "t", 1)
    folder = warehouse.path("t") / "commit-users"
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1
    java(warehouse, "orphans", "t", int(time.time() * 1000) + 86_400_000)
    assert len([path for path in folder.rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize(
    ("spelling", "options"),
    [
        ("%Y-%m-%d", {}),
        ("%Y%m%d", {"partition.timestamp-formatter": "yyyyMMdd"}),
        ("%Y/%m", {"partition.timestamp-pattern": "$p/01", "partition.timestamp-formatter": "yyyy/MM/dd"}),
        ("%Y-%m-%d", {"partition.expiration-strategy": "update-time", "partition.expiration-time": "1 ms"}),
        ("%Y-%m-%d", {"partition.expiration-max-num": "2"}),
    ],
)
def test_both_drop_the_same_partitions(warehouse: Warehouse, spelling: str, options: dict[str, str]) -> None:
    everything = {
        "partition.expiration-time": "60 d",
        "partition.expiration-check-interval": "0 s",
        "write-only": "true",
    }
    warehouse.create(LAKELET, "t", COLUMNS, partitioned_by=["p"], options={**everything, **options})
    now = datetime.now()
    days = [(now - timedelta(days=age)).strftime(spelling) for age in (1000, 200, 100, 61, 58, 1)]
    texts = [*days, "no time", "2026-13-45", "2020-2-30", None]
    data: Rows = [{"id": number, "p": text, "v": 0} for number, text in enumerate(texts)]
    warehouse.write(LAKELET, "t", data)
    time.sleep(0.01)
    copy(warehouse, "theirs")
    java(warehouse, "expire-partitions", "theirs")
    warehouse.table("t").expire_partitions()
    left = warehouse.agree("t", readers=(LAKELET, JAVA))
    assert left == warehouse.agree("theirs", readers=(LAKELET, JAVA))
    assert len(left) < len(data)
