import errno
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.errors import (
    AlreadyExistsError,
    InvalidError,
    NotFoundError,
    PermissionDeniedError,
    UnavailableError,
)
from lakelet.ids import RandomIds
from lakelet.storage.disk.links import BehindLinkError
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.store import ObjectStore
from tests.unit.storage.contract import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "warehouse", durable=False)


class TestDurableLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "warehouse")


class SystemCalls:
    """Records the calls that order a write, and can make one of them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.seen: list[str] = []
        self.failing: dict[str, OSError] = {}
        self._root = root
        for name in ("link", "replace", "rename", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self._recorded(name, getattr(os, name)))
        real_fsync = os.fsync

        def fsync(descriptor: int) -> None:
            self._record("fsync", os.readlink(f"/proc/self/fd/{descriptor}"))
            real_fsync(descriptor)

        monkeypatch.setattr(os, "fsync", fsync)

    def fsyncs(self) -> list[str]:
        return [call for call in self.seen if call.startswith("fsync")]

    def _recorded(self, name: str, real: object) -> object:
        def call(*paths: str, **options: object) -> object:
            self._record(name, *(path for path in paths if isinstance(path, str)))
            return real(*paths, **options)  # type: ignore[operator]

        return call

    def _record(self, name: str, *paths: str) -> None:
        shown = [self._shown(path) for path in paths]
        self.seen.append(" ".join([name, *shown]))
        if name in self.failing:
            raise self.failing.pop(name)

    def _shown(self, path: str) -> str:
        relative = os.path.relpath(path, self._root)
        folder, name = os.path.split(relative)
        name = next((prefix for prefix in (".tmp-", ".deleted-") if name.startswith(prefix)), name)
        return os.path.join(folder, name)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SystemCalls:
    return SystemCalls(monkeypatch, tmp_path)


@pytest.fixture
def durable(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "w")


def hidden_names(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".*")]


def test_rule_1_put_if_absent_syncs_the_bytes_links_and_syncs_the_folder(
    durable: LocalStore, calls: SystemCalls
) -> None:
    durable.make_folder("s")
    calls.seen.clear()
    assert durable.put_if_absent("s/snapshot-1", b"{}")
    assert calls.seen == ["fsync w/s/.tmp-", "link w/s/.tmp- w/s/snapshot-1", "fsync w/s", "unlink w/s/.tmp-"]


def test_put_syncs_the_bytes_before_the_name_and_the_folder_after(durable: LocalStore, calls: SystemCalls) -> None:
    durable.make_folder("s")
    calls.seen.clear()
    durable.put("s/LATEST", b"1")
    expected = ["fsync w/s/.tmp-", "replace w/s/.tmp- w/s/LATEST", "fsync w/s"]
    assert calls.seen == expected
    calls.seen.clear()
    with durable.open_output("s/LATEST") as output:
        output.write(b"2")
    assert calls.seen == expected


def test_deferred_writes_are_synced_together_each_folder_once(durable: LocalStore, calls: SystemCalls) -> None:
    durable.put("t/schema", b"1")
    calls.seen.clear()
    for path in ("t/m/1", "t/m/2", "t/p=1/bucket-0/3"):
        durable.put(path, b"1", deferred=True)
    with durable.open_output("t/p=1/bucket-0/4", deferred=True) as output:
        output.write(b"2")
    assert not calls.fsyncs(), "a deferred write waited for the disk"
    calls.seen.clear()
    durable.sync(["t/m/1", "t/m/2", "t/p=1/bucket-0/3", "t/p=1/bucket-0/4", "t/schema"])
    folders = ["w/t", "w/t/m", "w/t/p=1", "w/t/p=1/bucket-0"]
    files = ["w/t/m/1", "w/t/m/2", "w/t/p=1/bucket-0/3", "w/t/p=1/bucket-0/4"]
    assert sorted(calls.fsyncs()) == sorted(f"fsync {name}" for name in (*folders, *files))
    calls.seen.clear()
    durable.sync(["t/m/1", "t/p=1/bucket-0/4"])
    assert calls.seen == []
    durable.put("t/p=1/bucket-0/5", b"1", deferred=True)
    calls.seen.clear()
    durable.sync(["t/p=1/bucket-0/5"])
    assert sorted(calls.seen) == ["fsync w/t/p=1/bucket-0", "fsync w/t/p=1/bucket-0/5"]


def test_a_durable_write_into_a_folder_made_deferred_syncs_the_folder(durable: LocalStore, calls: SystemCalls) -> None:
    durable.make_folder("")
    durable.put("a/b/1", b"1", deferred=True)
    calls.seen.clear()
    durable.put("a/b/2", b"1")
    assert {"fsync w", "fsync w/a", "fsync w/a/b"} <= set(calls.seen)


def test_a_deferred_file_that_vanished_cannot_be_synced(durable: LocalStore, tmp_path: Path) -> None:
    durable.put("a/1", b"1", deferred=True)
    (tmp_path / "w" / "a" / "1").unlink()
    with pytest.raises(NotFoundError, match="a/1"):
        durable.sync(["a/1"])


def test_a_failing_disk_fails_the_sync_and_names_the_file(durable: LocalStore, calls: SystemCalls) -> None:
    durable.put("a/1", b"1", deferred=True)
    calls.failing["fsync"] = OSError(errno.EIO, "Input/output error")
    with pytest.raises(UnavailableError, match="Input/output error"):
        durable.sync(["a/1"])


def test_a_sync_that_fails_leaves_no_bytes_written_ahead(durable: LocalStore, calls: SystemCalls) -> None:
    durable.put("a/1", b"1", deferred=True)
    calls.failing["fsync"] = OSError(errno.EIO, "Input/output error")
    with pytest.raises(UnavailableError, match="Input/output error"):
        durable.sync(["a/1"], ("a/snapshot-1", b"{}"))
    assert hidden_names(Path(durable.location)) == []


def test_an_object_created_after_a_sync_waits_for_its_name_alone(durable: LocalStore, calls: SystemCalls) -> None:
    durable.make_folder("s")
    durable.put("m", b"1", deferred=True)
    calls.seen.clear()
    durable.sync(["m"], ("s/snapshot-1", b"{}"))
    assert sorted(calls.seen) == ["fsync w", "fsync w/m", "fsync w/s/.tmp-"]
    assert durable.head("s/snapshot-1") is None, "it is visible before it is created"
    calls.seen.clear()
    assert durable.put_if_absent("s/snapshot-1", b"{}")
    assert calls.seen == ["link w/s/.tmp- w/s/snapshot-1", "fsync w/s", "unlink w/s/.tmp-"]
    assert durable.get("s/snapshot-1") == b"{}"
    assert hidden_names(Path(durable.location)) == []


@pytest.mark.parametrize("meanwhile", ["created", "other bytes", "cleared"])
def test_bytes_written_ahead_are_not_used_for_another_object(
    durable: LocalStore, tmp_path: Path, meanwhile: str
) -> None:
    durable.put("m", b"1", deferred=True)
    durable.sync(["m"], ("s/snapshot-1", b"ours"))
    if meanwhile == "created":
        LocalStore(tmp_path / "w").put("s/snapshot-1", b"theirs")
    if meanwhile == "cleared":
        for temporary in (tmp_path / "w/s").iterdir():
            temporary.unlink()
    data = b"others" if meanwhile == "other bytes" else b"ours"
    assert durable.put_if_absent("s/snapshot-1", data) is (meanwhile != "created")
    assert durable.get("s/snapshot-1") == (b"theirs" if meanwhile == "created" else data)
    if meanwhile != "other bytes":
        assert hidden_names(tmp_path) == []


def test_a_copy_of_the_store_in_another_process_has_nothing_to_sync(durable: LocalStore, calls: SystemCalls) -> None:
    durable.put("a/1", b"1", deferred=True)
    copy = pickle.loads(pickle.dumps(durable))
    calls.seen.clear()
    copy.sync(["a/1"])
    assert calls.seen == []
    durable.sync(["a/1"])
    assert "fsync w/a/1" in calls.seen


def test_deferred_writes_are_synced_in_a_forked_child(durable: LocalStore) -> None:
    for name in ("a", "b", "c"):
        durable.put(name, b"1", deferred=True)
    durable.sync(["a", "b", "c"])
    child = os.fork()
    if child == 0:
        try:
            for name in ("d", "e"):
                durable.put(name, b"1", deferred=True)
            durable.sync(["d", "e"])
        finally:
            os._exit(0 if not durable._unsynced else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_new_folders_are_synced_up_to_the_root(durable: LocalStore, calls: SystemCalls) -> None:
    durable.put("a/b/x", b"1")
    assert calls.seen[:6] == ["mkdir w", "fsync .", "mkdir w/a", "fsync w", "mkdir w/a/b", "fsync w/a"]


def test_a_root_several_levels_deep_is_synced_where_it_hangs(calls: SystemCalls, tmp_path: Path) -> None:
    LocalStore(tmp_path / "d" / "w").put("x", b"1")
    assert calls.seen[:4] == ["mkdir d", "fsync .", "mkdir d/w", "fsync d"]


def test_a_folder_that_another_process_made_is_synced_too(
    durable: LocalStore, calls: SystemCalls, tmp_path: Path
) -> None:
    LocalStore(tmp_path / "w").make_folder("a")
    calls.seen.clear()
    durable.put("a/x", b"1")
    assert "fsync w" in calls.seen
    calls.seen.clear()
    durable.put("a/y", b"1")
    assert "fsync w" not in calls.seen


def test_delete_syncs_each_folder_once(durable: LocalStore, calls: SystemCalls) -> None:
    for path in ("a/1", "a/2", "b/1"):
        durable.put(path, b"")
    calls.seen.clear()
    durable.delete(["a/1", "a/2", "b/1", "c/none"])
    assert [call for call in calls.seen if call.startswith("fsync")] == ["fsync w/a", "fsync w/b"]


def test_delete_folder_takes_it_out_of_sight_first(durable: LocalStore, calls: SystemCalls) -> None:
    durable.put("t/x", b"1")
    calls.seen.clear()
    durable.delete_folder("t")
    assert calls.seen[:2] == ["rename w/t w/.deleted-", "fsync w"]


def put(store: LocalStore, operation: str) -> None:
    getattr(store, operation)("s/x", b"1")


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("put", "fsync"),
        ("put", "replace"),
        ("put_if_absent", "fsync"),
        ("put_if_absent", "link"),
        ("open_output", "fsync"),
        ("open_output", "replace"),
    ],
)
def test_a_failed_write_leaves_no_temporary(
    durable: LocalStore, calls: SystemCalls, tmp_path: Path, operation: str, call: str
) -> None:
    durable.make_folder("s")
    calls.failing[call] = OSError(errno.ENOSPC, "No space left on device")
    write = durable.open_output("s/x").close if operation == "open_output" else lambda: put(durable, operation)
    with pytest.raises(UnavailableError, match=r"s/x: No space"):
        write()
    assert hidden_names(tmp_path) == []
    assert durable.head("s/x") is None


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_is_refused(
    durable: LocalStore, calls: SystemCalls, tmp_path: Path, number: int
) -> None:
    calls.failing["link"] = OSError(number, os.strerror(number))
    with pytest.raises(InvalidError, match="no hard links"):
        durable.put_if_absent("snapshot-1", b"{}")
    assert hidden_names(tmp_path) == []


def test_a_create_that_finds_the_name_taken_leaves_no_temporary(durable: LocalStore, tmp_path: Path) -> None:
    durable.put("s", b"1")
    assert not durable.put_if_absent("s", b"2")
    (tmp_path / "w" / "folder").mkdir()
    assert not durable.put_if_absent("folder", b"2")
    assert hidden_names(tmp_path) == []


@pytest.mark.parametrize("deferred", [False, True])
def test_a_folder_removed_by_another_process_is_made_again(
    durable: LocalStore, calls: SystemCalls, tmp_path: Path, deferred: bool
) -> None:
    durable.put("a/b/x", b"1")
    LocalStore(tmp_path / "w").delete_folder("a")
    calls.seen.clear()
    durable.put("a/b/y", b"2", deferred=deferred)
    durable.sync(["a/b/y"])
    assert [info.path for info in durable.list("")] == ["a/b/y"]
    # The entry of each folder is durable anew.
    assert {"fsync w", "fsync w/a", "fsync w/a/b"} <= set(calls.seen)


@pytest.mark.parametrize("deferred", [False, True])
def test_a_file_in_the_place_of_a_folder_is_told(durable: LocalStore, tmp_path: Path, deferred: bool) -> None:
    durable.put("a", b"1")
    with pytest.raises(AlreadyExistsError, match="folder"):
        durable.put("a/x", b"2", deferred=deferred)
    assert hidden_names(tmp_path) == []


def test_errors_of_the_system_keep_their_kind(durable: LocalStore, calls: SystemCalls) -> None:
    durable.put("file", b"1")
    with pytest.raises(NotFoundError):
        durable.get("file/below")
    with pytest.raises(AlreadyExistsError, match="is a file"):
        durable.put("file/below", b"1")
    durable.make_folder("folder")
    with pytest.raises(NotFoundError, match="is a folder"):
        durable.get("folder")
    calls.failing["replace"] = PermissionError(errno.EACCES, "Permission denied")
    with pytest.raises(PermissionDeniedError, match="w/x"):
        durable.put("x", b"1")


def test_opening_a_store_makes_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "w")
    assert list(store.list("")) == []
    assert store.head("x") is None
    assert not (tmp_path / "w").exists()


def test_a_relative_root_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert LocalStore("w").location == str(tmp_path / "w")


def test_an_output_file_is_native_to_pyarrow(durable: LocalStore) -> None:
    """Parquet written through Python objects would cost a copy and the interpreter lock per page."""
    with durable.open_output("x") as output:
        assert isinstance(output, pa.NativeFile)


def test_leftovers_of_a_crash_are_removed_by_age(durable: LocalStore, tmp_path: Path) -> None:
    durable.put("t/seen", b"1")
    uuid = RandomIds().uuid()
    (tmp_path / "w" / "t" / f".tmp-{uuid}").write_bytes(b"half")
    (tmp_path / "w" / f".deleted-{uuid}" / "below").mkdir(parents=True)
    for name in (".other", ".tmp-1", f".tmp-{uuid}-0.parquet"):
        (tmp_path / "w" / name).write_bytes(b"not ours")
    assert durable.remove_leftovers("", older_than_ms=0) == ()
    found = durable.remove_leftovers("", older_than_ms=2**62, keep=[f".tmp-{uuid}"], dry_run=True)
    assert [info.path for info in found] == [f".deleted-{uuid}"]
    assert {info.path for info in durable.remove_leftovers("", older_than_ms=2**62)} == {
        found[0].path,
        f"t/.tmp-{uuid}",
    }
    assert sorted(path.name for path in (tmp_path / "w").rglob("*")) == sorted(
        [".other", ".tmp-1", f".tmp-{uuid}-0.parquet", "seen", "t"]
    )


def test_27_deletions_stop_at_links(durable: LocalStore, tmp_path: Path) -> None:
    """A link inside a table leads to files that are not the store's to delete; all else of the call goes."""
    durable.put("d.db/t/own", b"1")
    (tmp_path / "elsewhere/empty").mkdir(parents=True)
    (tmp_path / "elsewhere/x").write_bytes(b"theirs")
    (tmp_path / "w/d.db/t/link").symlink_to(tmp_path / "elsewhere")
    assert [durable.is_linked(path) for path in ("d.db/t/link", "d.db/t/link/x", "d.db/t", "d.db/t/own")] == [
        True,
        True,
        False,
        False,
    ]
    assert durable.list_folder("d.db/t").links == ("d.db/t/link",)
    with pytest.raises(BehindLinkError, match="symbolic link"):
        durable.delete(["d.db/t/link/x", "d.db/t/own"])
    with pytest.raises(BehindLinkError, match="symbolic link"):
        durable.delete_folder("d.db/t/link/empty")
    assert not durable.remove_empty_folder("d.db/t/link/empty")
    assert durable.head("d.db/t/own") is None
    durable.delete_folder("d.db/t/link")
    assert not (tmp_path / "w/d.db/t/link").is_symlink()
    assert (tmp_path / "elsewhere/x").read_bytes() == b"theirs"
    assert (tmp_path / "elsewhere/empty").is_dir()


def test_a_name_that_is_too_long_is_the_callers_mistake(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for action in (lambda path: store.put(path, b"x"), store.open_output, lambda path: store.put_if_absent(path, b"x")):
        with pytest.raises(InvalidError, match="longer than the file system allows"):
            action(f"p={'x' * 300}/data")
    assert list(store.list("")) == []
