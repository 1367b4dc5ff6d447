"""Compressed bodies are taken whole or not at all."""

import gzip
import json
import zlib
from pathlib import Path

import pytest
import zstandard

from lakelet.errors import InvalidError, TooLargeError
from lakelet.service.rest.request_body import decompressed
from tests.unit.service.served_lake import MORNING, ServedLake

TEXT = b'{"a": 1}\n' * 30_000
MOST = 1 << 20


def zstd(data: bytes, *, whole: bool = True) -> bytes:
    """A frame of unknown size; one that is not `whole` ends between two blocks."""
    made = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return made.compress(data) + made.flush(
        zstandard.COMPRESSOBJ_FLUSH_FINISH if whole else zstandard.COMPRESSOBJ_FLUSH_BLOCK
    )


@pytest.mark.parametrize(("kind", "packed"), [("gzip", gzip.compress), ("zstd", zstd)])
def test_all_members_of_a_body_are_read(kind: str, packed: type[gzip.GzipFile]) -> None:
    assert decompressed(packed(TEXT), kind, MOST) == TEXT  # type: ignore[arg-type, comparison-overlap]
    assert decompressed(packed(TEXT) + packed(TEXT), f" {kind.upper()} ", MOST) == TEXT * 2  # type: ignore[arg-type, operator]
    assert decompressed(packed(b""), kind, MOST) == b""  # type: ignore[arg-type, comparison-overlap]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *(("gzip", gzip.compress(TEXT)[:-cut]) for cut in (1, 8, 9, 20)),
        ("gzip", gzip.compress(TEXT) + b"more"),
        ("gzip", gzip.compress(TEXT) + gzip.compress(TEXT)[:-1]),
        ("gzip", gzip.compress(TEXT)[:-8] + b"12345678"),
        ("gzip", TEXT),
        ("gzip", b""),
        *(("zstd", zstandard.compress(TEXT)[:-cut]) for cut in (1, 3, 5)),
        ("zstd", zstd(TEXT, whole=False)),
        ("zstd", zstd(TEXT) + b"more"),
        ("zstd", zstd(TEXT)[:6]),
        ("zstd", b""),
        ("deflate", zlib.compress(TEXT)),
        ("gzip, zstd", gzip.compress(TEXT)),
    ],
)
def test_what_ends_early_or_goes_on_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(InvalidError):
        decompressed(body, kind, MOST)


@pytest.mark.parametrize(
    ("kind", "body"), [("gzip", gzip.compress(b" " * 99 * MOST)), ("zstd", zstd(b" " * 99 * MOST))]
)
def test_a_bomb_is_read_up_to_the_limit(kind: str, body: bytes) -> None:
    with pytest.raises(TooLargeError):
        decompressed(body, kind, MOST)


def test_no_record_of_a_compressed_batch_is_lost(tmp_path: Path) -> None:
    lines = [json.dumps({"id": str(n), "timestamp": MORNING, "payload": {"n": n}}).encode() for n in range(200)]
    first, second = b"\n".join(lines[:100]) + b"\n", b"\n".join(lines[100:])
    with ServedLake(tmp_path) as served:
        served.create("t")
        for encoding, body, written in [
            ("gzip", gzip.compress(first) + gzip.compress(second), 200),
            ("zstd", zstd(first, whole=False), None),
        ]:
            headers = {"content-type": "application/x-ndjson", "content-encoding": encoding}
            answer = served.request("POST", "/v1/data/batch?table=t", content=body, headers=headers)
            assert (answer.status_code, answer.json().get("written")) == (200 if written else 400, written)
        assert served.request("GET", "/v1/stats?table=t").json()["records"] == 200
