"""Which paths are among the files of a lake."""

from pathlib import Path

import pytest

from lakelet.errors import InvalidError
from lakelet.storage.disk.own_files import check_outside


@pytest.mark.parametrize("path", ["d.db", "d.db/t/x", "views/x", "catalogs/y.json", "../wh/d.db/x", "other/../d.db/x"])
def test_inside(tmp_path: Path, path: str) -> None:
    root = tmp_path / "wh"
    root.mkdir()
    for location in (str(root), f"file://{root}"):
        with pytest.raises(InvalidError, match=r"WRITE .*among the files of the lake"):
            check_outside(location, str(root / path), "WRITE")


@pytest.mark.parametrize("path", ["x.csv", "export/x.csv", "../other.db/x", ".db"])
def test_outside(tmp_path: Path, path: str) -> None:
    check_outside(str(tmp_path / "wh"), str(tmp_path / "wh" / path), "WRITE")
    check_outside("s3://bucket/wh", "d.db/x", "WRITE")
