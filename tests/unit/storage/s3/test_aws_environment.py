"""AWS's environment variables and files, as defaults of connection options."""

from pathlib import Path

import pytest

from lakelet.errors import InvalidError
from lakelet.storage.s3.s3_options import S3Options

NAMES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    return tmp_path / ".aws"


def parsed(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], options: dict[str, str] | None = None
) -> S3Options:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return S3Options.parse(options or {})


@pytest.mark.parametrize(
    ("variables", "options", "expected"),
    [
        ({}, {}, None),
        ({"AWS_ENDPOINT_URL": "http://a:1"}, {}, "http://a:1"),
        ({"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_S3": "http://b:2"}, {}, "http://b:2"),
        ({"AWS_ENDPOINT_URL_S3": "http://b:2"}, {"s3.endpoint": "https://c"}, "https://c"),
        ({"AWS_ENDPOINT_URL": "http://a:1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, {}, None),
        ({"AWS_ENDPOINT_URL": ""}, {}, None),
    ],
)
def test_an_endpoint_of_the_environment_is_that_of_both_clients(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], options: dict[str, str], expected: str | None
) -> None:
    found = parsed(monkeypatch, variables, options)
    assert found.endpoint == expected
    assert found.client_config("b").get("endpoint") == expected
    assert found.path_style is (expected is not None)
    assert found.allow_http is (expected is not None and expected.startswith("http://"))


@pytest.mark.parametrize(
    ("variables", "options", "expected"),
    [
        ({"AWS_DEFAULT_REGION": "r1"}, {}, "r1"),
        ({"AWS_DEFAULT_REGION": "r1", "AWS_REGION": "r2"}, {}, "r2"),
        ({"AWS_REGION": "r2"}, {"s3.region": "r3"}, "r3"),
        ({"AWS_PROFILE": "work"}, {"s3.access-key": "k", "s3.secret-key": "s"}, "r4"),
    ],
)
def test_regions(
    monkeypatch: pytest.MonkeyPatch, home: Path, variables: dict[str, str], options: dict[str, str], expected: str
) -> None:
    (home / "config").write_text("[profile work]\nregion = r4\n")
    assert parsed(monkeypatch, variables, options).region == expected


@pytest.mark.parametrize("name", ["default", "work"])
def test_a_profile_gives_keys(monkeypatch: pytest.MonkeyPatch, home: Path, name: str) -> None:
    keys = f"[{name}]\naws_access_key_id = K\naws_secret_access_key = S%1\naws_session_token = T\n"
    (home / "credentials").write_text(keys)
    found = parsed(monkeypatch, {} if name == "default" else {"AWS_PROFILE": name})
    assert (found.access_key, found.secret_key, found.session_token) == ("K", "S%1", "T")
    assert "S%1" not in repr(found)


def test_keys_of_the_environment_are_left_to_the_clients(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "credentials").write_text("[default]\naws_access_key_id = K\naws_secret_access_key = S\n")
    found = parsed(monkeypatch, {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "E"})
    assert (found.access_key, found.secret_key) == (None, None)


def test_given_keys_win(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "credentials").write_text(
        "[default]\naws_access_key_id = K\naws_secret_access_key = S\naws_session_token = T\n"
    )
    found = parsed(monkeypatch, {}, {"s3.access-key": "k", "s3.secret-key": "s"})
    assert (found.access_key, found.secret_key, found.session_token) == ("k", "s", None)


def test_a_profile_without_keys_is_told(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "config").write_text("[profile sso]\nsso_session = x\n")
    with pytest.raises(InvalidError, match=r"AWS_PROFILE is 'sso'.*export-credentials"):
        parsed(monkeypatch, {"AWS_PROFILE": "sso"})
    assert parsed(monkeypatch, {}, {"s3.access-key": "k", "s3.secret-key": "s"}).access_key == "k"


def test_a_file_that_is_none_of_profiles_is_told(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "credentials").write_text("no section\n")
    with pytest.raises(InvalidError, match="credentials cannot be read"):
        parsed(monkeypatch, {})
