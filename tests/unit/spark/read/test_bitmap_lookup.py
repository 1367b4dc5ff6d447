"""The arrays in which Spark looks bits up: every file is found by its size, no file of another size is."""

import numpy as np
import pytest

from lakelet.spark.read import bitmap_lookup
from lakelet.spark.read.bitmap_lookup import PackedBitmaps, packed_bitmaps
from lakelet.spark.read.row_bitmaps import words_of


def _found(packed: PackedBitmaps, size: int) -> list[int] | None:
    """The words of a file, as the expression finds them."""
    slot = (size << 2) >> int(packed.files[3]) & int(packed.files[7])
    known, first, count, _ = packed.files[slot : slot + 4].tolist()
    return packed.words[first : first + count].tolist() if known == size else None


@pytest.mark.parametrize("count", [1, 2, 3, 24, 100])
@pytest.mark.parametrize("largest", [200, 100_000, 1 << 40])
def test_files_are_found_by_size(count: int, largest: int) -> None:
    random = np.random.default_rng(count)
    sizes = random.choice(largest, count, replace=False).tolist() if largest < 1 << 20 else []
    sizes = sizes or [int(size) for size in random.integers(1 << 39, largest, count)]
    words = {size: words_of(np.arange(place % 7), 10 + 64 * (place % 3)) for place, size in enumerate(sizes)}
    packed = packed_bitmaps(words)
    assert packed is not None
    for size, own in words.items():
        assert _found(packed, size) == own.tolist()
    assert not any(_found(packed, size) for size in {*range(500), 1 << 41} - words.keys())


def test_a_file_without_rows_has_no_words() -> None:
    packed = packed_bitmaps({5: np.empty(0, np.int64), 6: words_of(np.array([3]), 4)})
    assert packed is not None
    assert (_found(packed, 5), _found(packed, 6)) == ([], [8])


def test_what_is_too_large_to_travel_with_every_task(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {size: words_of(np.array([1]), 100) for size in range(10, 40)}
    assert packed_bitmaps(words) is not None
    monkeypatch.setattr(bitmap_lookup, "_MOST_WORDS", 59)
    assert packed_bitmaps(words) is None
    monkeypatch.undo()
    monkeypatch.setattr(bitmap_lookup, "_MOST_SLOTS", 16)
    assert packed_bitmaps(words) is None
