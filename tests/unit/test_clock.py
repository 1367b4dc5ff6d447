from lakelet.clock import shown_time


def test_times_are_shown_as_people_write_them() -> None:
    assert shown_time(1_767_225_600_123) == "2026-01-01T00:00:00.123+00:00"
    assert shown_time(-1) == "1969-12-31T23:59:59.999+00:00"


def test_a_time_that_no_calendar_has_is_a_number() -> None:
    assert shown_time(2**62) == f"{2**62} ms since 1970"
