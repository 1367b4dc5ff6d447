"""The base of output files that are written sequentially."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class SequentialOutput(ABC):
    """Leaving a `with` block closes the file, leaving it by an exception aborts it."""

    @abstractmethod
    def close(self) -> None:
        """Makes the object visible."""

    @abstractmethod
    def abort(self) -> None:
        """Leaves nothing."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close() if kind is None else self.abort()
