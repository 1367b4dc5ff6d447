"""Values that an Arrow type holds and a column does not."""

import pyarrow as pa
import pytest

from lakelet.errors import InvalidError
from lakelet.model.type_parser import parse_type
from lakelet.sink.rows.value_checks import check_values

MOST = 10**38 - 1


def decimals(numbers: list[int], scale: int = 0) -> pa.Array:
    """Decimals of 128 bits by their digits, also of 39, which Arrow's own constructors refuse."""
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
    return pa.Array.from_buffers(pa.decimal128(38, scale), len(numbers), [None, pa.py_buffer(data)])


@pytest.mark.parametrize("number", [MOST + 1, -MOST - 1, 2**127 - 1, -(2**127)])
@pytest.mark.parametrize("scale", [0, 5, 38])
def test_a_decimal_has_no_more_digits_than_its_type(number: int, scale: int) -> None:
    array = decimals([0, MOST, -MOST, number, 1], scale)
    kind = parse_type(f"DECIMAL(38, {scale})")
    with pytest.raises(InvalidError, match=r"column 'd' is DECIMAL\(38, \d+\), of at most 38 digits, but row 13 has"):
        check_values(array, kind, "d", 10)
    lists = pa.ListArray.from_arrays([0, 2, 5], array)
    with pytest.raises(InvalidError, match=r"column 'd.element' is .*, but row 1 has"):
        check_values(lists, parse_type(f"ARRAY<DECIMAL(38, {scale})>"), "d")
    rows = pa.StructArray.from_arrays([array], ["x"])
    with pytest.raises(InvalidError, match=r"column 'd.x' is .*, but row 3 has"):
        check_values(rows, parse_type(f"ROW<x DECIMAL(38, {scale})>"), "d")


def test_decimals_of_as_many_digits_fit() -> None:
    check_values(decimals([MOST, -MOST, 0]), parse_type("DECIMAL(38, 0)"), "d")
    check_values(pa.nulls(3, pa.decimal128(38, 0)), parse_type("DECIMAL(38, 0)"), "d")
    check_values(decimals([]), parse_type("DECIMAL(38, 0)"), "d")
