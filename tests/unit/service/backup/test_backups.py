"""Backups by hand: what a pass mirrors, what recovery restores, and what neither brings back."""

import hashlib
import json

import pytest

from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.service.backup.backups import Backups, Scope
from lakelet.service.backup.layout import SOURCE_SNAPSHOT
from tests.unit.service.backup.backed_up_lake import TABLE, BackedUpLake, events

KEYED = {"primary_key": ["id"], "partitioned_by": [], "options": {"bucket": "2"}}
LAYOUTS = [
    pytest.param({}, id="by day"),
    pytest.param({"partitioned_by": ["id", "dt"], "options": {"bucket": "-1"}}, id="by id and day"),
    pytest.param(KEYED, id="key"),
    pytest.param({**KEYED, "options": {"bucket": "-1"}}, id="dynamic buckets"),
    pytest.param({**KEYED, "options": {"bucket": "2", "deletion-vectors.enabled": "true"}}, id="deletion vectors"),
    pytest.param({"options": {"deletion-vectors.enabled": "true"}}, id="marked rows"),
]


def data_files(store: object, folder: str = "default.db/events") -> list[str]:
    return [info.path for info in store.list(folder) if "/bucket-" in info.path]  # type: ignore[attr-defined]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mirror_is_a_table_with_the_same_rows(layout: dict[str, object]) -> None:
    lake = BackedUpLake()
    lake.create(**layout)
    for day in range(3):
        lake.table.write(events("a", "b", "c", day=day))
        lake.backups.trigger(TABLE)
        assert lake.mirrored() == lake.rows()
    lake.table.delete(where="id = 'a'")
    lake.table.compact()
    result = lake.backups.trigger(TABLE)
    assert lake.mirrored() == lake.rows()
    assert len(lake.rows()) == (2 if layout.get("primary_key") else 6)
    newest = lake.mirror.table(TABLE).latest_snapshot()
    assert newest is not None
    assert newest.commit_identifier == result.source_snapshot == lake.table.latest_snapshot().id  # type: ignore[union-attr]
    assert not lake.mirror.table(TABLE).check().damages
    assert lake.table.tag_names() == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_wiped_table_is_restored_with_equal_rows_and_files(layout: dict[str, object]) -> None:
    lake = BackedUpLake()
    lake.create(**layout)
    lake.table.write(events("a", "b"))
    lake.table.write(events("b", "c", day=1))
    lake.table.delete(where="id = 'a'")
    lake.backups.trigger(TABLE)
    rows = lake.rows()
    live = {path: lake.primary.get(f"{path}") for path, _ in lake.table.files()}
    number = lake.table.latest_snapshot().id  # type: ignore[union-attr]
    lake.wipe()
    assert not lake.lake.table_exists(TABLE)
    lake.backups.recover(TABLE)
    assert lake.rows() == rows
    assert {path: lake.primary.get(path) for path, _ in lake.table.files()} == live
    assert lake.table.latest_snapshot().id == number  # type: ignore[union-attr]
    assert not lake.table.check().damages
    # It is a table like any other: it is written, and backed up again.
    lake.table.write(events("z", day=2))
    lake.backups.trigger(TABLE)
    assert len(lake.rows()) == len(rows) + 1
    assert lake.mirrored() == lake.rows()


def test_second_pass_of_a_snapshot_does_nothing() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a", "b"))
    assert lake.backups.trigger(TABLE).files == 2
    before = {info.path: info.size for info in lake.copy.list("")}
    assert lake.backups.trigger(TABLE).files == 0
    assert {info.path: info.size for info in lake.copy.list("")} == before


def test_every_file_has_its_checksum() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a", "b"))
    lake.backups.trigger(TABLE)
    known: dict[str, list[object]] = {}
    for info in lake.copy.list("default.db/events/backup/checksums"):
        known.update(json.loads(lake.copy.get(info.path))["files"])
    for path in data_files(lake.primary):
        data = lake.primary.get(path)
        assert known[path.removeprefix("default.db/events/")] == [len(data), hashlib.sha256(data).hexdigest()]
    verified = lake.backups.verify(TABLE)
    assert verified.files == len(known)
    assert not verified.problems


def test_alter_without_rows_reaches_the_mirror() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a"))
    lake.backups.trigger(TABLE)
    lake.lake.sql("ALTER TABLE default.events ADD COLUMN more BIGINT")
    lake.backups.trigger(TABLE)
    assert "more" in lake.mirror.table(TABLE).schema.names
    assert lake.mirrored() == lake.rows()


def test_table_without_rows_is_backed_up_and_restored() -> None:
    lake = BackedUpLake()
    lake.create()
    assert lake.backups.trigger(TABLE).source_snapshot is None
    lake.wipe()
    lake.backups.recover(TABLE)
    assert lake.rows() == []
    lake.table.write(events("a"))
    assert len(lake.rows()) == 1


# An identity that is another is another table; without its newest snapshot a table is an older one, without schemas it is gone.
DAMAGES = [
    *(
        (kind, damage)
        for kind in ("data", "manifest", "manifest-list")
        for damage in ("missing", "shorter", "other bytes")
    ),
    *((kind, damage) for kind in ("snapshot", "schema") for damage in ("shorter", "other bytes")),
    ("metadata", "missing"),
]


@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
def test_missing_and_damaged_files_are_restored(kind: str, damage: str) -> None:
    lake = BackedUpLake()
    lake.create().write(events("a", "b"))
    lake.table.write(events("c", day=1))
    lake.backups.trigger(TABLE)
    rows, newest = lake.rows(), lake.table.latest_snapshot()
    assert newest is not None
    root = "default.db/events"
    path = {
        "data": lake.table.files()[0][0],
        "manifest": next(i.path for i in lake.primary.list(f"{root}/manifest") if "/manifest-p" in i.path),
        "manifest-list": f"{root}/manifest/{newest.delta_manifest_list}",
        "snapshot": f"{root}/snapshot/snapshot-{newest.id}",
        "schema": f"{root}/schema/schema-0",
        "metadata": f"{root}/metadata",
    }[kind]
    good = lake.primary.get(path)
    if damage == "missing":
        lake.primary.delete([path])
    else:
        lake.primary.put(path, good[:-1] if damage == "shorter" else bytes(255 - byte for byte in good))
    files = {info.path for info in lake.primary.list("")}
    restored = BackedUpLake(lake.primary, lake.copy, "again")
    found = restored.backups.recover(TABLE)
    assert lake.primary.get(path) == good
    assert not found.lost
    assert restored.rows() == rows
    assert {info.path for info in lake.primary.list("")} == files | {path}


def test_recovery_of_a_sound_table_changes_nothing() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a", "b"))
    lake.backups.trigger(TABLE)
    lake.table.write(events("c"))
    before = {info.path: lake.primary.get(info.path) for info in lake.primary.list("")}
    found = lake.backups.recover(TABLE)
    assert not found.restored
    assert not found.lost
    assert {info.path: lake.primary.get(info.path) for info in lake.primary.list("")} == before


def test_deleted_rows_do_not_return() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a", "b"))
    lake.backups.trigger(TABLE)
    lake.table.delete(where="id = 'a'")
    lake.backups.recover(TABLE)
    assert [row["id"] for row in lake.rows()] == ["b"]
    lake.backups.trigger(TABLE)
    lake.wipe()
    lake.backups.recover(TABLE)
    assert [row["id"] for row in lake.rows()] == ["b"]


def test_expired_days_do_not_return() -> None:
    lake = BackedUpLake()
    options = {
        "bucket": "2",
        "bucket-key": "id",
        "partition.expiration-time": "30 d",
        "partition.timestamp-pattern": "$dt",
        "partition.timestamp-formatter": "yyyy-MM-dd",
        # Nothing expires by writes.
        "write-only": "true",
    }
    lake.create(options=options).write(events("old"))
    lake.table.write(events("new", day=365 * 10))
    lake.backups.trigger(TABLE)
    assert [row["id"] for row in lake.mirrored()] == ["new", "old"]
    lake.wipe()
    lake.backups.recover(TABLE)
    assert [row["id"] for row in lake.rows()] == ["new"]


def test_lost_file_that_is_in_no_backup_is_told() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a"))
    lake.backups.trigger(TABLE)
    known = {path for path, _ in lake.table.files()}
    lake.table.write(events("b", day=1))
    (path,) = {path for path, _ in lake.table.files()} - known
    lake.primary.delete([path])
    found = lake.backups.recover(TABLE)
    assert [one for one, _ in found.lost] == [path.removeprefix("default.db/events/")]
    assert not found.restored


def test_damaged_copy_is_never_restored() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a"))
    lake.backups.trigger(TABLE)
    ((path, _),) = lake.table.files()
    lake.primary.delete([path])
    lake.copy.put(path, bytes(len(lake.copy.get(path))))
    assert lake.backups.recover(TABLE).lost
    assert lake.primary.head(path) is None
    assert [one for one, _ in lake.backups.verify(TABLE).problems] == [path.removeprefix("default.db/events/")]
    lake.wipe()
    with pytest.raises(CorruptionError, match="damaged"):
        lake.backups.recover(TABLE)
    assert not lake.lake.table_exists(TABLE)


def test_damaged_source_is_not_copied() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a"))
    ((path, file),) = lake.table.files()
    lake.primary.put(path, bytes(file.size + 1))
    with pytest.raises(CorruptionError, match="damaged"):
        lake.backups.trigger(TABLE)
    assert not lake.mirror.table(TABLE).snapshots()


def test_scope_copies_every_file_that_may_hold_the_id_or_day() -> None:
    lake = BackedUpLake()
    lake.create(partitioned_by=["id", "dt"], options={"bucket": "-1"})
    for day in range(3):
        lake.table.write(events("a", "b", day=day))
    assert lake.backups.trigger(TABLE, Scope(id="a", day="2026-01-02")).files == 1
    assert [(row["id"], str(row["dt"])) for row in lake.mirrored()] == [("a", "2026-01-02")]
    assert lake.backups.trigger(TABLE, Scope(id="a")).files == 2
    assert lake.backups.trigger(TABLE, Scope(id="a")).files == 0
    assert {row["id"] for row in lake.mirrored()} == {"a"}
    assert lake.backups.list()[0].is_complete is False
    # What was deleted leaves the scope of the mirror, too.
    lake.table.delete(where="id = 'a' AND dt = DATE '2026-01-02'")
    lake.backups.trigger(TABLE, Scope(day="2026-01-02"))
    assert [(row["id"], row["dt"].day) for row in lake.mirrored()] == [("a", 1), ("a", 3), ("b", 2)]
    lake.backups.trigger(TABLE)
    assert lake.mirrored() == lake.rows()
    assert lake.backups.list()[0].is_complete is True


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scope_of_any_layout_holds_the_rows_of_the_id(layout: dict[str, object]) -> None:
    lake = BackedUpLake()
    lake.create(**layout)
    for day in range(3):
        lake.table.write(events(*(f"id-{number}" for number in range(20)), day=day))
    lake.backups.trigger(TABLE, Scope(id="id-7"))
    of_the_id = [row for row in lake.rows() if row["id"] == "id-7"]
    assert [row for row in lake.mirrored() if row["id"] == "id-7"] == of_the_id
    assert of_the_id


@pytest.mark.parametrize("day", ["2026-1-1", "yesterday", "2026-02-30", "20260101"])
def test_day_that_is_none_is_refused(day: str) -> None:
    lake = BackedUpLake()
    lake.create().write(events("a"))
    with pytest.raises(InvalidError, match="YYYY-MM-DD"):
        lake.backups.trigger(TABLE, Scope(day=day))


def test_rollback_of_the_source_reaches_the_mirror() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a"))
    lake.table.write(events("b"))
    lake.backups.trigger(TABLE)
    lake.table.rollback(1)
    lake.backups.trigger(TABLE)
    assert [row["id"] for row in lake.mirrored()] == ["a"]
    lake.table.write(events("c"))
    lake.backups.trigger(TABLE)
    assert [row["id"] for row in lake.mirrored()] == ["a", "c"]


def test_table_that_was_created_again_gets_a_mirror_of_its_own() -> None:
    lake = BackedUpLake()
    lake.create().write(events("old"))
    lake.backups.trigger(TABLE)
    lake.lake.drop_table(TABLE)
    lake.create().write(events("new"))
    with pytest.raises(InvalidError, match="another table"):
        lake.backups.recover(TABLE)
    lake.backups.trigger(TABLE)
    assert [row["id"] for row in lake.mirrored()] == ["new"]
    (aside,) = [name for name in lake.mirror.tables("default") if name != "events"]
    assert lake.mirror.table(f"default.{aside}").scan().to_arrow().column("id").to_pylist() == ["old"]


def test_expiry_of_the_mirror_removes_what_left_it() -> None:
    lake = BackedUpLake()
    options = {"bucket": "1", "bucket-key": "id", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    lake.create(options=options, partitioned_by=[])
    for number in range(8):
        lake.table.write(events("a", note=str(number)), mode="overwrite")
        lake.backups.trigger(TABLE)
    # Younger than any commit may take, they are kept.
    lake.mirror.table(TABLE).expire_snapshots(1)
    assert len(data_files(lake.copy)) == 1
    assert lake.mirrored() == lake.rows()
    assert not lake.backups.verify(TABLE).problems


def test_log_that_is_replayed_into_a_restored_table_doubles_nothing() -> None:
    lake = BackedUpLake()
    lake.create()
    lake.table.write(events("a"), commit_user="writer-1", commit_identifier=7)
    lake.table.write(events("b"), commit_user="writer-2", commit_identifier=1)
    lake.backups.trigger(TABLE)
    lake.table.write(events("c"), commit_user="writer-1", commit_identifier=8)
    lake.wipe()
    lake.backups.recover(TABLE)
    # The logs of both writers are replayed; what the backup has not seen is written.
    lake.table.write(events("a"), commit_user="writer-1", commit_identifier=7)
    lake.table.write(events("b"), commit_user="writer-2", commit_identifier=1)
    assert [row["id"] for row in lake.rows()] == ["a", "b"]
    lake.table.write(events("c"), commit_user="writer-1", commit_identifier=8)
    assert [row["id"] for row in lake.rows()] == ["a", "b", "c"]


def test_newest_source_snapshot_is_told() -> None:
    lake = BackedUpLake()
    lake.create().write(events("a"))
    lake.backups.trigger(TABLE)
    (told,) = lake.backups.list()
    assert (told.table, told.source_snapshot, told.records) == (TABLE, 1, 1)
    newest = lake.mirror.table(TABLE).latest_snapshot()
    assert newest is not None
    assert (newest.properties or {})[SOURCE_SNAPSHOT] == "1"


def test_table_without_backup_is_refused() -> None:
    lake = BackedUpLake()
    lake.create()
    with pytest.raises(NotFoundError, match="no backup"):
        lake.backups.recover(TABLE)
    with pytest.raises(NotFoundError, match="no backup"):
        lake.backups.verify(TABLE)
    with pytest.raises(NotFoundError):
        lake.backups.trigger("default.other")


def test_backup_in_the_warehouse_itself_is_refused() -> None:
    lake = BackedUpLake()
    with pytest.raises(InvalidError, match="another store"):
        Backups(lake.lake, lake.lake)
