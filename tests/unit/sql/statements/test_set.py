from pathlib import Path

import pytest

from lakelet import InvalidError, Lake, LakeletError
from lakelet.sql.engine.settings import ENGINE_SETTINGS, OWN_SETTINGS
from lakelet.sql.query.table_functions import REFUSED_FUNCTIONS
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
        "PRAGMA threads = 2",
        "PRAGMA threads='2'",
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
        # What these would change is what a comparison, a cast or an operator means.
        "SET default_collation = 'nocase'",
        "SET Calendar = 'japanese'",
        "set calendar to 'buddhist'",
        "SET ieee_floating_point_ops = false",
        "SET integer_division = true",
        "SET regex_match_operator_semantics = 'full'",
        "SET disable_timestamptz_casts = true",
        "SET preserve_insertion_order = false",
        "SET dialect_compatibility_mode = 'spark'",
        "SET error_on_division_by_zero = false",
        "SET binary_as_string = true",
        # Files that have changed would be read as they were.
        "SET parquet_metadata_cache = true",
        "SET enable_http_metadata_cache = true",
        "SET validate_external_file_cache = 'NO_VALIDATION'",
        # DuckDB would write, read or fetch files by these.
        "SET log_query_path = 'queries'",
        "SET profiling_output = 'profile'",
        "SET enable_profiling = 'json'",
        "SET enable_logging = true",
        "SET logging_storage = 'file'",
        "SET temp_directory = 'spilled'",
        "SET secret_directory = 'secrets'",
        "SET home_directory = '.'",
        "SET file_search_path = '.'",
        "SET extension_directories = ['.']",
        "SET custom_extension_repository = 'x'",
        "SET autoinstall_known_extensions = true",
        "SET autoload_known_extensions = true",
        "SET allow_unsigned_extensions = true",
        "SET http_proxy = 'x'",
        "RESET log_query_path",
        "RESET autoinstall_known_extensions",
        "SET log_query_path TO DEFAULT",
        "INSTALL httpfs",
        "LOAD httpfs",
        "FORCE INSTALL httpfs FROM community",
        "ATTACH 'other.db'",
        "DETACH memory",
        "PRAGMA enable_profiling",
        "PRAGMA log_query_path = 'queries'",
        "CALL enable_logging()",
        "CALL force_checkpoint()",
        "CREATE SECRET s (TYPE s3)",
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
def test_what_is_refused_changes_nothing(
    lake: Lake, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if text != "SET":
        with pytest.raises(LakeletError):
            lake.sql(text)
    assert lake.sql("SET").rows() == []
    assert lake.sql("SELECT 1").rows() == [(1,)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ENGINE_SETTINGS)
def test_every_setting_that_may_be_changed_can_be(lake: Lake, name: str) -> None:
    value = f"SELECT current_setting('{name}')::VARCHAR"
    before = lake.sql(value).rows()
    if before[0][0] is not None:
        lake.sql(f"SET {name.upper()} = $1", [before[0][0]])
        assert lake.sql("SET").rows() == [(name, before[0][0])]
    lake.sql(f"SET {name} TO DEFAULT")
    assert lake.sql("SET").rows() == []
    lake.sql(f"SET {name} = DEFAULT")
    assert lake.sql("SELECT 1").rows() == [(1,)]


def test_settings_are_documented() -> None:
    text = (Path(__file__).parents[4] / "docs/sql.md").read_text()
    for name in (*ENGINE_SETTINGS, *OWN_SETTINGS, *REFUSED_FUNCTIONS):
        assert f"`{name}`" in text


def test_default_takes_a_setting_back(lake: Lake) -> None:
    lake.sql("SET TimeZone = 'Asia/Tokyo'")
    lake.sql("SET timezone TO DEFAULT")
    assert lake.sql("SELECT current_setting('TimeZone')").rows() == [("UTC",)]
    lake.sql("SET dynamic-partition-overwrite = false")
    lake.sql("SET dynamic-partition-overwrite TO DEFAULT")
    assert lake.sql("SET").rows() == []


@pytest.mark.parametrize("text", ["RESET memory_limit", "RESET MEMORY_LIMIT", "RESET"])
def test_a_setting_that_lets_no_query_run_can_be_taken_back(lake: Lake, text: str) -> None:
    lake.sql("SET memory_limit = '1B'")
    with pytest.raises(LakeletError):
        lake.sql("SELECT * FROM range(100000) r(i) ORDER BY hash(i)").rows()
    lake.sql(text)
    assert lake.sql("SELECT 1").rows() == [(1,)]
    assert lake.sql("SET").rows() == []


@pytest.mark.parametrize(
    "text", ["RESET threads", "RESET SESSION threads", "RESET GLOBAL threads", "PRAGMA threads = DEFAULT"]
)
def test_a_setting_is_restored(lake: Lake, text: str) -> None:
    lake.sql("SET threads = 1")
    lake.sql(text)
    assert lake.sql("SET").rows() == []


def test_variables_are_parameters_here(lake: Lake) -> None:
    with pytest.raises(InvalidError, match=r"SET VARIABLE: values are parameters here, \$name"):
        lake.sql("SET VARIABLE animal = 'duck'")
