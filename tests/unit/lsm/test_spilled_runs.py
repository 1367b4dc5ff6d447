"""Runs spilled to the local disk."""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.lsm import spilled_runs
from lakelet.lsm.spilled_runs import SpilledRuns

ONE, TWO = (b"one", 0), (b"two", 3)


def batches(*ids: list[int]) -> list[pa.RecordBatch]:
    return [pa.record_batch({"id": part}) for part in ids]


def merged(runs: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """One after the other; as good as a merge where nobody looks at the order."""
    return chain.from_iterable(runs)


def test_many_runs_become_few_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilled_runs, "MOST_RUNS", 3)
    spilled = SpilledRuns()
    for number in range(20):
        spilled.spill([(ONE, iter(batches([number], [-number]))), (TWO, iter(batches([100 + number])))])
    runs = spilled.runs(ONE, merged)
    assert len(runs) == 3
    found = [row for run in runs for part in run for row in part.column("id").to_pylist()]
    assert found == [row for number in range(20) for row in (number, -number)]
    assert sum(part.num_rows for run in spilled.runs(TWO, merged) for part in run) == 20
    spilled.close()


def test_each_bucket_has_its_own_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spilled = SpilledRuns()
    assert not spilled.places
    assert not list(tmp_path.rglob("*.arrow"))
    spilled.spill([(ONE, iter(batches([1, 2], [3]))), (TWO, iter(batches([9])))])
    spilled.spill([(TWO, iter(batches([7], [8])))])
    assert list(spilled.places) == [ONE, TWO]
    assert [[row for part in run for row in part.column("id").to_pylist()] for run in spilled.runs(TWO, merged)] == [
        [9],
        [7, 8],
    ]
    assert [[row for part in run for row in part.column("id").to_pylist()] for run in spilled.runs(ONE, merged)] == [
        [1, 2, 3]
    ]
    assert spilled.runs((b"three", 0), merged) == []
    assert list(tmp_path.rglob("*.arrow"))
    spilled.close()
    assert not list(tmp_path.rglob("*.arrow"))
    spilled.close()


def test_an_error_while_spilling_leaves_nothing_after_close(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spilled = SpilledRuns()

    def failing() -> object:
        yield batches([1])[0]
        raise MemoryError

    with pytest.raises(MemoryError):
        spilled.spill([(ONE, failing())])  # type: ignore[list-item]
    spilled.close()
    assert not list(tmp_path.rglob("*.arrow"))
