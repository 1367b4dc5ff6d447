"""The rows that benchmarks write and read: nine columns, seeded, the same in every environment.

    id BIGINT, uuid STRING, quantity INT, price DOUBLE, amount DECIMAL(12, 2), ordered_at TIMESTAMP(6), day DATE,
    paid BOOLEAN, note STRING

Only numpy and pyarrow are used, so that peers with an old pyarrow make the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SEED = 20261115
BATCH_ROWS = 131_072
_DAY_MICROS = 86_400_000_000
WORDS = np.array(
    [
        "amber",
        "basil",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "haven",
        "iris",
        "juniper",
        "kelp",
        "lotus",
        "maple",
        "nectar",
        "opal",
        "pine",
    ]
)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("uuid", pa.string()),
        ("quantity", pa.int32()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(12, 2)),
        ("ordered_at", pa.timestamp("us")),
        ("day", pa.date32()),
        ("paid", pa.bool_()),
        ("note", pa.string()),
    ]
)


def batch(number: int, rows: int = BATCH_ROWS) -> pa.RecordBatch:
    """The batch of that number; the same number gives the same rows."""
    random = np.random.default_rng([SEED, number])
    start = number * BATCH_ROWS
    micros = 20_000 * _DAY_MICROS + (start + np.arange(rows)) * 1_000 + random.integers(0, 1_000, rows)
    columns = [
        pa.array(start + np.arange(rows)),
        uuids(random.bytes(rows * 16)),
        pa.array(random.integers(1, 1_000, rows).astype(np.int32)),
        pa.array(np.round(random.gamma(2.0, 40.0, rows), 3)),
        decimals(random.integers(100, 5_000_000, rows)),
        pa.array(micros).cast(pa.timestamp("us")),
        pa.array((micros // _DAY_MICROS).astype(np.int32)).cast(pa.date32()),
        pa.array(random.random(rows) < 0.8),
        notes(random, rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """A number of rows, batch by batch."""
    for number, start in enumerate(range(0, rows, BATCH_ROWS)):
        yield batch(number, min(BATCH_ROWS, rows - start))


def table(rows: int) -> pa.Table:
    """A number of rows as one table."""
    return pa.Table.from_batches(batches(rows), SCHEMA)


def uuids(values: bytes) -> pa.Array:
    """Sixteen bytes each, as text."""
    rows = len(values) // 16
    digits = np.frombuffer(values.hex().encode(), np.uint8).reshape(rows, 32)
    text = np.full((rows, 36), ord("-"), np.uint8)
    for into, out_of, length in ((0, 0, 8), (9, 8, 4), (14, 12, 4), (19, 16, 4), (24, 20, 12)):
        text[:, into : into + length] = digits[:, out_of : out_of + length]
    offsets = np.arange(0, 36 * (rows + 1), 36, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text.tobytes()))


def decimals(cents: np.ndarray) -> pa.Array:
    """Whole numbers of cents as DECIMAL(12, 2)."""
    halves = np.zeros((len(cents), 2), np.int64)
    halves[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(halves.tobytes())])


def notes(random: np.random.Generator, rows: int) -> pa.Array:
    """Three words and a number out of many: text that neither repeats often nor is noise. One in twenty is NULL."""
    picked = random.integers(0, len(WORDS), (rows, 3))
    numbers = pa.array(random.integers(0, 100_000, rows)).cast(pa.string())
    parts = [pa.array(WORDS).take(pa.array(picked[:, place])) for place in range(3)]
    text = pc.binary_join_element_wise(*parts, numbers, " ")
    return pc.if_else(pa.array(random.random(rows) < 0.05), pa.scalar(None, pa.string()), text)
