"""Keep pyarrow from importing pandas until other code imports it.

Nearly every call into pyarrow (a scalar, an array, `to_numpy`) first looks for pandas and loads it where it is installed, which
takes as long as all the rest of a small query. A command makes no frames, so an import hook hides pandas from pyarrow. If other
code of the process imports pandas later (a callback, for example), pyarrow looks again and recognises its series.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

_PANDAS = "pandas"


def defer_pandas() -> None:
    """Keep pyarrow from loading pandas; does nothing where it is loaded already."""
    if _PANDAS in sys.modules or any(isinstance(finder, _PandasFinder) for finder in sys.meta_path):
        return
    finder = _PandasFinder()
    sys.meta_path.insert(0, finder)
    import pyarrow as pa  # noqa: PLC0415 - what is loaded before may be all that a command needs.

    # The first call looks for pandas and caches that it is missing.
    pa.scalar(0)
    finder.is_hidden = False


class _PandasFinder(MetaPathFinder):
    """An import hook that hides pandas at first, and makes pyarrow look for it again when it is imported."""

    def __init__(self) -> None:
        self.is_hidden = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of pandas; None for all other modules."""
        if fullname != _PANDAS:
            return None
        if self.is_hidden:
            raise ModuleNotFoundError("pandas is not loaded by pyarrow here", name=_PANDAS)
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _PandasLoader(spec.loader)
        return spec


class _PandasLoader(Loader):
    """A loader that imports pandas and makes pyarrow look for it again."""

    def __init__(self, inner: Loader) -> None:
        self._inner = inner

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module, created by the wrapped loader."""
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        self._inner.exec_module(module)
        from pyarrow.lib import _pandas_api  # noqa: PLC0415 - it is loaded already.

        _ = _pandas_api.pd
