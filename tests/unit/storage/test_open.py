from pathlib import Path

import pytest

from lakelet.errors import InvalidError
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.open import open_store
from lakelet.storage.s3.s3_options import S3Options
from lakelet.storage.s3.s3_store import S3Store


def test_plain_paths_and_file_urls_open_local_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = str(tmp_path / "w h")
    for url in (expected, "w h", "./w h", f"file://{tmp_path}/w%20h", f"file:{tmp_path}/w h"):
        store = open_store(url, {})
        assert isinstance(store, LocalStore)
        assert store.location == expected


def test_a_path_may_begin_at_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert open_store("~/w", {}).location == str(tmp_path / "w")
    assert open_store("./~/w", {}).location == str(tmp_path / "~" / "w")


def test_memory_urls_open_the_store_of_that_name() -> None:
    store = open_store("memory://opened-by-url", {})
    assert store is MemoryStore.named("opened-by-url")
    assert store.location == "memory://opened-by-url"


@pytest.mark.parametrize("url", ["", "gs://bucket", "memory://", "file://host/path", "s3://", "s3:///prefix"])
def test_other_locations_are_refused(url: str) -> None:
    with pytest.raises(InvalidError):
        open_store(url, {})


def test_s3_locations_keep_bucket_and_prefix() -> None:
    assert S3Store("b", "p/q", S3Options()).location == "s3://b/p/q"
    assert S3Store("b", "", S3Options()).location == "s3://b"
    with pytest.raises(InvalidError):
        S3Store("b", "p/../q", S3Options())


def test_s3_options_default_by_the_endpoint() -> None:
    assert S3Options.parse({}) == S3Options(path_style=False, allow_http=False)
    minio = S3Options.parse({"s3.endpoint": "http://127.0.0.1:9000/", "other.option": "x"})
    assert (minio.endpoint, minio.path_style, minio.allow_http) == ("http://127.0.0.1:9000", True, True)
    bare = S3Options.parse({"s3.endpoint": "minio.example:9000"})
    assert (bare.endpoint, bare.allow_http) == ("https://minio.example:9000", False)
    assert S3Options.parse({"s3.endpoint": "h:1", "s3.allow-http": "true"}).endpoint == "http://h:1"


def test_s3_virtual_hosted_requests_carry_the_bucket_in_the_host() -> None:
    options = S3Options.parse({"s3.endpoint": "https://s3.example", "s3.path-style-access": "false"})
    assert options.client_config("b")["endpoint"] == "https://b.s3.example"
    assert S3Options.parse({"s3.endpoint": "https://s3.example"}).client_config("b")["endpoint"] == "https://s3.example"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"s3.endpont": "x"}, r"did you mean 's3\.endpoint'"),
        ({"s3.path-style-access": "yes"}, "expected true or false"),
        ({"s3.access-key": "k"}, "together"),
        ({"s3.endpoint": "ftp://h"}, "expected http"),
        ({"s3.endpoint": "http://h/path"}, "expected http"),
        ({"s3.endpoint": "http://h", "s3.allow-http": "false"}, "not encrypted"),
    ],
)
def test_wrong_s3_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        S3Options.parse(options)


def test_secrets_do_not_show_in_text() -> None:
    options = S3Options.parse({"s3.access-key": "k", "s3.secret-key": "hush", "s3.session-token": "quiet"})
    assert "hush" not in repr(options)
    assert "quiet" not in repr(options)
