"""The text of a JSON string, in memory and in a file."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from lakelet.errors import UnavailableError
from lakelet.service.query.json_text import JsonText

MODULE = "lakelet.service.query.json_text"
# Characters of one to four bytes, and those that JSON writes in another way.
PARTS = ['[{"a":"é€😀"}', ',{"b\\n":"\\"\t"}', "", ',"\x1f\x7f\u2028"]']


@pytest.mark.parametrize("memory", [0, 30, 1 << 20])
@pytest.mark.parametrize("piece", [4, 5, 7, 1 << 20])
def test_parts_are_one_string_of_json(monkeypatch: pytest.MonkeyPatch, memory: int, piece: int) -> None:
    monkeypatch.setattr(f"{MODULE}._MEMORY_BYTES", memory)
    monkeypatch.setattr(f"{MODULE}._PIECE_BYTES", piece)
    text = JsonText()
    for part in PARTS:
        text.add(part.encode())
    assert text.is_in_file == (memory < 1 << 20)
    found = list(text.parts())
    assert max(map(len, found)) <= piece
    whole = b"".join(found)
    assert len(whole) == text.bytes
    assert json.loads(b'"' + whole + b'"') == "".join(PARTS)
    text.close()


def test_a_file_is_for_what_memory_does_not_take_and_has_no_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(f"{MODULE}._MEMORY_BYTES", 4)
    monkeypatch.setenv("LAKELET_TMPDIR", str(tmp_path))
    small, large = JsonText(), JsonText()
    small.add(b"1234")
    assert not list(tmp_path.iterdir())
    large.add(b"12345")
    assert (small.is_in_file, large.is_in_file) == (False, True)
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if not name.endswith(".lock")]


def test_a_disk_that_is_full_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/path")

    monkeypatch.setattr(f"{MODULE}._MEMORY_BYTES", 4)
    monkeypatch.setattr(f"{MODULE}.tempfile.TemporaryFile", full)
    with pytest.raises(UnavailableError, match=r"put aside: No space left on device$"):
        JsonText().add(b"12345")
