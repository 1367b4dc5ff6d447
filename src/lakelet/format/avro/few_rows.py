"""A codec for small Avro files, row by row in Python.

Laying the columns of a wide record out for the kernels takes a millisecond, for one row as for ten thousand. A small commit
writes three files of a row or two and reads two, so that this was most of its time. Rows are tuples here, in the order of
the schema, records inside them too:

    few = FewRows({"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, …]})
    few.decode(few.encode([(1, …)], codec="null"), path="f") == [(1, …)]

The bytes are those of `format.avro.encode`. Only files written with this exact schema are read; other, longer or damaged ones
are left to `format.avro.decode`, which reports what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lakelet.errors import LakeletError
from lakelet.format.avro.container import (
    CODECS,
    SYNC_BYTES,
    Header,
    read_blocks,
    read_header,
    write_block,
    write_header,
)
from lakelet.format.avro.encode import random_sync
from lakelet.format.avro.row_functions import row_reader, row_writer

MOST_ROWS = 64
# Larger files have more rows than these, and are not worth looking into.
_MOST_BYTES = 1 << 16
_OWN_METADATA = {"avro.schema", "avro.codec"}


class FewRows:
    """Encodes and decodes rows of one schema, of the kinds that manifests have."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        # All of a header but the marker at its end.
        self._headers = {codec: self._header(codec) for codec in CODECS}
        self._write = row_writer(schema)
        self._read = row_reader(schema)

    def encode(self, rows: Sequence[tuple[Any, ...]], *, codec: str, sync: bytes | None = None) -> bytes:
        """A whole container file."""
        marker = random_sync() if sync is None else sync
        if codec in self._headers and len(marker) == SYNC_BYTES:
            header = self._headers[codec] + marker
        else:
            header = write_header(self._text, codec=codec, sync=marker, metadata={})
        if not rows:
            return header
        payload = bytearray()
        for row in rows:
            self._write(payload, row)
        return header + write_block(bytes(payload), rows=len(rows), codec=codec, level=None, sync=marker)

    def decode(self, data: bytes, *, path: str) -> list[tuple[Any, ...]] | None:
        """The rows of a file; None where there are many, or this class did not write it."""
        if len(data) > _MOST_BYTES:
            return None
        rows: list[tuple[Any, ...]] = []
        try:
            header = self._own_header(data) or read_header(data, path=path)
            if header.schema_text != self._text or header.metadata.keys() - _OWN_METADATA:
                return None
            for block in read_blocks(data, header, path=path):
                if len(rows) + block.rows > MOST_ROWS:
                    return None
                place = 0
                for _ in range(block.rows):
                    row, place = self._read(block.data, place)
                    rows.append(row)
                if place != len(block.data):
                    return None
        except (LakeletError, ValueError, IndexError):
            return None
        return rows

    def _header(self, codec: str) -> bytes:
        return write_header(self._text, codec=codec, sync=bytes(SYNC_BYTES), metadata={})[:-SYNC_BYTES]

    def _own_header(self, data: bytes) -> Header | None:
        """The header of a file whose header is one of ours byte by byte, which need not be parsed then."""
        for codec, before in self._headers.items():
            end = len(before) + SYNC_BYTES
            if data.startswith(before) and len(data) >= end:
                return Header(self._text, {}, codec, data[len(before) : end], end)
        return None
