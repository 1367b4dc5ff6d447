"""RFC 3339 texts and microseconds."""

import pytest

from lakelet.errors import InvalidError
from lakelet.service.timestamps import check_timestamp_us, parse_timestamp, timestamp_text


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2026-01-31T10:00:00.5+02:00", 1_769_846_400_500_000),
        ("2026-01-31 10:00:00.123456000z", 1_769_853_600_123_456),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ],
)
def test_texts_are_microseconds(text: str, us: int) -> None:
    assert parse_timestamp(text) == us
    assert parse_timestamp(timestamp_text(us)) == us


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-01-31", "2026-01-31T10:00Z", "2026-01-31T10:00:00", "2026-01-31T10:00:60Z", "2026-01-31T24:00:00Z",
     "2026-01-31T10:00:00.0000001Z", "0001-01-01T00:00:00+01:00x", "٢026-01-31T10:00:00Z", None, 7,
     "0001-01-01T00:00:01+00:04", "9999-12-31T23:59:59-01:00"],
)  # fmt: skip
def test_other_texts_are_refused(text: object) -> None:
    with pytest.raises(InvalidError):
        parse_timestamp(text)


def test_moments_outside_of_the_years_are_refused() -> None:
    with pytest.raises(InvalidError):
        check_timestamp_us(2**62)
