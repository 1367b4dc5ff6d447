"""Which properties of catalogs files and statements may set, and where secrets may be sent."""

import json
import os
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import CorruptionError, InvalidError, LakeletError
from lakelet.iceberg.catalog.catalogs import Catalogs
from lakelet.iceberg.trust import properties as trusted
from lakelet.storage.memory import MemoryStore

REST = {"type": "rest", "uri": "http://127.0.0.1:1"}
# Every property by which pyiceberg imports, signs, proves or reads something of this machine.
FOR_THE_PROGRAM_ALONE = {
    "py-catalog-impl": "subprocess.Popen",
    "py-io-impl": "subprocess.Popen",
    "auth.type": "subprocess.Popen",
    "auth.impl": "subprocess.Popen",
    "auth": "x",
    "s3.retry-strategy-impl": "subprocess.Popen",
    "write.py-location-provider.impl": "subprocess.Popen",
    "rest.sigv4-enabled": "true",
    "ssl.cabundle": "/etc/passwd",
    "ssl.client.key": "/etc/passwd",
    "s3.profile-name": "prod",
    "s3.role-arn": "arn:x",
    "s3.proxy-uri": "http://127.0.0.1:1",
    "s3.signer.uri": "http://127.0.0.1:1",
    "glue.endpoint": "http://127.0.0.1:1",
    "gcs.service.host": "http://127.0.0.1:1",
    "hive.kerberos-authentication": "true",
    "header.Host": "x",
    "hdfs.kerberos_ticket": "/etc/passwd",
    "gcp.bigquery.credential-file": "/etc/passwd",
    "no-such-property": "x",
}


@pytest.mark.parametrize("key", FOR_THE_PROGRAM_ALONE)
class TestWhatOnlyTheProgramSays:
    def test_is_refused_in_a_file(self, key: str) -> None:
        store = MemoryStore()
        store.put("catalogs/ice.json", json.dumps({**REST, key: FOR_THE_PROGRAM_ALONE[key]}).encode())
        with pytest.raises(
            InvalidError, match=rf"catalogs/ice\.json: property '{key}' is taken from connect\(\) alone"
        ):
            Catalogs(store, {}).open("ice")

    def test_is_refused_in_a_statement(self, key: str, tmp_path: Path) -> None:
        lake = lakelet.connect(str(tmp_path))
        with pytest.raises(InvalidError, match="connect"):
            lake.sql(f"CREATE CATALOG ice WITH ('type' = 'rest', 'uri' = 'http://127.0.0.1:1', '{key}' = 'x')")
        assert not (tmp_path / "catalogs").exists()

    def test_is_taken_from_connect(self, key: str) -> None:
        given = {**REST, key: FOR_THE_PROGRAM_ALONE[key]}
        catalogs = Catalogs(MemoryStore(), {f"catalog.ice.{name}": text for name, text in given.items()})
        assert catalogs.open("ice").properties == given


SECRETS = [
    "token",
    "credential",
    "auth.type",
    "header.X-Api-Key",
    "s3.secret-access-key",
    "ssl.client.key",
    "adls.sas-token",
]
KEPT = {
    **REST,
    "oauth2-server-uri": "http://127.0.0.1:2",
    "s3.endpoint": "http://127.0.0.1:3",
    "adls.account-name": "a",
}


class TestSecrets:
    @pytest.mark.parametrize("secret", SECRETS)
    @pytest.mark.parametrize("address", ["uri", "oauth2-server-uri", "s3.endpoint", "adls.account-name"])
    def test_go_to_no_address_of_a_file(self, secret: str, address: str) -> None:
        store = MemoryStore()
        store.put("catalogs/ice.json", json.dumps(KEPT).encode())
        given = {**KEPT, secret: "s3cr3t"}
        catalogs = Catalogs(store, {f"catalog.ice.{key}": text for key, text in given.items() if key != address})
        with pytest.raises(InvalidError, match=rf"give 'catalog\.ice\.{address}' to connect\(\)") as raised:
            catalogs.open("ice")
        assert "s3cr3t" not in str(raised.value)
        catalogs = Catalogs(store, {f"catalog.ice.{key}": text for key, text in given.items()})
        assert catalogs.open("ice").properties == given

    @pytest.mark.parametrize("secret", SECRETS)
    def test_go_to_no_address_of_a_statement(self, secret: str, tmp_path: Path) -> None:
        lake = lakelet.connect(str(tmp_path), {f"catalog.ice.{secret}": "s3cr3t"})
        with pytest.raises(InvalidError, match=r"give 'catalog\.ice\.uri' to connect\(\)"):
            lake.sql("CREATE CATALOG ice WITH ('type' = 'rest', 'uri' = 'http://127.0.0.1:1')")

    def test_of_the_configuration_of_pyiceberg(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            trusted._ENV_CONFIG, "config", {"catalog": {"ice": {"token": "t", "auth": {"type": "basic"}}}}
        )
        store = MemoryStore()
        store.put("catalogs/ice.json", json.dumps(REST).encode())
        with pytest.raises(InvalidError, match="'token' is given"):
            Catalogs(store, {}).open("ice")
        catalogs = Catalogs(store, {"catalog.ice.uri": "http://127.0.0.1:9"})
        assert catalogs.open("ice").properties == {
            **REST,
            "uri": "http://127.0.0.1:9",
            "token": "t",
            "auth.type": "basic",
        }

    def test_of_the_environment_of_a_database(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = MemoryStore()
        store.put("catalogs/ice.json", json.dumps({"type": "sql", "uri": "postgresql://127.0.0.1:1/x"}).encode())
        monkeypatch.setenv("PGPASSWORD", "s3cr3t")
        with pytest.raises(InvalidError, match="'PGPASSWORD' is given"):
            Catalogs(store, {}).open("ice")


class TestOwnCatalog:
    @pytest.mark.parametrize("name", ["iceberg", "ICEBERG", "Iceberg"])
    def test_is_replaced_by_no_file(self, name: str, tmp_path: Path) -> None:
        lake = lakelet.connect(str(tmp_path))
        lake.sql("CREATE DATABASE iceberg.db")
        other = {"type": "in-memory", "warehouse": f"file://{tmp_path}/other"}
        (tmp_path / "catalogs").mkdir()
        (tmp_path / "catalogs" / f"{name}.json").write_text(json.dumps(other))
        again = lakelet.connect(str(tmp_path))
        assert again.catalogs.names() == ["iceberg"]
        assert again.sql("SHOW DATABASES IN iceberg").rows() == [("db",)]
        assert again.sql("SHOW DATABASES IN ICEBERG").rows() == [("db",)]

    def test_nor_by_the_configuration_of_another(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trusted._ENV_CONFIG, "config", {"catalog": {"iceberg": {"py-io-impl": "subprocess.Popen"}}})
        lake = lakelet.connect(str(tmp_path))
        lake.sql("CREATE DATABASE iceberg.db")
        lake.sql("CREATE TABLE iceberg.db.t AS SELECT 1 AS a")
        assert lake.sql("SELECT a FROM iceberg.db.t").rows() == [(1,)]

    def test_a_configuration_that_lies_in_the_lake(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trusted._ENV_CONFIG, "config", {"catalog": {"ice": {"py-io-impl": "subprocess.Popen"}}})
        monkeypatch.setattr(Path, "home", lambda: tmp_path / "nobody")
        monkeypatch.delenv("PYICEBERG_HOME", raising=False)
        lake = tmp_path / "lake"
        (lake / "sub").mkdir(parents=True)
        assert trusted.configured("ice", str(lake)) == {"py-io-impl": "subprocess.Popen"}
        (lake / "sub" / ".pyiceberg.yaml").write_text("")
        monkeypatch.chdir(lake / "sub")
        assert trusted.configured("ice", str(lake)) == {}


class TestFiles:
    @pytest.mark.parametrize(
        ("found", "reason"),
        [
            (b"{", "is no JSON"),
            (b"[]", "expected an object"),
            (b"null", "expected an object"),
            (b"\xff", "is no JSON"),
            (b"[" * 5000, "is no JSON"),
            (b'{"type": "rest", "uri": null}', "'uri': expected a text, found NoneType"),
            (b'{"type": "rest", "uri": {"x": 1}}', "'uri': expected a text, found dict"),
            (b'{"type": ["rest"]}', "'type': expected a text, found list"),
            (b'{"type": "rest", "uri": "' + b"x" * 100_000 + b'"}', "has 100027 bytes"),
        ],
    )
    def test_that_are_none(self, found: bytes, reason: str) -> None:
        store = MemoryStore()
        store.put("catalogs/ice.json", found)
        with pytest.raises(CorruptionError, match=rf"catalogs/ice\.json.*{reason}"):
            Catalogs(store, {}).open("ice")

    def test_names_that_are_none(self, tmp_path: Path) -> None:
        (tmp_path / "catalogs" / "sub").mkdir(parents=True)
        for name in ("a.b.json", " .json", "x y/../z.json".replace("/", "_"), "sub/.json"):
            (tmp_path / "catalogs" / name).write_text("{}")
        names = lakelet.connect(str(tmp_path)).catalogs.names()
        assert "a.b" not in names
        assert "" not in names

    @pytest.mark.parametrize("target", ["/dev/zero", "secret.txt", "missing", "."])
    def test_links_tell_nothing_of_what_they_point_at(self, tmp_path: Path, target: str) -> None:
        (tmp_path / "secret.txt").write_text("s3cr3t of the user")
        lake = tmp_path / "lake"
        (lake / "catalogs").mkdir(parents=True)
        os.symlink(target if target.startswith("/") else tmp_path / target, lake / "catalogs" / "ice.json")
        with pytest.raises(LakeletError) as raised:
            lakelet.connect(str(lake)).sql("SHOW DATABASES IN ice")
        assert "s3cr3t" not in str(raised.value)
