"""The rows that benchmarks put into tables with primary keys: nine columns, seeded, the same in every environment.

    id BIGINT, uuid STRING, order_no STRING, line INT, price DOUBLE, amount DECIMAL(12, 2), ordered_at TIMESTAMP(6),
    paid BOOLEAN, note STRING

The id decides the uuid, and the order and its line, so that each of the three is a key of the same rows; a row's `version`
decides the rest of it. Only numpy and pyarrow are used, so that peers with an old pyarrow make the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.append.rows import BATCH_ROWS, SEED, WORDS, decimals, notes, uuids

Ids = NDArray[np.int64]

KEYS = {"BIGINT": ["id"], "uuid": ["uuid"], "(string, int)": ["order_no", "line"]}
LINES_OF_ORDER = 8
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("uuid", pa.string()),
        ("order_no", pa.string()),
        ("line", pa.int32()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(12, 2)),
        ("ordered_at", pa.timestamp("us")),
        ("paid", pa.bool_()),
        ("note", pa.string()),
    ]
)
_MULTIPLIERS = (2_654_435_761, 2_246_822_519, 3_266_489_917)
_MICROS = 20_000 * 86_400_000_000


def load_ids(rows: int) -> Ids:
    """All ids below `rows`, in no order."""
    return np.random.default_rng([SEED, rows]).permutation(rows)


def update_ids(rows: int, count: int, version: int) -> Ids:
    """A random sample of the ids below `rows`, each at most once, in no order."""
    return np.random.default_rng([SEED, rows, version]).choice(rows, count, replace=False)


def half_new_ids(rows: int, count: int) -> Ids:
    """Half of them ids below `rows`, half the ones that follow, in no order."""
    random = np.random.default_rng([SEED, rows, count])
    known = random.choice(rows, count - count // 2, replace=False)
    return random.permutation(np.concatenate([known, rows + np.arange(count // 2)]))


def rows_of(ids: Ids, version: int) -> pa.Table:
    """The rows of the ids, in batches."""
    starts = range(0, len(ids), BATCH_ROWS)
    return pa.Table.from_batches([_batch(ids[at : at + BATCH_ROWS], version, at) for at in starts], SCHEMA)


def scattered(rows: int, count: int, version: int) -> Iterator[pa.RecordBatch]:
    """`count` of the rows with ids below `rows`, no id twice, made batch by batch: a number times a prime, modulo `rows`."""
    multiplier = _MULTIPLIERS[version % len(_MULTIPLIERS)]
    for at in range(0, count, BATCH_ROWS):
        numbers = np.arange(at, min(count, at + BATCH_ROWS)) + version * 1_000_003
        yield _batch(numbers % rows * multiplier % rows, version, at)


def _batch(ids: Ids, version: int, at: int) -> pa.RecordBatch:
    rows = len(ids)
    random = np.random.default_rng([SEED, version, at])
    orders = ids // LINES_OF_ORDER
    names = pa.array(WORDS).take(pa.array(_mixed(orders.astype(np.uint64)) % np.uint64(len(WORDS))))
    micros = _MICROS + (at + np.arange(rows)) * 1_000 + random.integers(0, 1_000, rows)
    columns = [
        pa.array(ids),
        uuids(np.stack([_mixed(ids.astype(np.uint64) + np.uint64(half << 40)) for half in (1, 2)], axis=1).tobytes()),
        pc.binary_join_element_wise(names, pa.array(orders).cast(pa.string()), "-"),
        pa.array((ids % LINES_OF_ORDER).astype(np.int32)),
        pa.array(np.round(random.gamma(2.0, 40.0, rows), 3)),
        decimals(random.integers(100, 5_000_000, rows)),
        pa.array(micros).cast(pa.timestamp("us")),
        pa.array(random.random(rows) < 0.8),
        notes(random, rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers scattered over 64 bits, different ones staying different (the finaliser of splitmix64)."""
    mixed = numbers * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
