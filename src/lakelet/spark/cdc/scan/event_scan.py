"""Run the loop over events: the fields of a batch of events as arrays, and their rows and distinct values."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakelet.format.compiled.compile_cache import compiled, has_numba
from lakelet.spark.cdc.scan import event_kernel as kernel

INTERPRETED_BYTES = 1 << 15
"""Loading numba takes as long as some thirty kilobytes of events do without it."""
_MOST_BYTES = 1 << 20
_SHARED, _LISTS = 1000, 500
_BYTES = "Array(uint8, 1, 'C', readonly=True)"
_SIGNATURE = (
    f"int64({_BYTES}, int64[::1], {_BYTES}, int64[:, ::1], uint8[:, ::1], int64[:, :, ::1], int64[:, ::1], int64[:, ::1], "
    "int64[::1], boolean[::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64)"
)
_INNER = (
    kernel.hex_value,
    kernel.escape_size,
    kernel.utf8_size,
    kernel.end_of_text,
    kernel.end_of_number,
    kernel.end_of_word,
    kernel.same_bytes,
    kernel.skip_blanks,
    kernel.find_name,
    kernel.shared_number,
    kernel.same_names,
    kernel.names_number,
    kernel.open_container,
    kernel.close_container,
    kernel.put_scalar,
    kernel.is_known,
    kernel.name_line,
    kernel.scan_event,
)
Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Kernel:
    """A loop that is compiled once it has seen enough bytes for that to pay."""

    def __init__(self, function: Callable[..., Any], signature: str, inner: Sequence[Callable[..., Any]]) -> None:
        self._function, self._signature, self._inner = function, signature, inner
        self._seen = 0
        self._compiled: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    def __call__(self, data: Bytes, *given: Any) -> Any:
        """Runs it over the bytes, which come first."""
        compiled = self._compiled or self._after(len(data))
        return self._function(data.tobytes(), *given) if compiled is None else compiled(data, *given)

    def _after(self, size: int) -> Callable[..., Any] | None:
        with self._lock:
            self._seen += size
            if self._compiled is None and self._seen > INTERPRETED_BYTES and has_numba():
                self._compiled = self._load()
            return self._compiled

    def _load(self) -> Callable[..., Any]:
        # Loops make no arrays: counting references to those that they get is left out.
        return compiled(self._function, self._signature, inner=self._inner, nogil=True, _nrt=False)


_scan = Kernel(kernel.scan_events, _SIGNATURE, _INNER)


@dataclass(frozen=True, slots=True)
class ScanField:
    """A name that is looked for: the object that it is in, how its value is read, and the object that its value is."""

    node: int
    name: str
    mode: int = kernel.FIELD
    child: int = -1


@dataclass(frozen=True, slots=True)
class ScanTable:
    """The fields of an envelope; a field's slot is its place."""

    fields: tuple[ScanField, ...]

    def arrays(self) -> tuple[Bytes, Numbers]:
        """The names, and a line for each: node, slot, mode, begin and end of the name, child."""
        names, lines = b"", []
        for slot, one in enumerate(self.fields):
            text = one.name.encode()
            lines.append((one.node, slot, one.mode, len(names), len(names) + len(text), one.child))
            names += text
        return np.frombuffer(names, np.uint8), np.array(lines, np.int64).reshape(-1, 6)


@dataclass(frozen=True, slots=True)
class EventScan:
    """What was found in a batch of events; `unsure` are those to be left to expressions. Columns are by slot."""

    data: Bytes
    kinds: NDArray[np.uint8]
    spans: Numbers
    numbers: Numbers
    rows: Numbers
    unsure: Flags
    shared: Numbers
    name_spans: Numbers
    lists: Numbers

    def text(self, begin: int, end: int) -> str:
        """The text of some bytes."""
        return self.data[begin:end].tobytes().decode()

    def value(self, number: int) -> Any:
        """A distinct value, parsed."""
        return json.loads(self.json(number))

    def json(self, number: int) -> str:
        """A distinct value as it is spelt."""
        return self.text(self.shared[number, 1], self.shared[number, 2])

    def names(self, number: int) -> list[str]:
        """A distinct list of names, in the order in which VARIANT has them."""
        first, end = self.lists[number]
        found = [self.text(*self.name_spans[place]) for place in range(first, end)]
        return sorted(found, key=lambda name: name.encode("utf-16-be"))

    def whole(self, slot: int) -> tuple[Numbers, Flags]:
        """The whole numbers of a slot, and where there are some; events with anything else than one or null become unsure."""
        kinds = self.kinds[:, slot]
        has = kinds == kernel.WHOLE
        self.unsure[~has & (kinds > kernel.NULL)] = True
        return self.numbers[:, slot], has

    def distinct(self, slot: int, kind: int) -> Numbers:
        """The numbers of the distinct values of a slot, -1 for none; events with another kind of value become unsure."""
        kinds = self.kinds[:, slot]
        has = kinds == kind
        self.unsure[~has & (kinds > kernel.NULL)] = True
        return np.where(has, self.numbers[:, slot], -1)


def bytes_of(column: pa.Array) -> tuple[Bytes, Numbers]:
    """The bytes of a BINARY column, and where each value begins and the last ends."""
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.binary())
    _, ends, content = column.buffers()
    offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    filled = content is not None and content.size > 0
    return np.frombuffer(content, np.uint8) if filled else np.zeros(0, np.uint8), offsets


def scan_events(column: pa.Array, table: ScanTable, root: int = kernel.INSIDE) -> EventScan:
    """Scans a BINARY column; NULLs are not looked at, and are not unsure."""
    count = len(column)
    data, offsets = bytes_of(column)
    names, lines = table.arrays()
    slots = max(1, len(table.fields))
    nulls = np.asarray(column.is_null())
    skipped = nulls | (np.diff(offsets) > _MOST_BYTES)
    room = 2 * count + 64
    while True:
        kinds, spans = np.zeros((count, slots), np.uint8), np.zeros((count, slots, 2), np.int64)
        numbers, rows = np.zeros((count, slots), np.int64), np.zeros((room, 5), np.int64)
        sizes, unsure = np.zeros(4, np.int64), skipped.copy()
        shared, last = np.zeros((_SHARED, 4), np.int64), np.full(slots, -1, np.int64)
        name_spans, lists = np.zeros((_LISTS * 40, 2), np.int64), np.zeros((_LISTS, 2), np.int64)
        found, stack = np.zeros((kernel.MOST_NAMES, 2), np.int64), np.zeros((kernel.DEPTH, 5), np.int64)
        read = _scan(
            *(data, offsets, names, lines, kinds, spans, numbers, rows, sizes, unsure),
            *(shared, last, name_spans, lists, found, stack, root),
        )
        if read == count:
            break
        room *= 4
    unsure[nulls] = False
    return EventScan(data, kinds, spans, numbers, rows[: sizes[0]], unsure, shared, name_spans, lists)
