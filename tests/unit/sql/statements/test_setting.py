import pytest

from lakelet import InvalidError, Lake, LakeletError
from lakelet.storage.memory import MemoryStore


@pytest.fixture
def lake() -> Lake:
    return Lake(MemoryStore())


@pytest.mark.parametrize(
    "text",
    [
        "SET threads = 2",
        "SET threads TO 2",
        "set SESSION threads = '2'",
        "SET GLOBAL threads = 1 + 1",
        "SET 'threads' = 2",
        "SET threads = (SELECT 2)",
    ],
)
def test_a_setting_of_duckdb_holds_for_the_queries_that_follow(lake: Lake, text: str) -> None:
    assert lake.sql(text).rows() == [("threads = 2",)]
    assert lake.sql("SELECT current_setting('threads')::INT").rows() == [(2,)]
    assert lake.sql("SET").rows() == [("threads", "2")]


def test_parameters_are_values(lake: Lake) -> None:
    lake.sql("SET TimeZone = $zone", {"zone": "Asia/Tokyo"})
    assert lake.sql("SELECT current_setting('TimeZone')").rows() == [("Asia/Tokyo",)]


def test_the_zone_has_words_of_its_own(lake: Lake) -> None:
    lake.sql("SET TIME ZONE 'Europe/Rome'")
    assert lake.sql("SELECT (TIMESTAMPTZ '2026-07-01 12:00:00+00')::VARCHAR").rows() == [("2026-07-01 14:00:00+02",)]


def test_own_settings_are_checked(lake: Lake) -> None:
    lake.sql("SET 'dynamic-partition-overwrite' = 'false'")
    lake.sql("SET dynamic-partition-overwrite = true")
    with pytest.raises(InvalidError, match="expected true or false, found 'maybe'"):
        lake.sql("SET dynamic-partition-overwrite = maybe")
    assert lake.sql("SET").rows() == [("dynamic-partition-overwrite", "true")]


@pytest.mark.parametrize(
    "text",
    [
        "SET nothing = 1",
        "SET threads = 'many'",
        "SET threads = -5",
        "SET default_collation = 'nocase'",
        "SET lock_configuration = true",
        "SET enable_external_access = false",
        "SET disabled_filesystems = 'LocalFileSystem'",
        "SET search_path = 'x'",
        "SET TimeZone = 'Nowhere/Land'",
        "SET",
        "SET threads",
        "SET threads =",
        "SET threads = nothing(1)",
        "SET = 2",
        "RESET nothing",
        "RESET threads, x",
    ],
)
def test_what_is_refused_changes_nothing(lake: Lake, text: str) -> None:
    if text != "SET":
        with pytest.raises(LakeletError):
            lake.sql(text)
    assert lake.sql("SET").rows() == []
    assert lake.sql("SELECT 1").rows() == [(1,)]


@pytest.mark.parametrize("text", ["RESET memory_limit", "RESET MEMORY_LIMIT", "RESET"])
def test_a_setting_that_lets_no_query_run_can_be_taken_back(lake: Lake, text: str) -> None:
    lake.sql("SET memory_limit = '1B'")
    with pytest.raises(LakeletError):
        lake.sql("SELECT * FROM range(100000) r(i) ORDER BY hash(i)").rows()
    lake.sql(text)
    assert lake.sql("SELECT 1").rows() == [(1,)]
    assert lake.sql("SET").rows() == []
