"""Ages and past times as arguments."""

from datetime import UTC, datetime, timedelta

import pytest

from lakelet.errors import InvalidError
from lakelet.table.time_arguments import past_ms

NOW = int(datetime(2026, 1, 2, tzinfo=UTC).timestamp() * 1000)
DAY = 24 * 60 * 60 * 1000


@pytest.mark.parametrize(
    "age",
    [
        "1 d",
        "1d",
        " 24 h ",
        "PT24H",
        timedelta(days=1),
        datetime(2026, 1, 1),
        datetime(2026, 1, 1, tzinfo=UTC),
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "2026-01-01T02:00:00+02:00",
    ],
)
def test_a_day_ago(age: str | timedelta | datetime) -> None:
    assert past_ms(age, NOW, "older_than") == NOW - DAY


def test_now_is_the_latest() -> None:
    assert past_ms("0 s", NOW, "older_than") == NOW
    for age in (timedelta(seconds=-1), "2026-01-03", datetime(2027, 1, 1)):
        with pytest.raises(InvalidError, match=r"older_than .*past"):
            past_ms(age, NOW, "older_than")


@pytest.mark.parametrize("age", ["", "soon", "1 fortnight", 7, None, 1.5, True, b"1 d"])
def test_anything_else_is_refused(age: object) -> None:
    with pytest.raises(InvalidError, match=r"older_than .*expected an age"):
        past_ms(age, NOW, "older_than")  # type: ignore[arg-type]
