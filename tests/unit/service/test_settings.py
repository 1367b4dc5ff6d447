"""Settings of a process: flags, environment, file and defaults, each checked."""

import tomllib
from pathlib import Path

import pytest

from lakelet.errors import InvalidError, NotFoundError
from lakelet.service.settings import ServiceSettings, load_settings, printed_settings


def test_flags_come_before_the_environment_which_comes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('host = "127.0.0.2"\nport = 1\ngrpc_port = 1\nrequire_keys = true\n')
    found = load_settings({"port": 3, "host": None}, {"LAKELET_PORT": "2", "LAKELET_GRPC_PORT": "2"}, str(file))
    assert (found.host, found.port, found.grpc_port, found.require_keys) == ("127.0.0.2", 3, 2, True)
    named = load_settings({}, {"LAKELET_CONFIG": str(file), "LAKELET_REQUIRE_KEYS": "off"})
    assert (named.port, named.require_keys) == (1, False)
    assert load_settings({}, {}) == ServiceSettings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prt = 1", "unknown setting 'prt'; did you mean port"),
        ("port = '1'", "port: expected a whole number"),
        ("port = 65536", "expected 0 to 65535"),
        ("port = true", "port: expected a whole number"),
        ("log_level = 'loud'", "expected debug or info"),
        ("host = ''", "empty"),
        ("port =", "Invalid value"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "service.toml"
    file.write_text(text)
    with pytest.raises(InvalidError, match=words):
        load_settings({}, {}, str(file))


def test_a_wrong_environment_is_told() -> None:
    with pytest.raises(InvalidError, match="LAKELET_PORT: expected a whole number"):
        load_settings({}, {"LAKELET_PORT": "many"})
    with pytest.raises(InvalidError, match="LAKELET_REQUIRE_KEYS: expected true or false"):
        load_settings({}, {"LAKELET_REQUIRE_KEYS": "perhaps"})
    with pytest.raises(NotFoundError):
        load_settings({}, {}, "/nowhere/service.toml")


def test_printed_settings_are_a_file_that_gives_them_again(tmp_path: Path) -> None:
    settings = load_settings({"host": "::1", "wal_folder": 'with "quotes" \\ and 名', "require_keys": False}, {})
    text = printed_settings(settings)
    tomllib.loads(text)
    file = tmp_path / "service.toml"
    file.write_text(text)
    assert load_settings({}, {}, str(file)) == settings


def test_logs_are_copied_in_a_cluster_alone() -> None:
    for wrong, words in (({"wal_replicas": 1}, "expected the setting redis"), ({"wal_replicas": 2}, "expected 0 to 1")):
        with pytest.raises(InvalidError, match=f"wal_replicas: {words}"):
            load_settings(wrong, {})
    found = load_settings({}, {"LAKELET_WAL_REPLICAS": "1", "LAKELET_REDIS": "redis://127.0.0.1"})
    assert found.wal_replicas == 1
