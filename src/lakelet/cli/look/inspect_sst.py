"""`lakelet inspect sst`: what an SST file holds, and whether it is whole."""

from __future__ import annotations

import datetime as dt

from lakelet.cli.output.output import Output
from lakelet.errors import InvalidError, NotFoundError, UnavailableError
from lakelet.format.sst.sst_reader import FileSource, SstReader
from lakelet.model.row_kind import RowKind

_SHOWN = 20
_SHOWN_BYTES = 24


def inspect_sst(output: Output, path: str) -> None:
    """A file: its meta block, columns, data blocks and first rows; CorruptionError for a damaged one."""
    try:
        source = FileSource(path)
        reader = SstReader(source)
        reader.verify()
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: expected an SST file, found none") from error
    except IsADirectoryError as error:
        raise InvalidError(f"{path}: expected an SST file, found a folder") from error
    except OSError as error:
        raise UnavailableError(f"{path}: {error}") from error
    meta, bloom = reader.meta, reader.bloom
    made = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=reader.create_ms)
    output.values(
        path,
        {
            "rows": meta.row_count,
            "schema": meta.schema_id,
            "created": made.isoformat(),
            "compression": meta.compression,
            "delta encoding": meta.delta_encoding,
            "least key": _shown(meta.min_key),
            "greatest key": _shown(meta.max_key),
            "data blocks": len(reader.index.places),
            "bloom filter": "none" if bloom is None else f"{bloom.total_bits} bits, {bloom.hash_count} hashes",
            "bytes": source.size,
        },
    )
    columns = [(field.id, field.name, str(field.type)) for field in meta.fields]
    output.rows("columns", ("id", "name", "type"), columns)
    blocks = zip(reader.index.places, reader.index.first_keys, reader.index.separators, strict=True)
    places = [(place.offset, place.size, _shown(first), _shown(last)) for place, first, last in blocks]
    output.rows("the first data blocks", ("offset", "bytes", "first key", "separator"), places[:_SHOWN])
    if not places:
        return
    block = reader.rows(0, 1)
    kinds = [RowKind(kind).short for kind in block.kinds.tolist()]
    rows = zip(map(_shown, block.keys), block.sequences.tolist(), kinds, strict=True)
    output.rows("the first rows", ("key", "sequence number", "kind"), list(rows)[:_SHOWN])


def _shown(key: bytes) -> str:
    return key.hex() if len(key) <= _SHOWN_BYTES else f"{key[:_SHOWN_BYTES].hex()}…"
