"""Which settings the server of a REST catalog may send, and which are ignored."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import CommitUnknownError, InvalidError, UnavailableError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.catalog.table_creation import drop_table
from lakelet.iceberg.trust import rest_catalog
from tests.unit.iceberg.trust.rest_server import Answers, rest_server

CLASSES = ("py-io-impl", "py-catalog-impl", "s3.retry-strategy-impl", "auth.impl", "write.py-location-provider.impl")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Answers]:
    lake = lakelet.connect(str(tmp_path / "lake"))
    lake.sql("CREATE DATABASE iceberg.db")
    lake.sql("CREATE TABLE iceberg.db.t AS SELECT 1 AS a")
    table = lake.catalogs.open("iceberg").table("db.t").library
    metadata = json.loads(table.metadata.model_dump_json())
    with rest_server(Answers(metadata=metadata, metadata_location=table.metadata_location)) as answers:
        yield answers


def catalog(server: Answers, **more: str) -> IcebergCatalog:
    return IcebergCatalog("ice", {"type": "rest", "uri": server.uri, **more})


def lake_with(server: Answers, folder: Path, **more: str) -> lakelet.Lake:
    given = {"type": "rest", "uri": server.uri, **more}
    return lakelet.connect(str(folder), {f"catalog.ice.{key}": text for key, text in given.items()})


@pytest.mark.parametrize("place", ["defaults", "overrides", "config", "credentials", "metadata"])
@pytest.mark.parametrize("key", CLASSES)
def test_no_class_of_the_server_is_run(server: Answers, tmp_path: Path, place: str, key: str) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "hostile_rest_class.py").write_text(f"open({str(canary)!r}, 'w')\nclass Class: pass\n")
    said = {key: "hostile_rest_class.Class"}
    if place == "metadata":
        server.metadata["properties"] = {**server.metadata["properties"], **said}
    elif place == "credentials":
        server.credentials = [{"prefix": "file:", "config": said}]
    else:
        setattr(server, place, said)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        lake = lake_with(server, tmp_path / "lake")
        assert lake.sql("SELECT a FROM ice.db.t").rows() == [(1,)]
        properties = lake.catalogs.open("ice").table("db.t").library.io.properties
    assert key not in properties
    assert not canary.exists()


def test_what_a_server_says_of_its_own_addresses_is_taken(server: Answers) -> None:
    server.overrides = {"prefix": "a/b", "uri": f"{server.uri}/other"}
    assert catalog(server, token="t").namespaces() == ["db"]
    assert server.asked[-1] == ("/other/v1/a/b/namespaces", "Bearer t")


@pytest.mark.parametrize("key", ["uri", "oauth2-server-uri"])
def test_a_token_goes_to_no_other_server(server: Answers, key: str) -> None:
    with rest_server(Answers()) as other:
        server.overrides = {key: f"{other.uri}/x"}
        with pytest.raises(InvalidError, match=rf"sends its clients to '{other.uri}'.*'catalog\.ice\.{key}'"):
            catalog(server, credential="id:s3cr3t").check()
        assert other.asked == []


def test_secrets_go_to_no_server_that_clients_are_sent_to(server: Answers) -> None:
    with rest_server(Answers()) as other:
        server.elsewhere = other.uri
        secrets = {"token": "s3cr3t", "header.X-Api-Key": "s3cr3t", "header.x-other": "s3cr3t"}
        assert catalog(server, **secrets).namespaces() == ["db"]
        assert server.headers[0]["X-Api-Key"] == "s3cr3t"
        assert other.headers
        assert not [text for headers in other.headers for text in headers.values() if "s3cr3t" in text]


def test_keys_of_the_server_go_before_those_of_the_program(server: Answers) -> None:
    server.config = {
        "s3.access-key-id": "theirs",
        "s3.secret-access-key": "theirs",
        "s3.endpoint": "http://theirs",
        "s3.proxy-uri": "http://theirs",
    }
    own = {"s3.access-key-id": "ours", "s3.secret-access-key": "ours", "s3.session-token": "ours"}
    found = catalog(server, **own).table("db.t").library.io.properties
    assert {key: value for key, value in found.items() if key.startswith("s3.")} == {
        "s3.access-key-id": "theirs",
        "s3.secret-access-key": "theirs",
        "s3.endpoint": "http://theirs",
    }
    given = catalog(server, **own, **{"s3.endpoint": "http://ours"}).table("db.t").library.io.properties
    assert given["s3.endpoint"] == "http://ours"


@pytest.mark.parametrize("place", ["defaults", "overrides", "config"])
def test_keys_of_the_program_go_to_no_endpoint_of_the_server(server: Answers, place: str) -> None:
    setattr(server, place, {"s3.endpoint": "http://theirs"})
    own = {"s3.access-key-id": "ours", "s3.secret-access-key": "ours"}
    with pytest.raises(
        InvalidError, match=r"names the 's3\.endpoint' 'http://theirs', and 's3\.access-key-id' would be"
    ):
        catalog(server, **own).table("db.t")
    given = catalog(server, **own, **{"s3.endpoint": "http://ours"}).table("db.t").library.io.properties
    assert given["s3.endpoint"] == "http://ours"
    assert catalog(server).table("db.t").library.io.properties["s3.endpoint"] == "http://theirs"


def test_properties_of_a_table_say_nothing_of_how_files_are_reached(server: Answers) -> None:
    server.metadata["properties"] = {"s3.endpoint": "http://theirs", "s3.proxy-uri": "http://theirs", "token": "x"}
    found = catalog(server, **{"s3.secret-access-key": "ours"}).table("db.t").library.io.properties
    assert "http://theirs" not in found.values()
    assert "token" not in found


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_catalog, "_TIMEOUT_SECONDS", (0.1, 0.1))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        catalog = IcebergCatalog("ice", {"type": "rest", "uri": f"http://127.0.0.1:{silent.getsockname()[1]}"})
        with pytest.raises(UnavailableError, match="catalog ice: the catalog does not answer"):
            catalog.check()


CHANGES: dict[str, Callable[[IcebergCatalog], object]] = {
    "the table was dropped": lambda catalog: catalog.drop_table("db.t"),
    "the table was dropped ": lambda catalog: drop_table(catalog, "db.t"),
    "the table was renamed to db.u": lambda catalog: catalog.rename_table("db.t", "db.u"),
    "the database was removed": lambda catalog: catalog.drop_namespace("db"),
}


@pytest.mark.parametrize("what", CHANGES)
class TestLostAnswers:
    """Of changes other than commits."""

    def test_a_change_that_was_carried_out(self, server: Answers, what: str) -> None:
        server.lost = "after"
        CHANGES[what](catalog(server))

    def test_a_change_that_was_not(self, server: Answers, what: str) -> None:
        server.lost = "before"
        with pytest.raises(CommitUnknownError, match=rf"did not say whether {what.strip()} .*it was not when"):
            CHANGES[what](catalog(server))

    @pytest.mark.parametrize("lost", ["before", "after"])
    def test_a_server_that_is_gone_then(self, server: Answers, what: str, lost: str) -> None:
        server.lost, server.dies = lost, True
        with pytest.raises(
            CommitUnknownError, match=rf"did not say whether {what.strip()} .*does not answer now either"
        ):
            CHANGES[what](catalog(server))
