"""The policy of automatic tags: names, periods and when one is due."""

from datetime import datetime, timedelta

import pytest

from lakelet.commit.versions.tag_periods import TagPeriods
from lakelet.errors import InvalidError
from lakelet.options import TableOptions

NOON = datetime(2026, 11, 15, 12, 34, 56, 789000)


def periods(**options: str) -> TagPeriods:
    given = {"tag." + name.replace("_", "-"): value for name, value in options.items()}
    found = TagPeriods.of(TableOptions({"tag.automatic-creation": "process-time"} | given))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "2026-11-14"),
        ({"period_formatter": "without_dashes"}, "20261114"),
        ({"period_formatter": "without_dashes_and_spaces"}, "20261114"),
        ({"creation_period": "hourly"}, "2026-11-15 11"),
        ({"creation_period": "hourly", "period_formatter": "without_dashes"}, "20261115 11"),
        ({"creation_period": "hourly", "period_formatter": "without_dashes_and_spaces"}, "2026111511"),
        ({"creation_period": "two-hours"}, "2026-11-15 10"),
        ({"creation_period_duration": "15 min"}, "202611151215"),
        ({"creation_period_duration": "7 d"}, "202611050000"),
    ],
)
def test_the_last_period_that_has_ended_and_its_name(options: dict[str, str], name: str) -> None:
    made = periods(**options)
    assert made.name(made.ended_before(NOON)) == name
    assert made.period(name) == made.ended_before(NOON)


@pytest.mark.parametrize("name", ["eod", "2026-11-31", "2026-1-1", "20261114", "", "2026-11-14x", "２０２６-11-14"])
def test_other_names_are_nobodys(name: str) -> None:
    assert periods().period(name) is None


def test_a_daily_tag_goes_on_from_an_hourly_one() -> None:
    assert periods().period("2026-11-14 07") == datetime(2026, 11, 14)
    assert periods(creation_period="hourly").period("2026-11-14") is None


def test_the_first_snapshot_ever_stands_for_the_period_before() -> None:
    assert periods().due(None, NOON) == datetime(2026, 11, 14)


def test_a_period_is_due_when_the_next_has_begun_and_the_delay_is_over() -> None:
    made = periods(creation_delay="10 min")
    upcoming = datetime(2026, 11, 14)
    assert made.due(upcoming, datetime(2026, 11, 15, 0, 9, 59)) is None
    assert made.due(upcoming, datetime(2026, 11, 15, 0, 10)) == upcoming
    assert made.due(upcoming, datetime(2026, 11, 17, 1)) == datetime(2026, 11, 16)


def test_missed_periods_are_completed_on_demand() -> None:
    made = periods(automatic_completion="true")
    upcoming = datetime(2026, 11, 10)
    assert made.due(upcoming, NOON) == upcoming
    assert made.due(made.after(upcoming), NOON) == datetime(2026, 11, 11)
    assert made.due(None, NOON) == datetime(2026, 11, 14)


@pytest.mark.parametrize("mode", ["none", "batch"])
def test_other_modes_have_no_periods(mode: str) -> None:
    assert TagPeriods.of(TableOptions({"tag.automatic-creation": mode})) is None


@pytest.mark.parametrize("options", [{"creation_delay": "1 d"}, {"creation_period_duration": "0 ms"}])
def test_a_period_is_longer_than_its_delay(options: dict[str, str]) -> None:
    with pytest.raises(InvalidError, match=r"longer than 'tag\.creation-delay'"):
        periods(**options)


def test_lengths_are_exact() -> None:
    made = TagPeriods(timedelta(hours=2), "{0:04}{1:02}{2:02}{3:02}{4:02}")
    assert made.ready(datetime(2026, 1, 1)) == datetime(2026, 1, 1, 2)
