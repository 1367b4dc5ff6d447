"""The manifest that the tests of the codec share, and the two ways its kernels run."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pytest

from lakelet.format.avro import compiled


@pytest.fixture(scope="module", params=["numba", "python"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test with compiled kernels from the first byte on, and again with interpreted ones."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setenv("LAKELET_NO_NUMBA", "1")
        else:
            pytest.importorskip("numba")
            patch.delenv("LAKELET_NO_NUMBA", raising=False)
            patch.setattr(compiled, "INTERPRETED_BYTES", -1)
        yield request.param


def _stats(name: str) -> dict[str, Any]:
    counts = ["null", {"type": "array", "items": ["null", "long"]}]
    fields = [("_MIN_VALUES", "bytes"), ("_MAX_VALUES", "bytes"), ("_NULL_COUNTS", counts)]
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


_STRINGS = {"type": "array", "items": "string"}
_FILE_FIELDS: list[tuple[str, Any]] = [
    ("_FILE_NAME", "string"),
    ("_FILE_SIZE", "long"),
    ("_ROW_COUNT", "long"),
    ("_MIN_KEY", "bytes"),
    ("_MAX_KEY", "bytes"),
    ("_KEY_STATS", _stats("record__FILE__KEY_STATS")),
    ("_VALUE_STATS", _stats("record__FILE__VALUE_STATS")),
    ("_MIN_SEQUENCE_NUMBER", "long"),
    ("_MAX_SEQUENCE_NUMBER", "long"),
    ("_SCHEMA_ID", "long"),
    ("_LEVEL", "int"),
    ("_EXTRA_FILES", _STRINGS),
    ("_CREATION_TIME", ["null", {"type": "long", "logicalType": "timestamp-millis"}]),
    ("_DELETE_ROW_COUNT", ["null", "long"]),
    ("_EMBEDDED_FILE_INDEX", ["null", "bytes"]),
    ("_FILE_SOURCE", ["null", "int"]),
    ("_VALUE_STATS_COLS", ["null", _STRINGS]),
    ("_EXTERNAL_PATH", ["null", "string"]),
    ("_FIRST_ROW_ID", ["null", "long"]),
    ("_WRITE_COLS", ["null", _STRINGS]),
]
_ENTRY_FIELDS: list[tuple[str, Any]] = [
    ("_VERSION", "int"),
    ("_KIND", "int"),
    ("_PARTITION", "bytes"),
    ("_BUCKET", "int"),
    ("_TOTAL_BUCKETS", "int"),
    ("_FILE", {"type": "record", "name": "record__FILE", "fields": [{"name": n, "type": t} for n, t in _FILE_FIELDS]}),
]


@pytest.fixture(scope="session")
def entry_schema() -> dict[str, Any]:
    """The Avro schema of a manifest entry."""
    fields = [{"name": n, "type": t} for n, t in _ENTRY_FIELDS]
    return {"type": "record", "name": "record", "namespace": "org.apache.paimon.avro.generated", "fields": fields}


@pytest.fixture(scope="session")
def make_entries() -> Callable[[int], list[dict[str, Any]]]:
    """A function that makes that many manifest entries, the same ones every time."""
    return _entries


def _entries(count: int) -> list[dict[str, Any]]:
    pick = random.Random(count)

    def stats(columns: int) -> dict[str, Any]:
        counts = (
            None if pick.random() < 0.1 else [pick.choice([None, 0, pick.randrange(10**6)]) for _ in range(columns)]
        )
        size = pick.randrange(4, 130)
        return {"_MIN_VALUES": pick.randbytes(size), "_MAX_VALUES": pick.randbytes(size), "_NULL_COUNTS": counts}

    def perhaps(value: Any) -> Any:
        return pick.choice([None, value])

    return [
        {
            "_VERSION": 2,
            "_KIND": pick.randrange(2),
            "_PARTITION": pick.randbytes(pick.randrange(40)),
            "_BUCKET": pick.randrange(-2, 200),
            "_TOTAL_BUCKETS": 200,
            "_FILE": {
                "_FILE_NAME": f"data-{pick.getrandbits(128):032x}-{i}.parquet",
                "_FILE_SIZE": pick.randrange(2**40),
                "_ROW_COUNT": pick.randrange(2**24),
                "_MIN_KEY": pick.randbytes(12),
                "_MAX_KEY": pick.randbytes(12),
                "_KEY_STATS": stats(1),
                "_VALUE_STATS": stats(9),
                "_MIN_SEQUENCE_NUMBER": -(2**63) if i == 0 else i,
                "_MAX_SEQUENCE_NUMBER": 2**63 - 1 if i == 0 else i + 1,
                "_SCHEMA_ID": 0,
                "_LEVEL": pick.randrange(6),
                "_EXTRA_FILES": [f"index-{k}" for k in range(pick.randrange(3))],
                "_CREATION_TIME": perhaps(1_700_000_000_000 + i),
                "_DELETE_ROW_COUNT": perhaps(i),
                "_EMBEDDED_FILE_INDEX": perhaps(pick.randbytes(30)),
                "_FILE_SOURCE": perhaps(1),
                "_VALUE_STATS_COLS": perhaps(["id", "näme"]),
                "_EXTERNAL_PATH": perhaps("s3://elsewhere/file"),
                "_FIRST_ROW_ID": perhaps(i * 1000),
                "_WRITE_COLS": perhaps([]),
            },
        }
        for i in range(count)
    ]


@pytest.fixture(scope="session")
def by_fastavro() -> Callable[..., bytes]:
    """A function that writes a container file with fastavro."""

    def write(schema: Any, rows: list[Any], **options: Any) -> bytes:
        out = io.BytesIO()
        fastavro.writer(out, fastavro.parse_schema(schema), rows, **options)
        return out.getvalue()

    return write
