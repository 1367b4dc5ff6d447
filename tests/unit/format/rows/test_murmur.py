import numpy as np
import pytest

from lakelet.errors import InternalError
from lakelet.format.rows import murmur
from lakelet.format.rows.murmur import hash_words, murmur3_32
from tests.golden.binary_rows import golden_rows


def test_hash_is_that_of_java() -> None:
    for golden in golden_rows():
        assert murmur3_32(golden.row[4:]) == golden.hash


def test_a_tail_is_refused() -> None:
    with pytest.raises(InternalError):
        murmur3_32(b"12345")


@pytest.mark.parametrize("compiled", [True, False])
def test_many_at_once_equal_one_by_one(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    if compiled:
        murmur._hash_loop.load()
    else:
        monkeypatch.setattr(murmur._hash_loop, "enabled", False)
    words = np.random.default_rng(5).integers(0, 2**32, 5000, dtype=np.uint32)
    counts = np.random.default_rng(6).integers(0, 12, 300)
    starts = np.random.default_rng(7).integers(0, 4900, 300)
    expected = [murmur3_32(words[at : at + n].tobytes()) for at, n in zip(starts, counts, strict=True)]
    assert hash_words(words, starts, counts).tolist() == expected
    assert len(hash_words(words, starts[:0], counts[:0])) == 0


def test_a_row_beyond_the_buffer_is_never_read() -> None:
    with pytest.raises(InternalError):
        hash_words(np.zeros(4, np.uint32), np.array([3]), np.array([2]))
