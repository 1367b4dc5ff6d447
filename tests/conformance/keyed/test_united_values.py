"""`rbm64`, `hll_sketch` and `theta_sketch`: Lakelet and Java Paimon give the same bytes for the same rows.

A table is written by both in turn and read by both, and a second one by Java alone. Sketches and bitmaps are of many sizes, for
their bytes are others when they are sparse, dense, exact or estimates.
"""

from __future__ import annotations

import random
from typing import Any

import _datasketches as library
import numpy as np
import pytest

from lakelet.format.index.radix_bitmap import Container, RadixBitmap, encode, united
from lakelet.format.index.radix_tree import Leaf, inserted
from tests.conformance.tables import DATABASE, JAVA, LAKELET, Warehouse, same
from tests.tiers.examples import FIRST_SEED, examples

COLUMNS = [("k", "INT NOT NULL"), ("wide", "BYTES"), ("hll", "BYTES"), ("theta", "BYTES")]
OPTIONS = {
    "merge-engine": "aggregation",
    "bucket": "1",
    "write-only": "true",
    "fields.wide.aggregate-function": "rbm64",
    "fields.hll.aggregate-function": "hll_sketch",
    "fields.theta.aggregate-function": "theta_sketch",
}
SIZES = (0, 1, 2, 7, 8, 30, 300, 5_000, 20_000)


@pytest.mark.parametrize("number", range(examples(4)))
def test_both_unite_to_the_same_bytes(warehouse: Warehouse, number: int) -> None:
    source = random.Random(FIRST_SEED + number)
    shared, alone = f"united_{number}", f"united_{number}_java"
    for name in (shared, alone):
        warehouse.create(source.choice([JAVA, LAKELET]), name, COLUMNS, primary_key=["k"], options=OPTIONS)
    table = warehouse.table(shared)
    for step in range(6):
        rows = [_row(source) for _ in range(3)]
        warehouse.write(JAVA, alone, rows)
        warehouse.write(source.choice([JAVA, LAKELET]), shared, rows)
        if step == 3:
            warehouse.java.compact(warehouse.folder, f"{DATABASE}.{alone}")
            table.compact(True)
        wanted = warehouse.rows(JAVA, alone)
        same(warehouse.rows(LAKELET, shared), wanted, "Lakelet")
        same(warehouse.rows(JAVA, shared), wanted, "Java")


def _row(source: random.Random) -> dict[str, Any]:
    makers = {"wide": _wide, "hll": _hll, "theta": _theta}
    values = {name: None if source.random() < 0.2 else make(source) for name, make in makers.items()}
    return {"k": source.randint(0, 1), **values}


def _wide(source: random.Random) -> bytes:
    """A bitmap with some containers below keys that are near each other, or far."""
    made = b"\0"
    for _ in range(source.choice([1, 3, 8, 60])):
        key = source.choice([source.randrange(300), source.randrange(300) << 24, source.getrandbits(48)])
        count = source.choice([1, 2, 10, 4_096, 5_000, 65_536])
        step = source.choice([1, 1, 2, 7])
        values = np.arange(0, min(count * step, 65_536), step).astype(np.uint16)
        kind = 1 if len(values) > 4_096 else 2
        leaf = Leaf(key.to_bytes(6, "big"), 0)
        one = RadixBitmap(inserted(None, leaf), [[Container(kind, values)]], 0)
        made = united(made, encode(one))
    return made


def _hll(source: random.Random) -> bytes:
    kind = source.choice([library.tgt_hll_type.HLL_4, library.tgt_hll_type.HLL_6, library.tgt_hll_type.HLL_8])
    sketch = library.hll_sketch(source.choice([8, 12, 12, 13]), kind)
    start = source.choice([0, 5, 1_000_000])
    for value in range(start, start + source.choice(SIZES)):
        sketch.update(value)
    return bytes(sketch.serialize_compact() if source.random() < 0.7 else sketch.serialize_updatable())


def _theta(source: random.Random) -> bytes:
    sketch = library.update_theta_sketch(source.choice([5, 12, 12, 13]))
    start = source.choice([0, 5, 1_000_000])
    for value in range(start, start + source.choice(SIZES)):
        sketch.update(value)
    return bytes(sketch.compact(source.random() < 0.7).serialize())
