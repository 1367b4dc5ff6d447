"""What values add to a payload's type, and what they leave to `payload_rest`."""

from typing import Any

import pytest

from lakelet.model.types import Row
from lakelet.service.ingest.payload_growth import DEEPEST, MOST_FIELDS, PayloadGrowth, count_fields


def grown(*payloads: dict[str, Any], exact: frozenset[str] = frozenset()) -> PayloadGrowth:
    growth = PayloadGrowth(None, exact)
    for payload in payloads:
        for name, value in payload.items():
            growth.show(name, value)
    return growth


def text(growth: PayloadGrowth) -> str | None:
    return None if growth.row is None else str(growth.row)


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        ([{"a": 1}], "ROW<`a` BIGINT>"),
        ([{"a": 25.0}], "ROW<`a` BIGINT>"),
        ([{"a": 1}, {"a": 1.5}], "ROW<`a` DOUBLE>"),
        ([{"a": 1.5}, {"a": 1}], "ROW<`a` DOUBLE>"),
        ([{"a": 1e300}], "ROW<`a` DOUBLE>"),
        ([{"a": True}, {"a": 1}], "ROW<`a` BOOLEAN>"),
        ([{"a": "x"}, {"a": 1}], "ROW<`a` STRING>"),
        ([{"a": None}], None),
        ([{"a": []}], None),
        ([{"a": {}}], None),
        ([{"a": [None]}], None),
        ([{"a": [None, 1]}, {"a": [1.5]}], "ROW<`a` ARRAY<DOUBLE>>"),
        ([{"a": [1, "x"]}], None),
        ([{"a": {"b": {"c": 1}}}, {"a": {"b": {"d": "x"}}}], "ROW<`a` ROW<`b` ROW<`c` BIGINT, `d` STRING>>>"),
        ([{"a": [{"b": 1}]}, {"a": [{"c": 1}]}], "ROW<`a` ARRAY<ROW<`b` BIGINT, `c` BIGINT>>>"),
        ([{"a": 1, "A": 2}], "ROW<`a` BIGINT>"),
        ([{"a": {"b": 1, "B": 2}}], None),
        ([{"": 1, " x": 1, "\n": 1, "名": 1}], "ROW<`名` BIGINT>"),
        ([{"a": 2**63}], None),
        ([{"a": -(2**63)}], "ROW<`a` BIGINT>"),
        ([{"a": {"b": 1}}, {"a": {"b": "x", "c": 1}}], "ROW<`a` ROW<`b` BIGINT>>"),
    ],
)
def test_a_type_grows_with_its_values(payloads: list[dict[str, Any]], expected: str | None) -> None:
    assert text(grown(*payloads)) == expected


def test_a_field_that_held_a_large_integer_stays_exact() -> None:
    growth = grown({"a": 2**53 + 1}, {"a": 0.5})
    assert text(growth) == "ROW<`a` BIGINT>"
    assert growth.exact == {"a"}
    assert text(grown({"a": 1}, {"a": 0.5}, exact=frozenset({"a"}))) == "ROW<`a` BIGINT>"


def test_two_to_the_53_is_exact_as_a_double() -> None:
    growth = grown({"a": 2**53}, {"a": 0.5})
    assert text(growth) == "ROW<`a` DOUBLE>"
    assert growth.exact == set()


def test_a_large_integer_does_not_fit_a_double() -> None:
    growth = grown({"a": 0.5}, {"a": 2**60})
    assert text(growth) == "ROW<`a` DOUBLE>"
    assert growth.exact == set()


def test_fields_are_limited_in_number_nested_ones_included() -> None:
    growth = grown({f"f{number}": {"x": number} for number in range(MOST_FIELDS)})
    assert growth.row is not None
    assert count_fields(growth.row) == MOST_FIELDS
    growth.show("more", 1)
    assert count_fields(growth.row) == MOST_FIELDS


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = {"x": value}
    return value


def test_depth_is_limited() -> None:
    assert grown({"a": nested(DEEPEST)}).row is not None
    assert grown({"a": nested(DEEPEST + 1)}).row is None


def test_a_misfit_leaves_nothing_behind() -> None:
    growth = grown({"a": {"b": 1}})
    before = growth.row
    growth.show("a", {"new": 1, "b": "no number"})
    assert growth.row is before
    assert isinstance(before, Row)
    assert count_fields(before) == 2
