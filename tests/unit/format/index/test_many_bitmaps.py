"""Many bitmaps encoded together are those that each is alone: arrays, runs and dense containers, few of them and many."""

from __future__ import annotations

import random

import numpy as np

from lakelet.format.index.deletion_vectors import encode_bitmap
from lakelet.format.index.many_bitmaps import encode_bitmaps
from tests.tiers.examples import FIRST_SEED, examples

SPAN = 1 << 16


def container(source: random.Random) -> set[int]:
    """Rows of one container, in one of the forms that it may have."""
    match source.randrange(6):
        case 0:
            return {source.randrange(SPAN)}
        case 1:
            return set(source.sample(range(SPAN), source.randint(2, 40)))
        case 2:
            begin = source.randrange(SPAN - 300)
            return set(range(begin, begin + source.randint(2, 300)))
        case 3:
            return set(range(0, SPAN, source.choice([3, 7])))
        case 4:
            return set(range(SPAN))
        case _:
            return {*range(0, 4096 * 2, 2)} | ({9001} if source.random() < 0.5 else set())


def group(source: random.Random) -> list[int]:
    """Ascending rows of one group, in some containers near the beginning or far behind."""
    keys = source.sample(range(8), source.choice([1, 1, 1, 2, 3, 4, 7]))
    far = source.choice([0, 0, 30_000])
    return sorted(((key + far) << 16) + low for key in keys for low in container(source))


def test_each_is_what_it_is_alone() -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + examples(30)):
        source = random.Random(seed)
        groups = [np.array(group(source), np.int64) for _ in range(source.randint(1, 6))]
        starts = np.cumsum([0, *(len(one) for one in groups[:-1])])
        data, ends = encode_bitmaps(np.concatenate(groups), starts)
        alone = [encode_bitmap(one) for one in groups]
        assert data.tobytes() == b"".join(alone), seed
        assert ends.tolist() == np.cumsum([len(one) for one in alone]).tolist()


def test_nothing_takes_nothing() -> None:
    data, ends = encode_bitmaps(np.empty(0, np.int64), np.empty(0, np.int64))
    assert (len(data), len(ends)) == (0, 0)
