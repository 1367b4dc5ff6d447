"""Rows of nodes, in memory and in files."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.errors import CorruptionError
from lakelet.service.query.gathered_rows import GatheredFolder, GatheredPart, GatheredRows

_SCHEMA = pa.schema([("n", pa.int64())])


def _part(folder: GatheredFolder, *numbers: int) -> GatheredPart:
    part = GatheredPart(_SCHEMA, folder)
    for number in numbers:
        part.add(pa.record_batch({"n": [number]}, schema=_SCHEMA))
    part.finish()
    return part


@pytest.fixture
def spilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKELET_TMPDIR", str(tmp_path))
    return tmp_path


def _files(folder: Path) -> list[str]:
    return [name for root, _, names in os.walk(folder) for name in names if "gathered" in root]


def test_a_folder_is_made_for_rows_that_memory_does_not_take(spilled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = GatheredFolder()
    rows = GatheredRows([_part(folder, 1, 2)], folder)
    assert not list(spilled.iterdir())
    rows.close()
    monkeypatch.setattr("lakelet.service.query.gathered_rows._MEMORY_BYTES", 8)
    folder = GatheredFolder()
    rows = GatheredRows([_part(folder, 1, 2, 3), _part(folder, 4)], folder)
    assert len(_files(spilled)) == 1
    for _ in range(2):
        assert [n for batch in rows.batches() for n in batch.column(0).to_pylist()] == [1, 2, 3, 4]
    rows.close()
    assert not _files(spilled)


def test_rows_that_are_dropped_leave_no_file(spilled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.service.query.gathered_rows._MEMORY_BYTES", 8)
    folder = GatheredFolder()
    part = _part(folder, 1, 2, 3)
    part.drop()
    assert not _files(spilled)
    assert part.bytes == 0
    with pytest.raises(CorruptionError, match="rows of another node"):
        part.add(pa.record_batch({"m": [1]}))
    folder.cleanup()
