"""The options of the cache: names and defaults as designed, and changes while it is open."""

import pytest

from lakelet.cache.level import CacheLevel
from lakelet.cache.settings import SWITCH, CacheSettings
from lakelet.errors import InvalidError
from lakelet.options.staleness import MANUAL, STRICT, Staleness, parse_staleness


def test_the_defaults_are_those_of_the_design() -> None:
    settings = CacheSettings.of({})
    assert settings.enabled
    assert settings.staleness == STRICT
    found = {level: (limits.expire_seconds, limits.max_entries) for level, limits in settings.limits.items()}
    assert found == {
        CacheLevel.TABLE_METADATA: (86400, 10_000),
        CacheLevel.SNAPSHOT: (7200, 50_000),
        CacheLevel.SCHEMA: (43200, 5_000),
        CacheLevel.PARTITION: (3600, 10_000),
    }


@pytest.mark.parametrize(
    ("text", "expected"), [("strict", STRICT), (" Manual ", MANUAL), ("bounded(250)", Staleness(250))]
)
def test_staleness_is_read(text: str, expected: Staleness) -> None:
    assert parse_staleness(text) == expected
    assert parse_staleness(str(expected)) == expected


@pytest.mark.parametrize("text", ["", "loose", "bounded", "bounded()", "bounded(-1)", "bounded(1.5)"])
def test_other_staleness_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="strict, manual or bounded"):
        CacheSettings.of({"cache.staleness": text})


def test_one_option_is_changed_and_the_others_stay() -> None:
    before = CacheSettings.of({})
    after = before.changed("iceberg_table_metadata_cache_max_size", "20000")
    assert after.limits[CacheLevel.TABLE_METADATA].max_entries == 20_000
    assert after.limits[CacheLevel.SNAPSHOT] == before.limits[CacheLevel.SNAPSHOT]
    assert not after.changed("enable_tiered_cache", "false").enabled


def test_an_unknown_option_suggests_the_nearest() -> None:
    with pytest.raises(InvalidError, match="did you mean iceberg_schema_cache_max_size"):
        CacheSettings.of({}).changed("iceberg_schema_cache_max_sise", "1")
    with pytest.raises(InvalidError, match="expected a whole number"):
        CacheSettings.of({}).changed("iceberg_schema_cache_max_size", "many")


def test_the_environment_switches_it_off_unless_the_program_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, expected in (("", True), ("false", False), ("true", True)):
        monkeypatch.setenv(SWITCH, text)
        assert CacheSettings.of({}).enabled is expected
        assert CacheSettings.of({"enable_tiered_cache": "true"}).enabled
    monkeypatch.setenv(SWITCH, "perhaps")
    with pytest.raises(InvalidError):
        CacheSettings.of({})
