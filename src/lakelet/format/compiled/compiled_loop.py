"""Loops over bytes that numba compiles lazily, once the work at hand pays for it.

Each loop has a twin in numpy that gives the same result, more slowly. Loading numba takes about a second,
so the twins run until compiled loops would have saved half of that in this process; a command that touches
little never pays for the compiler.
`LAKELET_NO_NUMBA=1`, or no numba, leaves it at the twins.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lakelet.format.compiled.compile_cache import compiled, has_numba

LOAD_AFTER_SECONDS = 0.5
LOADED_AFTER_SECONDS = 0.05
"""The same where something else has loaded numba: only the machine code has to be fetched from disk then."""


@dataclass(slots=True)
class _Lost:
    """The time this process has lost to the numpy twins of all its loops: the compiler is loaded only once for all."""

    seconds: float = 0.0


LOST = _Lost()


class CompiledLoop:
    """A function written for numba, the signature to compile it for, and what that saves over numpy.

    `inner` are the functions that it calls. One that `is_direct` is called without a look at the types of its arguments, which
    takes as long as a short loop: whoever calls it gives exactly those of the signature. It holds the interpreter's lock.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        saved_ns_per_byte: float,
        *,
        inner: Sequence[Callable[..., Any]] = (),
        is_direct: bool = False,
    ) -> None:
        self._function = function
        self._inner = inner
        self._is_direct = is_direct
        self._saved_ns_per_byte = saved_ns_per_byte
        self._signature = signature
        # The compiled function, once it is loaded.
        self.compiled: Callable[..., Any] | None = None
        self._lost_seconds = 0.0
        self._lock = threading.Lock()
        self.enabled = has_numba()

    def for_bytes(self, count: int) -> Callable[..., Any] | None:
        """The compiled function if it is loaded or pays off by now, with the next `count` bytes; else None."""
        if not self.enabled:
            return None
        if self.compiled is None:
            lost = count * self._saved_ns_per_byte / 1e9
            self._lost_seconds += lost
            LOST.seconds += lost
            if "numba" in sys.modules:
                pays = self._lost_seconds > LOADED_AFTER_SECONDS
            else:
                pays = LOST.seconds > LOAD_AFTER_SECONDS
            if pays:
                self.load()
        return self.compiled

    def for_bytes_or_interpreted(self, count: int) -> Callable[..., Any]:
        """The same, and where that gives None the function itself: for a loop that is its own twin, run by the interpreter."""
        return self.for_bytes(count) or self._interpreted

    def _interpreted(self, *arguments: object) -> Any:
        # Machine words wrap around; numpy's scalars do so too, and warn.
        with np.errstate(over="ignore"):
            return self._function(*arguments)

    def load_if_enabled(self) -> None:
        """Load the compiled function now, unless numba is absent or disabled."""
        if self.enabled:
            self.load()

    def load(self) -> None:
        """Compile the function, or load the machine code that an earlier process cached."""
        with self._lock:
            if self.compiled is not None:
                return
            if not self._is_direct:
                self.compiled = compiled(self._function, self._signature, inner=self._inner, nogil=True)
                return
            dispatcher: Any = compiled(self._function, self._signature, inner=self._inner, _nrt=False)
            (only,) = dispatcher.overloads.values()
            self.compiled = only.entry_point


def compiled_loop(signature: str, *, saved_ns_per_byte: float) -> Callable[[Callable[..., Any]], CompiledLoop]:
    """Makes a function a CompiledLoop; the signature is numba's, in text."""
    return lambda function: CompiledLoop(function, signature, saved_ns_per_byte)
