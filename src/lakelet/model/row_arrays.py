"""Numpy arrays with one element a row."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
"""Which rows are chosen."""

Kinds: TypeAlias = NDArray[np.int8]
"""What each row does, by the numbers of `RowKind`."""
