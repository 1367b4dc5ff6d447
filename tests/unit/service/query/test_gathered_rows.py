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


def test_rows_of_a_file_are_read_batch_by_batch(spilled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.service.query.gathered_rows._MEMORY_BYTES", 0)
    folder = GatheredFolder()
    part = GatheredPart(_SCHEMA, folder)
    added = pa.record_batch({"n": pa.array(range(100_000), pa.int64())}, schema=_SCHEMA)
    for _ in range(20):
        part.add(added)
    part.finish()
    before, found = pa.total_allocated_bytes(), 0
    for batch in part.batches():
        found += batch.num_rows
        # Neither as memory of Arrow nor as pages of a mapped file: a gateway has as much as one batch of an answer.
        assert pa.total_allocated_bytes() - before < 4 * added.nbytes
        assert "lakelet-gathered-" not in Path("/proc/self/maps").read_text()
    assert found == 20 * added.num_rows
    folder.cleanup()


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_file_that_was_cut_off_is_no_shorter_answer(
    spilled: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    monkeypatch.setattr("lakelet.service.query.gathered_rows._MEMORY_BYTES", 0)
    folder = GatheredFolder()
    part = _part(folder, 1, 2, 3)
    (path,) = (one for one in spilled.rglob("lakelet-gathered-*/*") if one.is_file())
    # Without the mark of its end, a stream of fewer batches is the beginning of the longer one.
    whole, sink = path.read_bytes(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as writer:
        for number in range(1, left + 1):
            writer.write_batch(pa.record_batch({"n": [number]}, schema=_SCHEMA))
    begun = sink.getvalue().to_pybytes()[:-8]
    assert whole.startswith(begun)
    path.write_bytes(begun)
    batches = part.batches()
    assert [next(batches).column(0).to_pylist() for _ in range(left)] == [[1], [2], [3]][:left]
    with pytest.raises(CorruptionError, match=f"expected 3 rows, found {left}"):
        next(batches)
    folder.cleanup()
