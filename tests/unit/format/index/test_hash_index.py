"""Hash indexes: the bytes, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
from lakelet.format.index.hash_index import decode_hash_index, encode_hash_index


def test_the_bytes_are_big_endian_numbers_and_nothing_else() -> None:
    data = encode_hash_index(np.array([258, -1, 0, -(2**31), 258], np.int32))
    assert data.hex(" ", 4) == "80000000 ffffffff 00000000 00000102"


@given(st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_what_is_written_is_read(hashes: list[int]) -> None:
    data = encode_hash_index(np.array(hashes, np.int32))
    assert decode_hash_index(data, path="x", expected=len(set(hashes))).tolist() == sorted(set(hashes))


def test_other_writers_need_not_sort() -> None:
    assert decode_hash_index(bytes.fromhex("00000005ffffffff00000005"), path="x").tolist() == [5, -1, 5]


@pytest.mark.parametrize(("data", "expected"), [(b"\0\0\0", None), (b"\0" * 9, None), (b"\0" * 8, 3), (b"", 1)])
def test_bytes_that_cannot_be_an_index_are_corrupt(data: bytes, expected: int | None) -> None:
    with pytest.raises(CorruptionError, match="index/index-1"):
        decode_hash_index(data, path="index/index-1", expected=expected)
