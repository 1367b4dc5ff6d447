"""A store that lets a test step in between two calls of the code under test."""

from collections.abc import Callable
from typing import TypeVar

from lakelet.storage.decorated import DecoratedStore

T = TypeVar("T")


class HookedStore(DecoratedStore):
    """Runs `after(call, path)` once, after the first call for which `when(call, path)` holds."""

    when: Callable[[str, str], bool] | None = None
    after: Callable[[], object] | None = None

    def _around(self, call: str, path: str, action: Callable[[], T]) -> T:
        result = action()
        if self.when is not None and self.after is not None and self.when(call, path):
            self.when, after = None, self.after
            after()
        return result
