"""Folders of spilled rows: removed with their process, and after a kill by the next one."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelet.storage import spill_folder
from lakelet.storage.spill_folder import SpillFolder

SPILLER = """
    import sys, time
    from pathlib import Path
    from lakelet.storage.spill_folder import SpillFolder
    folder = SpillFolder("lakelet-")
    Path(folder.name, "rows.arrow").write_bytes(b"x" * 100_000)
    print(folder.name, flush=True)
    if sys.argv[1] == "wait":
        time.sleep(600)
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("LAKELET_TMPDIR", str(tmp_path))
    monkeypatch.setattr(spill_folder, "_process", spill_folder._Process())
    yield tmp_path
    spill_folder._process.remove()


def spiller(how: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SPILLER), how], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("rows.arrow"))


def test_a_process_that_ends_removes_its_folders(root: Path) -> None:
    process, _ = spiller("end")
    assert process.wait() == 0
    assert files(root) == []
    assert list(root.rglob("*.lock")) == []


def test_the_folder_of_a_killed_process_goes_with_the_next_one(root: Path) -> None:
    dead, left = spiller("wait")
    living, kept = spiller("wait")
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert left.is_dir()
        stranger = root / f"lakelet-spill-{os.getuid()}" / "not-ours"
        stranger.mkdir()
        (stranger / "rows.arrow").write_bytes(b"1")
        SpillFolder("lakelet-").cleanup()
        assert not left.parent.exists()
        assert (kept / "rows.arrow").exists(), "the folder of a process that lives was removed"
        assert (stranger / "rows.arrow").exists(), "a folder without a lock was removed"
    finally:
        living.kill()
        living.wait()


def test_a_sweep_follows_no_link(root: Path) -> None:
    precious = root / "precious"
    precious.mkdir()
    (precious / "rows.arrow").write_bytes(b"1")
    shared = root / f"lakelet-spill-{os.getuid()}"
    shared.mkdir()
    (shared / "dead.lock").write_bytes(b"")
    (shared / "dead").symlink_to(precious)
    (shared / "linked.lock").symlink_to(precious / "rows.arrow")
    SpillFolder("lakelet-").cleanup()
    assert (precious / "rows.arrow").exists()


def test_a_name_that_somebody_else_has_taken_is_not_used(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / f"lakelet-spill-{os.getuid()}").symlink_to(root / "elsewhere")
    folder = SpillFolder("lakelet-")
    assert list((root / "elsewhere").iterdir()) == []
    assert Path(folder.name).is_dir()
    folder.cleanup()


def test_a_forked_child_has_a_folder_of_its_own(root: Path) -> None:
    mine = spill_folder.process_folder()
    child = os.fork()
    if child == 0:
        spill_folder._process.forget()
        os._exit(0 if spill_folder.process_folder() != mine else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert os.path.isdir(mine)
