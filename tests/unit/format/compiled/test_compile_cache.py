"""Kernels run, and their machine code is kept, where neither the code's folder nor HOME can be written."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("numba")

SOURCE = Path(__file__).parents[4] / "src" / "lakelet"
# Computes the hash of 1,000 words by the compiled loop and says where Lakelet came from, whether the loop was found compiled,
# and where its machine code is kept.
RUN = """
import numpy, lakelet
from lakelet.format.rows import murmur
words = numpy.arange(1000, dtype=numpy.uint32)
found, = murmur.hash_words(words, numpy.array([0]), numpy.array([1000]))
assert found == murmur.murmur3_32(words.tobytes())
stats = murmur._hash_loop.compiled.stats
print(lakelet.__file__, sum(stats.cache_hits.values()), stats.cache_path or "", sep="\\n")
"""


def run(code: Path, temporary: Path, **variables: str) -> tuple[str, int, str]:
    temporary.mkdir(exist_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))},
        # Below a device nobody can make a folder, not even root.
        "HOME": "/dev/null/nowhere",
        "PYTHONPATH": str(code),
        "TMPDIR": str(temporary),
        **variables,
    }
    ended = subprocess.run([sys.executable, "-c", RUN], env=environment, cwd="/", capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    where, found, folder = ended.stdout.split("\n")[:3]
    return where, int(found), folder


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "lakelet-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as writer:
        for file in SOURCE.rglob("*.py"):
            writer.write(file, str(Path("lakelet", file.relative_to(SOURCE))))
    return path


def test_code_in_an_archive_is_compiled_once_for_every_place(archive: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    where, found, folder = run(archive, temporary)
    assert where.startswith(str(archive))
    assert found == 0
    mine = temporary / f"lakelet-{os.getuid()}"
    assert Path(folder).is_relative_to(mine)
    assert mine.stat().st_mode & 0o777 == 0o700
    # Another application has its archive elsewhere, under a name that numba would know, and still finds the machine code.
    elsewhere = tmp_path / "elsewhere" / "lakelet.zip"
    elsewhere.parent.mkdir()
    shutil.copy(archive, elsewhere)
    where, found, again = run(elsewhere, temporary)
    assert where.startswith(str(elsewhere))
    assert (found, again) == (1, folder)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    code = tmp_path / "code"
    shutil.copytree(SOURCE, code / "lakelet", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path for path in code.rglob("*") if path.is_dir()]:
        (folder / "__pycache__").touch()
    where, found, kept = run(code, tmp_path / "tmp")
    assert where.startswith(str(code))
    assert Path(kept).is_relative_to(tmp_path / "tmp")
    assert found == 0


def test_the_folder_that_numba_was_told_is_used(archive: Path, tmp_path: Path) -> None:
    *_, folder = run(archive, tmp_path / "tmp", NUMBA_CACHE_DIR=str(tmp_path / "chosen"))
    assert Path(folder).is_relative_to(tmp_path / "chosen")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_folder_that_others_may_write_is_not_used(archive: Path, tmp_path: Path) -> None:
    mine = tmp_path / "tmp" / f"lakelet-{os.getuid()}"
    mine.mkdir(parents=True)
    mine.chmod(0o777)
    assert run(archive, tmp_path / "tmp")[1:] == (0, "")
    assert list(mine.iterdir()) == []


def test_kernels_run_where_nothing_at_all_can_be_kept(archive: Path, tmp_path: Path) -> None:
    mine = tmp_path / "tmp" / f"lakelet-{os.getuid()}"
    mine.parent.mkdir()
    mine.touch()
    assert run(archive, tmp_path / "tmp")[1:] == (0, "")
