import os
import subprocess
import sys

import numpy as np
import pytest

from lakelet.format.compiled import compiled_loop
from lakelet.format.compiled.compiled_loop import CompiledLoop


def _double(values: np.ndarray) -> None:
    for index in range(values.shape[0]):
        values[index] *= 2


def test_numpy_serves_until_compiling_pays_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_loop, "LOAD_AFTER_SECONDS", 100e-9)
    monkeypatch.setattr(compiled_loop, "LOADED_AFTER_SECONDS", 100e-9)
    loop = CompiledLoop(_double, "void(int64[::1])", 1.0)
    assert loop.for_bytes(60) is None
    run = loop.for_bytes(60)
    assert run is not None
    values = np.arange(3)
    run(values)
    assert values.tolist() == [0, 2, 4]
    assert loop.for_bytes(0) is run


def _python(code: str, **environment: str) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    settings = {**os.environ, "PYTHONPATH": paths, **environment}
    subprocess.run([sys.executable, "-c", code], env=settings, check=True)


def test_little_work_does_not_load_numba() -> None:
    _python(
        "import sys, pyarrow as pa\n"
        "from lakelet.format.rows.binary_row_columns import hash_rows\n"
        "from lakelet.model.types import string\n"
        "assert len(hash_rows([pa.array(['a', 'a longer text'])], [string()])) == 2\n"
        "assert 'numba' not in sys.modules\n"
    )


def test_numba_can_be_switched_off() -> None:
    _python(
        "from lakelet.format.compiled.compiled_loop import CompiledLoop\n"
        "assert CompiledLoop(print, 'void()', 1.0).for_bytes(1 << 40) is None\n",
        LAKELET_NO_NUMBA="1",
    )
