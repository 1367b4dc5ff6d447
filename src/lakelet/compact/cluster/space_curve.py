"""Positions on space-filling curves, computed over whole columns.

The columns come as ranks of a number of bits each. A position interleaves these bits, the most significant first:

    Z-order    a₂b₂ a₁b₁ a₀b₀                 a = a₂a₁a₀, b = b₂b₁b₀
    Hilbert    the same, after every square of the grid is turned so that the curve never jumps (Skilling's transform)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.uint64]
POSITION_BITS = 64


def zorder_positions(ranks: Sequence[Ranks], bits: int) -> Ranks:
    """The position of every row on the Z-order curve."""
    position = np.zeros(len(ranks[0]), np.uint64)
    one = np.uint64(1)
    for bit in range(bits - 1, -1, -1):
        for rank in ranks:
            position = (position << one) | ((rank >> np.uint64(bit)) & one)
    return position


def hilbert_positions(ranks: Sequence[Ranks], bits: int) -> Ranks:
    """The position of every row on the Hilbert curve."""
    axes = np.stack(ranks)
    for bit in range(bits - 1, 0, -1):
        square, below = np.uint64(1 << bit), np.uint64((1 << bit) - 1)
        for number in range(len(axes)):
            turned = (axes[number] & square) != 0
            # An axis differs in no bit from itself, so that nothing is swapped with the first one where it is this one.
            swapped = np.where(turned, np.uint64(0), (axes[0] ^ axes[number]) & below)
            axes[0] ^= np.where(turned, below, swapped)
            if number:
                axes[number] ^= swapped
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    parity = np.zeros(axes.shape[1], np.uint64)
    for bit in range(bits - 1, 0, -1):
        has = (axes[-1] & np.uint64(1 << bit)) != 0
        parity ^= np.where(has, np.uint64((1 << bit) - 1), np.uint64(0))
    axes ^= parity
    return zorder_positions(list(axes), bits)
