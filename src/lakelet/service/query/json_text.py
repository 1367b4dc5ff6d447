"""The rows of a query as the text of a JSON string, as an answer over HTTP has it: `[{\\"id\\":\\"user-1\\"}]`.

All of it is there before the first byte is sent, so that a query that fails in the middle is answered by its error. Up to a few
megabytes are in memory, more is in a file without a name.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from lakelet.errors import UnavailableError
from lakelet.storage.spill_folder import process_folder

_MEMORY_BYTES = 4 << 20
_PIECE_BYTES = 1 << 20
# The bytes of a character behind its first one are 10xxxxxx.
_CHARACTER_BITS, _FURTHER = 0b1100_0000, 0b1000_0000


class JsonText:
    """A text that grows, and is then read once; used by one thread at a time."""

    def __init__(self) -> None:
        self._file: BinaryIO = io.BytesIO()
        self.is_in_file = False
        self.bytes = 0

    def add(self, text: bytes) -> None:
        """Put whole characters behind what is there."""
        for piece in _pieces(text):
            escaped = msgspec.json.encode(str(piece, "utf-8"))[1:-1]
            self.bytes += len(escaped)
            try:
                if not self.is_in_file and self.bytes > _MEMORY_BYTES:
                    self._spill()
                self._file.write(escaped)
                # What does not fit is told now, not once the answer has begun.
                self._file.flush()
            except OSError as error:
                raise UnavailableError(f"a large answer cannot be put aside: {error.strerror}") from error

    def parts(self) -> Iterator[bytes]:
        """The text, without quotes around it."""
        self._file.seek(0)
        while part := self._file.read(_PIECE_BYTES):
            yield part

    def close(self) -> None:
        """Release it."""
        self._file.close()

    def __del__(self) -> None:
        # An answer that nobody waits for any more is dropped as it is.
        self.close()

    def _spill(self) -> None:
        made = tempfile.TemporaryFile(dir=process_folder())  # noqa: SIM115 - `close` closes it.
        held, self._file, self.is_in_file = self._file, made, True
        held.seek(0)
        self._file.write(held.read())


def _pieces(text: bytes) -> Iterator[memoryview]:
    """A text in pieces of about a megabyte, each of whole characters."""
    left = memoryview(text)
    while len(left) > _PIECE_BYTES:
        end = _PIECE_BYTES
        while left[end] & _CHARACTER_BITS == _FURTHER:
            end -= 1
        yield left[:end]
        left = left[end:]
    yield left
