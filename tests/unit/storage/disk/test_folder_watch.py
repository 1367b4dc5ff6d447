"""A watch of folders misses no change of them by any process, and no other way that its paths may lead."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.storage.disk import folder_watch
from lakelet.storage.disk.folder_watch import LocalFolderWatch, watch_folders
from lakelet.storage.disk.inotify import INOTIFY, OVERFLOWED, Inotify
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore

pytestmark = pytest.mark.skipif(INOTIFY is None, reason="the system tells of no changes")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    if INOTIFY is None or not INOTIFY.is_local(str(tmp_path)):
        pytest.skip("changes of this file system may be another machine's")
    place = tmp_path / "real" / "lake" / "t"
    (place / "snapshot").mkdir(parents=True)
    (place / "schema").mkdir()
    (tmp_path / "link").symlink_to("real")
    return tmp_path / "link" / "lake" / "t"


def watched(table: Path) -> LocalFolderWatch:
    found = watch_folders([str(table / "schema"), str(table / "snapshot")])
    assert found is not None
    return found


def by_another_process(program: str, *paths: Path) -> None:
    subprocess.run([sys.executable, "-c", f"import os, sys\n{program}", *map(str, paths)], check=True)


CHANGES: dict[str, str] = {
    "created": "open(sys.argv[1] + '/snapshot/snapshot-2', 'x').close()",
    "linked": "os.link(sys.argv[1] + '/snapshot/snapshot-1', sys.argv[1] + '/snapshot/snapshot-2')",
    "renamed": "os.rename(sys.argv[1] + '/snapshot/snapshot-1', sys.argv[1] + '/snapshot/other')",
    "replaced": "open(sys.argv[1] + '/n', 'x').close(); os.replace(sys.argv[1] + '/n', sys.argv[1] + '/snapshot/snapshot-1')",
    "written": "open(sys.argv[1] + '/snapshot/snapshot-1', 'a').write('more')",
    "deleted": "os.unlink(sys.argv[1] + '/snapshot/snapshot-1')",
    "altered": "open(sys.argv[1] + '/schema/schema-1', 'x').close()",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_another_process_is_seen_when_it_has_returned(table: Path, change: str) -> None:
    (table / "snapshot" / "snapshot-1").write_text("one")
    watch = watched(table)
    before = watch.moment()
    assert watch.is_unchanged(before)
    by_another_process(CHANGES[change], table)
    assert (watch.is_unchanged(before), watch.is_lost) == (False, False)
    assert watch.is_unchanged(watch.moment())
    watch.close()


MOVES: dict[str, Callable[[Path], None]] = {
    "the table": lambda root: os.rename(root / "real/lake/t", root / "real/lake/u"),
    "a folder above it": lambda root: os.rename(root / "real", root / "other"),
    "a folder of the two": lambda root: os.rename(root / "real/lake/t/snapshot", root / "away"),
    "a deleted folder": lambda root: os.rmdir(root / "real/lake/t/snapshot"),
}


@pytest.mark.parametrize("move", MOVES)
def test_a_path_that_leads_elsewhere_is_lost(table: Path, tmp_path: Path, move: str) -> None:
    watch = watched(table)
    before = watch.moment()
    MOVES[move](tmp_path)
    assert (watch.is_unchanged(before), watch.is_lost) == (False, True)
    assert not watch.is_unchanged(watch.moment())
    watch.close()


def test_a_symbolic_link_that_is_replaced_is_noticed(table: Path, tmp_path: Path) -> None:
    (tmp_path / "second" / "lake" / "t" / "snapshot").mkdir(parents=True)
    (tmp_path / "second" / "lake" / "t" / "schema").mkdir()
    watch = watched(table)
    before = watch.moment()
    (tmp_path / "new").symlink_to("second")
    # Somebody holds the old link, so that it is not gone yet.
    held = os.open(tmp_path / "link", os.O_PATH | os.O_NOFOLLOW)
    os.replace(tmp_path / "new", tmp_path / "link")
    assert (watch.is_unchanged(before), watch.is_lost) == (False, True)
    os.close(held)
    again = watched(table)
    moment = again.moment()
    (tmp_path / "second/lake/t/snapshot/snapshot-1").touch()
    assert not again.is_unchanged(moment)
    watch.close()
    again.close()


def test_watches_of_one_folder_do_not_disturb_each_other(table: Path) -> None:
    first, second = watched(table), watched(table)
    outer = watch_folders([str(table)])
    assert outer is not None
    moments = [one.moment() for one in (first, second, outer)]
    (table / "manifest").mkdir()
    # The table's own folder is only a step for the other two.
    assert [one.is_unchanged(at) for one, at in zip((first, second, outer), moments, strict=True)] == [
        True,
        True,
        False,
    ]
    first.close()
    assert not first.is_unchanged(moments[0])
    (table / "snapshot" / "snapshot-1").touch()
    assert (second.is_unchanged(moments[1]), second.is_lost) == (False, False)
    second.close()
    outer.close()


def test_what_another_thread_is_about_to_tell_counts(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread has taken the event from the queue, and has not told of it yet: another one waits for that."""
    assert INOTIFY is not None
    watch = watched(table)
    before = watch.moment()
    (table / "snapshot" / "snapshot-1").touch()
    taken, go_on = threading.Event(), threading.Event()
    tell = Inotify._tell

    def late(self: Inotify, *event: int) -> None:
        taken.set()
        go_on.wait(300)
        tell(self, *event)

    monkeypatch.setattr(Inotify, "_tell", late)
    found: list[bool] = []
    first = threading.Thread(target=watch.moment)
    first.start()
    assert taken.wait(300)
    second = threading.Thread(target=lambda: found.append(watch.is_unchanged(before)))
    second.start()
    second.join(0.05)
    assert found == []
    go_on.set()
    first.join()
    second.join()
    assert found == [False]
    watch.close()


def test_a_queue_that_is_full_is_a_change_of_everything(table: Path) -> None:
    assert INOTIFY is not None
    watch = watched(table)
    before = watch.moment()
    with INOTIFY._lock:
        INOTIFY._tell(None, OVERFLOWED)
    assert (watch.is_unchanged(before), watch.is_lost) == (False, True)
    watch.close()


def test_a_forked_process_has_none_of_its_parents_watches(table: Path) -> None:
    watch = watched(table)
    before = watch.moment()
    (table / "snapshot" / "snapshot-1").touch()
    child = os.fork()
    if child == 0:
        own = watch_folders([str(table / "snapshot")])
        is_right = watch.is_lost and not watch.is_unchanged(before) and own is not None
        is_right = is_right and own is not None and own.is_unchanged(own.moment())
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    # The child has taken no event from its parent.
    assert (watch.is_unchanged(before), watch.is_lost) == (False, False)
    watch.close()


def test_where_no_watch_can_be_had(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watch_folders([str(table / "schema"), str(table / "absent")]) is None
    assert MemoryStore("m").watch(["schema"]) is None
    store = LocalStore(table)
    own = store.watch(["schema", "snapshot"])
    assert own is not None
    own.close()
    monkeypatch.setattr(Inotify, "is_local", lambda *_: False)
    assert store.watch(["schema", "snapshot"]) is None
    monkeypatch.undo()
    monkeypatch.setattr(folder_watch, "INOTIFY", None)
    assert store.watch(["schema", "snapshot"]) is None


def test_a_limit_on_watches_leaves_none_behind(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert INOTIFY is not None
    add, left, before = Inotify.add, [3], dict(INOTIFY._listeners)

    def limited(self: Inotify, *asked: object) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        return add(self, *asked)  # type: ignore[arg-type]

    monkeypatch.setattr(Inotify, "add", limited)
    assert watch_folders([str(table / "snapshot")]) is None
    assert before == INOTIFY._listeners
