"""Tags, branches, rollbacks and consumers, made by Lakelet and by Java in turns, and read by all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lakelet.table import Table
from tests.conformance.tables import JAVA, LAKELET, NATIVE, PYTHON, Rows, Warehouse, in_order

FULL = "db.t"
COLUMNS = [("id", "INT"), ("p", "STRING")]
MAKERS = [LAKELET, JAVA]
OTHER = {LAKELET: JAVA, JAVA: LAKELET}
ALL = (LAKELET, JAVA, PYTHON, NATIVE)
BOTH = (LAKELET, JAVA)
KEYS = pytest.mark.parametrize("primary_key", [[], ["id"]], ids=["append", "keyed"])


@dataclass(frozen=True, slots=True)
class Versioned:
    """A table whose tags, branches and rollbacks either implementation makes."""

    warehouse: Warehouse

    @property
    def table(self) -> Table:
        return self.warehouse.table("t")

    def put(self, writer: str, *ids: int, branch: str | None = None) -> None:
        rows: Rows = [{"id": id_, "p": "x"} for id_ in ids]
        if writer == JAVA:
            self.warehouse.java.write(self.warehouse.folder, FULL, rows, branch=branch)
        else:
            (self.table if branch is None else self.table.on_branch(branch)).write(rows)

    def java(self, command: str, *arguments: Any) -> Any:
        return getattr(self.warehouse.java, command)(self.warehouse.folder, FULL, *arguments)

    def tag(self, maker: str, name: str, snapshot: int | None = None) -> None:
        self._by(maker, lambda table: table.tags.create(name, snapshot), "tag", name, snapshot)

    def delete_tag(self, maker: str, name: str) -> None:
        self._by(maker, lambda table: table.tags.delete(name), "delete_tag", name)

    def rename_tag(self, maker: str, name: str, new: str) -> None:
        self._by(maker, lambda table: table.tags.rename(name, new), "rename_tag", name, new)

    def replace_tag(self, maker: str, name: str, snapshot: int | None = None) -> None:
        self._by(maker, lambda table: table.tags.replace(name, snapshot), "replace_tag", name, snapshot)

    def branch(self, maker: str, name: str, tag: str | None = None) -> None:
        self._by(maker, lambda table: table.branches.create(name, tag), "branch", name, tag)

    def delete_branch(self, maker: str, name: str) -> None:
        self._by(maker, lambda table: table.branches.delete(name), "delete_branch", name)

    def rename_branch(self, maker: str, name: str, new: str) -> None:
        self._by(maker, lambda table: table.branches.rename(name, new), "rename_branch", name, new)

    def fast_forward(self, maker: str, name: str) -> None:
        self._by(maker, lambda table: table.branches.fast_forward(name), "fast_forward", name)

    def rollback(self, maker: str, to: int | str) -> None:
        self._by(maker, lambda table: table.rollback(to), "rollback", to)

    def expire(self, maker: str, keep: int) -> None:
        self._by(maker, lambda table: _expire(table, keep), "expire", keep)

    def _by(self, maker: str, lakelet: Callable[[Table], object], command: str, *arguments: Any) -> None:
        if maker == LAKELET:
            lakelet(self.table)
        else:
            self.java(command, *arguments)

    def ids(self, readers: tuple[str, ...] = ALL, **version: Any) -> list[int]:
        """The ids, on which all readers agree."""
        return sorted(row["id"] for row in self.warehouse.agree("t", readers=readers, **version))

    def tags(self) -> list[str]:
        """The names of the tags, on which both implementations agree."""
        found = sorted(tag.name for tag in self.table.tags.list())
        assert sorted(tag["tagName"] for tag in self.java("tags")) == found
        return found

    def branches(self) -> list[str]:
        found = self.table.branches.list()
        assert sorted(self.java("branches")) == found
        return found

    def numbers(self) -> list[int]:
        found = [snapshot.id for snapshot in self.table.snapshots()]
        assert [snapshot["id"] for snapshot in self.java("snapshots")] == found
        return found


def _expire(table: Table, keep: int) -> None:
    """As Java does on demand: whatever the age of snapshots."""
    table.set_options({"commit.timeout": "0 ms"})
    table.expire_snapshots(retain_last=keep, retain_max=keep)
    table.reset_options(["commit.timeout"])


@pytest.fixture
def made(warehouse: Warehouse) -> Versioned:
    return make(warehouse, [])


def make(warehouse: Warehouse, primary_key: list[str], **options: str) -> Versioned:
    given = {"bucket": "1", "bucket-key": "id", "write-only": "true"} | options
    warehouse.create(LAKELET, "t", COLUMNS, primary_key=primary_key, options=given)
    return Versioned(warehouse)


@pytest.mark.parametrize("maker", MAKERS)
@KEYS
def test_tags(warehouse: Warehouse, maker: str, primary_key: list[str]) -> None:
    made = make(warehouse, primary_key)
    other = OTHER[maker]
    for number, writer in enumerate((LAKELET, JAVA, LAKELET, JAVA), 1):
        made.put(writer, number)
    made.tag(maker, "two", 2)
    made.tag(other, "newest")
    made.tag(maker, "also-two", 2)
    assert made.tags() == ["also-two", "newest", "two"]
    for reader in ALL:
        assert made.ids((reader,), tag="two") == [1, 2]
    made.rename_tag(other, "two", "second")
    made.replace_tag(maker, "newest", 3)
    assert (made.ids(tag="second"), made.ids(tag="newest")) == ([1, 2], [1, 2, 3])
    made.expire(other, 1)
    assert made.numbers() == [4]
    # Of a snapshot that only tags keep.
    made.tag(maker, "third-name", 2)
    made.delete_tag(other, "second")
    made.delete_tag(other, "also-two")
    assert made.ids(tag="third-name") == [1, 2]
    made.delete_tag(maker, "third-name")
    assert made.tags() == ["newest"]
    assert (made.ids(tag="newest"), made.ids()) == ([1, 2, 3], [1, 2, 3, 4])


@pytest.mark.parametrize("deleter", MAKERS)
def test_the_files_that_only_a_tag_kept_go_with_it(warehouse: Warehouse, deleter: str) -> None:
    made = make(warehouse, [])
    made.put(LAKELET, 1, 2)
    made.tag(OTHER[deleter], "one")
    warehouse.write(JAVA, "t", [{"id": 9, "p": "x"}], overwrite={})
    made.expire(deleter, 1)
    assert made.ids(tag="one") == [1, 2]
    made.delete_tag(deleter, "one")
    left = {path.name for path in warehouse.path("t").rglob("data-*")}
    assert left == {file.name for _, file in made.table.files()}
    assert made.ids() == [9]


def test_retentions_are_read_as_they_were_written(made: Versioned) -> None:
    made.put(LAKELET, 1)
    made.java("tag_retained", "of-java", "PT26H0.5S", 1)
    made.table.tags.create("of-lakelet", time_retained=dt.timedelta(days=3, seconds=1))
    ours = {tag.name: tag for tag in made.table.tags.list()}
    theirs = {tag["tagName"]: tag for tag in made.java("tags")}
    assert ours["of-java"].time_retained == dt.timedelta(hours=26, milliseconds=500)
    assert theirs["of-lakelet"]["tagTimeRetained"] == 259201
    for name, tag in ours.items():
        moment = tag.create_time
        assert moment is not None
        assert theirs[name]["tagCreateTime"][:6] == [*moment.timetuple()[:6]]
    assert made.table.tags.expire() == []
    made.java("automatic_tags")
    assert made.tags() == ["of-java", "of-lakelet"]
    made.table.tags.replace("of-lakelet", time_retained="0 ms")
    made.java("automatic_tags")
    assert made.tags() == ["of-java"]


@pytest.mark.parametrize("period", ["daily", "hourly", "two-hours"])
@pytest.mark.parametrize("spelling", ["with_dashes", "without_dashes", "without_dashes_and_spaces"])
def test_automatic_tags_have_the_same_names(warehouse: Warehouse, period: str, spelling: str) -> None:
    """Watermarks move time on; tags that one makes the other goes on from."""
    made = make(
        warehouse,
        [],
        **{
            "tag.automatic-creation": "watermark",
            "tag.creation-period": period,
            "tag.period-formatter": spelling,
            "tag.creation-delay": "10 min",
            "tag.num-retained-max": "4",
        },
    )
    steps = [0, 700_000, 7_200_000, 7_900_000, 86_400_000, 87_100_000, 180_000_000, 190_000_000]
    for number, step in enumerate(steps):
        made.table.write([{"id": number, "p": "x"}], watermark=1_794_700_800_000 + step)
    # The same history, tagged by either alone.
    made.java("automatic_tags")
    java = {tag["tagName"]: tag["id"] for tag in made.java("tags")}
    for name in java:
        made.table.tags.delete(name)
    made.table.tags.create_due()
    assert {tag.name: tag.snapshot_id for tag in made.table.tags.list()} == java
    assert 1 < len(java) <= 4
    made.table.write([{"id": 99, "p": "x"}], watermark=1_794_700_800_000 + 400_000_000)
    last = max(java, key=lambda name: java[name])
    made.java("automatic_tags")
    assert last in made.tags()
    assert made.table.tags.create_due() == []


def test_batch_tags(warehouse: Warehouse) -> None:
    made = make(warehouse, [], **{"tag.automatic-creation": "batch", "sink.process-time-zone": "UTC"})
    made.put(LAKELET, 1)
    made.table.tags.create_due()
    (name,) = made.tags()
    made.put(JAVA, 2)
    made.java("batch_tag")
    assert made.tags() == [name]
    assert made.ids(tag=name) == [1, 2]
    made.put(JAVA, 3)
    made.table.tags.create_due()
    assert made.ids(tag=name) == [1, 2, 3]


# ---------------------------------------------------------------- branches


@pytest.mark.parametrize("maker", MAKERS)
@KEYS
def test_branches(warehouse: Warehouse, maker: str, primary_key: list[str]) -> None:
    made = make(warehouse, primary_key)
    other = OTHER[maker]
    for number, writer in enumerate((LAKELET, JAVA, LAKELET), 1):
        made.put(writer, number)
    made.tag(other, "two", 2)
    made.branch(maker, "dev", "two")
    made.branch(maker, "empty")
    assert made.branches() == ["dev", "empty"]
    assert made.ids(BOTH, branch="dev") == [1, 2]
    made.put(other, 30, branch="dev")
    made.put(maker, 40, branch="dev")
    made.put(other, 9, branch="empty")
    assert made.ids(BOTH, branch="dev") == [1, 2, 30, 40]
    assert made.ids(BOTH, branch="empty") == [9]
    assert made.ids() == [1, 2, 3]
    made.rename_branch(other, "dev", "test")
    assert made.ids(BOTH, branch="test") == [1, 2, 30, 40]
    made.fast_forward(maker, "test")
    assert made.numbers() == [1, 2, 3, 4]
    assert made.ids() == [1, 2, 30, 40]
    assert made.ids(snapshot=3) == [1, 2, 30]
    assert made.tags() == ["two"]
    made.put(other, 50)
    made.put(maker, 60)
    assert made.ids() == [1, 2, 30, 40, 50, 60]
    made.delete_branch(other, "empty")
    made.delete_branch(maker, "test")
    assert made.branches() == []
    assert made.ids() == [1, 2, 30, 40, 50, 60]


@pytest.mark.parametrize("maker", MAKERS)
def test_a_fast_forward_brings_schemas_and_tags(warehouse: Warehouse, maker: str) -> None:
    made = make(warehouse, [])
    made.put(LAKELET, 1)
    made.tag(LAKELET, "one")
    made.branch(LAKELET, "dev", "one")
    made.table.add_column("main_only", "STRING")
    made.put(JAVA, 2)
    made.put(LAKELET, 3)
    made.put(LAKELET, 4)
    made.tag(JAVA, "main-three", 3)
    branch = made.table.on_branch("dev")
    branch.add_column("n", "INT")
    branch.write([{"id": 20, "p": "x", "n": 5}])
    branch.tags.create("branch-two")
    made.fast_forward(maker, "dev")
    assert made.tags() == ["branch-two", "one"]
    assert [field["name"] for field in made.java("schema")["fields"]] == ["id", "p", "n"]
    assert warehouse.agree("t") == in_order(
        [{"id": 1, "p": "x", "n": None}, {"id": 20, "p": "x", "n": 5}],
    )
    assert made.numbers() == [1, 2]
    made.put(OTHER[maker], 30)
    assert made.ids() == [1, 20, 30]


def test_a_branch_of_a_version_survives_expiry_by_java_on_either_side(warehouse: Warehouse) -> None:
    """Java's expiry on one branch knows nothing of the others; the tag on both sides keeps what both need."""
    made = make(warehouse, [])
    for number in (1, 2, 3):
        made.put(LAKELET, number)
    made.table.branches.create("dev", version=2)
    branch = made.table.on_branch("dev")
    branch.write([{"id": 20, "p": "x"}], mode="overwrite")
    warehouse.write(LAKELET, "t", [{"id": 30, "p": "x"}], overwrite={})
    warehouse.java.call("expire", warehouse.folder, FULL, 1)
    warehouse.java.call("expire", warehouse.folder, FULL, 1, "--branch", "dev")
    assert (made.ids(BOTH), made.ids(BOTH, branch="dev")) == ([30], [20])
    assert made.ids(BOTH, tag="origin-of-branch-dev") == [1, 2]
    made.table.branches.delete("dev")
    assert made.tags() == []
    left = {path.name for path in warehouse.path("t").rglob("data-*")}
    assert left == {file.name for _, file in made.table.files()}


# ---------------------------------------------------------------- rollback


@pytest.mark.parametrize("maker", MAKERS)
@KEYS
def test_rollback(warehouse: Warehouse, maker: str, primary_key: list[str]) -> None:
    made = make(warehouse, primary_key)
    other = OTHER[maker]
    for number, writer in enumerate((LAKELET, JAVA, LAKELET, JAVA, LAKELET), 1):
        made.put(writer, number)
    for number in (2, 3, 4):
        made.tag(other, f"v{number}", number)
    made.rollback(maker, 4)
    assert (made.numbers(), made.ids(), made.tags()) == ([1, 2, 3, 4], [1, 2, 3, 4], ["v2", "v3", "v4"])
    made.put(other, 50)
    made.rollback(maker, "v3")
    assert (made.numbers(), made.ids(), made.tags()) == ([1, 2, 3], [1, 2, 3], ["v2", "v3"])
    made.put(maker, 40)
    made.put(other, 41)
    made.expire(other, 1)
    assert made.numbers() == [5]
    made.rollback(maker, "v2")
    assert (made.numbers(), made.ids(), made.tags()) == ([2], [1, 2], ["v2"])
    made.put(other, 30)
    made.put(maker, 31)
    assert (made.numbers(), made.ids()) == ([2, 3, 4], [1, 2, 30, 31])


def test_rollback_to_the_id_of_a_tagged_snapshot_and_to_a_time(made: Versioned) -> None:
    for number in (1, 2, 3):
        made.put(JAVA, number)
    second = made.table.snapshots()[1]
    made.table.rollback(timestamp=second.time_ms)
    assert made.ids() == [1, 2]
    made.tag(JAVA, "one", 1)
    made.expire(JAVA, 1)
    made.table.rollback(1)
    assert (made.numbers(), made.ids()) == ([1], [1])
    made.put(JAVA, 7)
    assert made.ids() == [1, 7]


# ---------------------------------------------------------------- consumers


def test_consumers(made: Versioned) -> None:
    for number in (1, 2, 3, 4):
        made.put(LAKELET, number)
    made.java("consumer", "of-java", 3)
    made.table.consumers.set("of-lakelet", 2)
    assert made.java("consumers") == {"of-java": 3, "of-lakelet": 2}
    assert {consumer.id: consumer.next_snapshot for consumer in made.table.consumers.list()} == {
        "of-java": 3,
        "of-lakelet": 2,
    }
    made.expire(JAVA, 1)
    assert made.numbers() == [2, 3, 4]
    made.table.consumers.delete("of-lakelet")
    made.expire(LAKELET, 1)
    assert made.numbers() == [3, 4]


# ---------------------------------------------------------------- a branch that fills in


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("primary_key", [[], ["id", "p"]], ids=["append", "keyed"])
@pytest.mark.parametrize("partitioned_by", [[], ["p"]], ids=["plain", "partitioned"])
def test_a_fallback_branch(warehouse: Warehouse, maker: str, primary_key: list[str], partitioned_by: list[str]) -> None:
    """Whatever either wrote on either branch, both fill in the same partitions."""
    options = {"bucket": "1", "bucket-key": "id", "write-only": "true"}
    warehouse.create(maker, "t", COLUMNS, primary_key=primary_key, partitioned_by=partitioned_by, options=options)
    made, other = Versioned(warehouse), OTHER[maker]

    def put(writer: str, p: str, *ids: int, branch: str | None = None) -> None:
        rows: Rows = [{"id": id_, "p": p} for id_ in ids]
        if writer == JAVA:
            warehouse.java.write(warehouse.folder, FULL, rows, branch=branch)
        else:
            (made.table if branch is None else made.table.on_branch(branch)).write(rows)

    made.branch(maker, "late")
    warehouse.java.alter(warehouse.folder, FULL, {"op": "option", "key": "scan.fallback-branch", "value": "late"})
    for writer, p in ((maker, "b"), (other, "c"), (maker, "d")):
        put(writer, p, 1, 2, branch="late")
        warehouse.agree("t", readers=BOTH)
    assert len(warehouse.agree("t", readers=BOTH)) == 6
    put(other, "a", 1)
    put(maker, "b", 7, 8, 9)
    rows = warehouse.agree("t", readers=BOTH)
    if partitioned_by:
        expected = [("a", 1), ("b", 7), ("b", 8), ("b", 9), ("c", 1), ("c", 2), ("d", 1), ("d", 2)]
    else:
        expected = [("a", 1), ("b", 7), ("b", 8), ("b", 9)]
    assert sorted((row["p"], row["id"]) for row in rows) == expected
    assert made.table.scan().count() == len(expected)
    for condition, filters in (
        ("p = 'c'", ["p = c"]),
        ("id = 2", ["id = 2"]),
        ("p = 'b' AND id = 1", ["p = b", "id = 1"]),
    ):
        assert warehouse.filtered(LAKELET, "t", condition) == warehouse.filtered(JAVA, "t", filters)
    warehouse.agree("t", readers=BOTH, snapshot=1)
    if primary_key:
        keys = [{"id": id_, "p": p} for p in "abcde" for id_ in (1, 2, 7)]
        found = made.table.get_many(keys).to_pylist()
        assert sorted((row["p"], row["id"]) for row in found) == [pair for pair in expected if pair[1] in (1, 2, 7)]


# ---------------------------------------------------------------- pypaimon


def test_tags_of_pypaimon(warehouse: Warehouse) -> None:
    made = make(warehouse, [])
    for number in (1, 2, 3):
        made.put(LAKELET, number)

    def theirs(method: str, *arguments: Any) -> str:
        return warehouse.pypaimon.version(warehouse.folder, FULL, method, *arguments)

    theirs("create_tag", "two", 2, False, "1 d")
    made.table.tags.create("three", time_retained="26 h")
    two = made.table.tags.get("two")
    assert (two.snapshot_id, two.time_retained) == (2, dt.timedelta(days=1))
    assert two.create_time is not None
    assert "datetime.timedelta(days=1, seconds=7200)" in theirs("tag_manager.get", "three")
    theirs("rename_tag", "two", "second")
    theirs("replace_tag", "three", 1)
    assert made.tags() == ["second", "three"]
    assert (made.ids(tag="second"), made.ids(tag="three")) == ([1, 2], [1])
    made.table.tags.rename("second", "two")
    made.expire(LAKELET, 1)
    theirs("rollback_to", "two")
    assert (made.numbers(), made.ids(), made.tags()) == ([2], [1, 2], ["three", "two"])
    made.table.rollback("three")
    assert (made.numbers(), made.ids(), made.tags()) == ([1], [1], ["three"])
    made.put(JAVA, 9)
    assert made.ids() == [1, 9]


def test_branches_of_pypaimon(warehouse: Warehouse) -> None:
    made = make(warehouse, [])
    for number in (1, 2, 3):
        made.put(LAKELET, number)

    def theirs(method: str, *arguments: Any) -> str:
        return warehouse.pypaimon.version(warehouse.folder, FULL, method, *arguments)

    made.tag(LAKELET, "two", 2)
    theirs("branch_manager.create_branch", "dev", "two")
    made.branch(LAKELET, "ours", "two")
    made.put(LAKELET, 30, branch="dev")
    made.put(JAVA, 31, branch="ours")
    for branch, rows in (("dev", [1, 2, 30]), ("ours", [1, 2, 31])):
        assert made.ids((LAKELET, JAVA, PYTHON), branch=branch) == rows
    theirs("rename_branch", "ours", "test")
    assert made.branches() == ["dev", "test"]
    theirs("branch_manager.fast_forward", "test")
    assert (made.numbers(), made.ids()) == ([1, 2, 3], [1, 2, 31])
    made.fast_forward(LAKELET, "dev")
    assert (made.numbers(), made.ids()) == ([1, 2, 3], [1, 2, 30])
    made.table.consumers.set("c", 2)
    assert "2" in theirs("consumer_manager.min_next_snapshot")
    theirs("branch_manager.drop_branch", "test")
    made.delete_branch(LAKELET, "dev")
    assert made.branches() == []
    assert made.ids() == [1, 2, 30]
