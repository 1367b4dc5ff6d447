"""Positions on curves through a grid: each once, and on the Hilbert curve without a jump."""

import numpy as np
import pytest

from lakelet.compact.cluster.space_curve import hilbert_positions, zorder_positions


def _grid(columns: int, bits: int) -> list[np.ndarray]:
    cells = np.indices([1 << bits] * columns, dtype=np.uint64)
    return [axis.reshape(-1) for axis in cells]


def test_zorder_interleaves_bits() -> None:
    a, b = np.array([0b000, 0b001, 0b111], np.uint64), np.array([0b000, 0b010, 0b000], np.uint64)
    assert zorder_positions([a, b], 3).tolist() == [0, 0b000110, 0b101010]


@pytest.mark.parametrize(("columns", "bits"), [(1, 4), (2, 1), (2, 4), (3, 3), (4, 2)])
def test_positions_are_all_different(columns: int, bits: int) -> None:
    grid = _grid(columns, bits)
    for positions in (zorder_positions(grid, bits), hilbert_positions(grid, bits)):
        assert sorted(positions.tolist()) == list(range(1 << (columns * bits)))


@pytest.mark.parametrize(("columns", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_neighbours_on_the_hilbert_curve_are_neighbours(columns: int, bits: int) -> None:
    grid = _grid(columns, bits)
    cells = np.stack(grid)[:, np.argsort(hilbert_positions(grid, bits))].astype(np.int64)
    assert (np.abs(np.diff(cells, axis=1)).sum(axis=0) == 1).all()
