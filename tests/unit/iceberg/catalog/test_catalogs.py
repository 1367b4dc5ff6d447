"""The catalogs of a lake: given, kept and its own."""

import json
import sys
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import (
    AlreadyExistsError,
    CorruptionError,
    InvalidError,
    LakeletError,
    NotFoundError,
    UnavailableError,
)
from lakelet.iceberg.catalog.catalogs import Catalogs
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog, _nested
from lakelet.storage.memory import MemoryStore


def sql_catalog(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}"}


class TestOwn:
    def test_is_there_without_any_set_up(self, tmp_path: Path) -> None:
        catalogs = lakelet.connect(str(tmp_path)).catalogs
        assert catalogs.names() == ["iceberg"]
        catalogs.open("iceberg").create_namespace("db")
        assert lakelet.connect(str(tmp_path)).catalogs.open("iceberg").namespaces() == ["db"]
        # It is no database of the lake.
        assert lakelet.connect(str(tmp_path)).databases() == []

    def test_needs_a_folder(self) -> None:
        catalogs = Catalogs(MemoryStore(), {})
        assert catalogs.names() == []
        with pytest.raises(NotFoundError, match=r"catalog 'iceberg' is not known to .*; there are none"):
            catalogs.open("iceberg")

    def test_can_be_another_one(self, tmp_path: Path) -> None:
        given = {f"catalog.iceberg.{key}": text for key, text in sql_catalog(tmp_path).items()}
        catalog = lakelet.connect(str(tmp_path), given).catalogs.open("iceberg")
        assert catalog.properties == sql_catalog(tmp_path)

    def test_is_not_dropped(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidError, match="cannot be dropped: it is the lake's own"):
            lakelet.connect(str(tmp_path)).catalogs.drop("iceberg")

    @pytest.mark.parametrize("name", ["a#b", "a%20b", "a%b", "a?b", "a b", "äß漢", "a'b;c&d=e"])
    def test_a_folder_of_any_name(self, tmp_path: Path, name: str) -> None:
        lake = lakelet.connect(str(tmp_path / name))
        lake.sql("CREATE DATABASE iceberg.db")
        lake.sql("CREATE TABLE iceberg.db.t PARTITIONED BY (p) AS SELECT 1 AS id, 'x#y?%20' AS p")
        lake.sql("UPDATE iceberg.db.t SET id = 2")
        assert lakelet.connect(str(tmp_path / name)).sql("SELECT * FROM iceberg.db.t").rows() == [(2, "x#y?%20")]
        library = lake.catalogs.open("iceberg").library
        assert library.load_table("db.t").scan().to_arrow().to_pylist() == [{"id": 2, "p": "x#y?%20"}]
        assert lake.sql("CALL sys.iceberg_remove_orphan_files('iceberg.db.t')").rows() == []
        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert (tmp_path / name / "iceberg" / "catalog.db").is_file()
        lake.sql("DROP TABLE iceberg.db.t")
        assert not list(tmp_path.rglob("*.parquet"))


class TestProperties:
    """Of REST catalogs; no server is there to answer."""

    NOBODY = "http://127.0.0.1:1"

    def refused(self, **more: str) -> LakeletError:
        catalog = IcebergCatalog("ice", {"type": "rest", "uri": self.NOBODY, **more})
        with pytest.raises(LakeletError) as raised:
            catalog.check()
        assert "s3cr3t" not in str(raised.value)
        return raised.value

    @pytest.mark.parametrize("uri", ["user:s3cr3t@127.0.0.1", "ftp://user:s3cr3t@127.0.0.1", "file:///s3cr3t"])
    def test_an_address_that_is_none(self, uri: str) -> None:
        error = self.refused(uri=uri)
        assert isinstance(error, InvalidError)
        assert "begins with http:// or https://" in str(error)

    @pytest.mark.parametrize("key", ["token", "header.Authorization"])
    @pytest.mark.parametrize("value", ["s3cr3t\n", "s3cr3t\r\nx", " s3cr3t", "s3cr3t ☃"])
    def test_a_secret_that_no_header_takes(self, key: str, value: str) -> None:
        error = self.refused(**{key: value})
        assert isinstance(error, InvalidError)
        assert repr(key) in str(error)

    @pytest.mark.parametrize("uri", ["http://user:s3cr3t@127.0.0.1:1", "http://127.0.0.1:1/?token=s3cr3t"])
    def test_a_secret_in_an_address(self, uri: str) -> None:
        assert isinstance(self.refused(uri=uri), UnavailableError)

    def test_members(self) -> None:
        properties = {
            "auth.type": "basic",
            "auth.basic.username": "u",
            "auth.basic.password": "s3cr3t",
            "ssl.cabundle": "x",
        }
        assert _nested({**properties, "uri": "y", "s3.region": "z"}) == {
            "auth": {"type": "basic", "basic": {"username": "u", "password": "s3cr3t"}},
            "ssl": {"cabundle": "x"},
            "uri": "y",
            "s3.region": "z",
        }
        assert "'auth.type'" in str(self.refused(auth="s3cr3t"))
        assert isinstance(self.refused(**{"auth.basic": "s3cr3t", "auth.basic.username": "u"}), InvalidError)


class TestGiven:
    def test_by_options_of_the_connection(self, tmp_path: Path) -> None:
        given = {f"catalog.ice.{key}": text for key, text in sql_catalog(tmp_path).items()}
        catalogs = Catalogs(MemoryStore(), given)
        assert catalogs.names() == ["ice"]
        assert catalogs.open("ice").properties == sql_catalog(tmp_path)
        assert catalogs.open("ice") is catalogs.open("ice")
        with pytest.raises(InvalidError, match="cannot be dropped: it was given to connect"):
            catalogs.drop("ice")

    def test_goes_before_what_is_kept(self, tmp_path: Path) -> None:
        store = MemoryStore()
        Catalogs(store, {}).create("ice", sql_catalog(tmp_path))
        catalogs = Catalogs(store, {"catalog.ice.warehouse": "file:///other"})
        assert catalogs.names() == ["ice"]
        assert catalogs.open("ice").properties == sql_catalog(tmp_path) | {"warehouse": "file:///other"}

    def test_shows_no_secret(self, tmp_path: Path) -> None:
        given = {f"catalog.ice.{key}": text for key, text in {**sql_catalog(tmp_path), "token": "t"}.items()}
        assert "token" not in repr(Catalogs(MemoryStore(), given).open("ice"))


class TestKept:
    def test_as_json_in_the_lake(self, tmp_path: Path) -> None:
        store = MemoryStore()
        catalogs = Catalogs(store, {})
        catalogs.create("ice", sql_catalog(tmp_path))
        assert json.loads(store.get("catalogs/ice.json")) == sql_catalog(tmp_path)
        assert Catalogs(store, {}).open("ice").namespaces() == []
        with pytest.raises(AlreadyExistsError, match="catalog 'ICE' exists"):
            catalogs.create("ICE", sql_catalog(tmp_path))
        catalogs.drop("ice")
        assert catalogs.names() == []
        with pytest.raises(NotFoundError, match="catalog 'ice' is not known"):
            catalogs.drop("ice")

    def test_one_that_somebody_else_makes_anew(self, tmp_path: Path) -> None:
        store = MemoryStore()
        here, there = Catalogs(store, {}), Catalogs(store, {})
        here.create("ice", sql_catalog(tmp_path))
        opened = here.open("ice")
        assert "ice" in here.names()
        assert here.open("ice") is opened
        other = sql_catalog(tmp_path) | {"warehouse": f"file://{tmp_path}/elsewhere"}
        there.drop("ice")
        there.create("ice", other)
        assert here.names() == ["ice"]
        assert here.open("ice").properties == other

    @pytest.mark.parametrize(
        ("properties", "reason", "kind"),
        [
            (
                {"type": "sql", "uri": "sqlite:///x", "token": "a"},
                r"'token' would be readable.*catalog\.ice\.token",
                InvalidError,
            ),
            ({"type": "sql", "uri": "postgresql://u:secret@h/d"}, "'uri' would be readable", InvalidError),
            ({"type": "sql", "uri": "postgresql://u:se/cr@t@h/d"}, "'uri' would be readable", InvalidError),
            ({"type": "sql", "uri": "postgresql://u:a?b@h/d"}, "'uri' would be readable", InvalidError),
            ({"type": "sql", "uri": "postgresql://u@h/d?password=x"}, "'uri' would be readable", InvalidError),
            ({"type": "rest", "uri": "http://u:p@127.0.0.1:1/"}, "'uri' would be readable", InvalidError),
            (
                {"type": "rest", "uri": "http://x", "header.Authorization": "Bearer x"},
                "would be readable",
                InvalidError,
            ),
            ({"type": "rest", "uri": "http://x", "adls.account-key": "x"}, "would be readable", InvalidError),
            ({"type": "rest", "uri": "http://x", "adls.connection-string": "x"}, "would be readable", InvalidError),
            ({"type": "rest", "uri": "http://127.0.0.1:1/a@b"}, "does not answer", UnavailableError),
            ({"type": "glu"}, "type 'glu' is unknown; there are bigquery, dynamodb, glue", InvalidError),
            ({"type": "rest"}, "expected the property 'uri'", InvalidError),
            ({"uri": "ftp://x"}, "'uri' of a database begins with one of sqlite, .* found 'ftp'", InvalidError),
            ({"type": "sql", "uri": "mssql+pyodbc://x"}, "'uri' of a database begins with one of sqlite", InvalidError),
            (
                {"type": "sql", "uri": "sqlite:////no/such/folder/c.db"},
                "unable to open database file",
                UnavailableError,
            ),
            ({"type": "rest", "uri": "http://127.0.0.1:1"}, "does not answer: .*Connection refused", UnavailableError),
        ],
    )
    def test_only_what_answers(self, properties: dict[str, str], reason: str, kind: type[LakeletError]) -> None:
        store = MemoryStore()
        with pytest.raises(kind, match=reason):
            Catalogs(store, {}).create("ice", properties)
        assert list(store.list("")) == []

    @pytest.mark.parametrize("found", [b"{", b"[]", b"\xff"])
    def test_files_that_are_none(self, found: bytes) -> None:
        store = MemoryStore()
        store.put("catalogs/ice.json", found)
        with pytest.raises(CorruptionError, match=r"catalogs/ice\.json"):
            Catalogs(store, {}).open("ice")


S3_OPTIONS = {
    "s3.endpoint": "http://host:1",
    "s3.access-key": "a",
    "s3.secret-key": "s",
    "s3.path-style-access": "true",
}


class TestS3:
    def test_as_the_lake_has_it(self) -> None:
        catalogs = Catalogs(MemoryStore(), {**S3_OPTIONS, "catalog.ice.type": "rest", "catalog.ice.uri": "http://x"})
        assert catalogs.open("ice").properties == {
            "type": "rest",
            "uri": "http://x",
            "s3.endpoint": "http://host:1",
            "s3.access-key-id": "a",
            "s3.secret-access-key": "s",
            "s3.region": "us-east-1",
            "s3.force-virtual-addressing": "false",
        }

    def test_nothing_of_it_for_a_catalog_with_its_own(self) -> None:
        given = {"type": "rest", "uri": "http://x", "s3.endpoint": "http://other"}
        catalogs = Catalogs(
            MemoryStore(), {**S3_OPTIONS, **{f"catalog.ice.{key}": text for key, text in given.items()}}
        )
        assert catalogs.open("ice").properties == given


def test_without_pyiceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lakelet.connect(str(tmp_path))
    monkeypatch.setitem(sys.modules, "lakelet.iceberg.catalog.catalogs", None)
    with pytest.raises(InvalidError, match=r"pip install lakelet\[iceberg\]"):
        _ = lake.catalogs
    with pytest.raises(InvalidError, match=r"pip install lakelet\[iceberg\]"):
        lake.sql("CREATE TABLE iceberg.db.t (a INT)")


def test_metadata_that_is_not_there(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.sql("CREATE DATABASE iceberg.db")
    lake.sql("CREATE TABLE iceberg.db.t (a INT)")
    (metadata,) = (tmp_path / "iceberg" / "db" / "t" / "metadata").glob("*.json")
    metadata.write_text("{}")
    catalog = lake.catalogs.open("iceberg")
    with pytest.raises(CorruptionError, match=r"table iceberg\.db\.t: its metadata cannot be understood"):
        catalog.table("db.t")
    metadata.unlink()
    assert catalog.table_exists("db.t")
    with pytest.raises(NotFoundError, match=r"table iceberg\.db\.t"):
        catalog.table("db.t")
    # What is left of it can be dropped.
    assert "its files stay" in str(lake.sql("DROP TABLE iceberg.db.t").message)
    assert not catalog.table_exists("db.t")
