"""`lakelet serve` behind TLS, as a process: both servers, certificates of clients, and certificates that are replaced."""

import shutil
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from lakelet.client import Client, RepeatPolicy
from lakelet.errors import UnauthenticatedError, UnavailableError
from lakelet.protos.message_types import OLAP, message_class
from tests.services.certificates import Authority, Certificate
from tests.services.serving import serving

_PATIENCE_SECONDS = 900
_ONCE = RepeatPolicy(attempts=1)


def rpc_status(address: str, authority: Authority, client: Certificate | None) -> grpc.StatusCode | str:
    """The status of a call, or the text of its answer."""
    key, chain = (None, None) if client is None else (client.key.read_bytes(), client.path.read_bytes())
    with grpc.secure_channel(address, grpc.ssl_channel_credentials(authority.path.read_bytes(), key, chain)) as channel:
        call = channel.unary_unary(
            f"/{OLAP}/HealthCheck",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class("olap.v1.HealthCheckResponse").FromString,
        )
        try:
            return str(call(message_class("olap.v1.HealthCheckRequest")(), timeout=_PATIENCE_SECONDS).status)
        except grpc.RpcError as error:
            found: grpc.StatusCode = error.code()
            return found


def test_both_servers_ask_for_a_certificate_of_the_ca_and_follow_new_files(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server, client, renewed = (authority.issue(name) for name in ("server", "client", "renewed"))
    live = Certificate(tmp_path / "live.pem", tmp_path / "live.key")
    shutil.copy(server.path, live.path)
    shutil.copy(server.key, live.key)
    flags = ("--tls-certificate", str(live.path), "--tls-key", str(live.key), "--tls-client-ca", str(authority.path))
    audit = tmp_path / "audit"
    with serving(tmp_path, *flags, "--audit-file", str(audit)) as served:
        assert served.address.startswith("https://")
        files = {"certificate_file": str(client.path), "key_file": str(client.key)}
        with Client(served.address, ca_file=str(authority.path), **files) as known:
            known.create_table("t")
            known.write("t", "a", "2026-01-31T10:00:00Z", {"n": 1})
            assert known.query("SELECT n FROM t").rows() == [{"n": 1}]
        with (
            Client(served.address, ca_file=str(authority.path), repeats=_ONCE) as unknown,
            pytest.raises(UnavailableError),
        ):
            unknown.health()
        (rpc,) = [line.rsplit(" ", 1)[1] for line in served.told if line.startswith("gRPC on")]
        with Client(f"grpcs://{rpc}", ca_file=str(authority.path), **files) as known:
            assert known.query("SELECT n FROM t").rows() == [{"n": 1}]
        with (
            Client(f"grpcs://{rpc}", ca_file=str(authority.path), repeats=_ONCE) as unknown,
            pytest.raises(UnavailableError),
        ):
            unknown.health()
        assert rpc_status(rpc, authority, client) == "ok"
        assert rpc_status(rpc, authority, None) == grpc.StatusCode.UNAVAILABLE
        remote = [sys.executable, "-m", "lakelet", "remote", "health", "--url", served.address]
        remote += ["--ca-file", str(authority.path), "--certificate-file", files["certificate_file"]]
        done = subprocess.run([*remote, "--key-file", files["key_file"]], capture_output=True, text=True, check=False)
        assert (done.returncode, "ok" in done.stdout) == (0, True), done.stderr
        refused = subprocess.run(remote, capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert "expected both or none" in refused.stderr

        shutil.copy(renewed.path, live.path)
        shutil.copy(renewed.key, live.key)
        assert '"action": "create_table"' in audit.read_text()
        audit.rename(tmp_path / "audit.1")
        served.process.send_signal(signal.SIGHUP)
        wanted = ssl.PEM_cert_to_DER_cert(renewed.path.read_text()[renewed.path.read_text().index("-----BEGIN") :])
        while not shown_without_client(served.address, wanted):
            assert served.process.poll() is None
        assert audit.exists()
        assert rpc_status(rpc, authority, client) == "ok"


def shown_without_client(address: str, wanted: bytes) -> bool:
    """Whether the wanted certificate is shown now; the handshake itself is refused, for it has no client's certificate."""
    host, port = address.removeprefix("https://").rsplit(":", 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain) as one:
        return one.getpeercert(binary_form=True) == wanted


def test_an_address_that_others_reach_needs_keys_and_is_warned_of_without_tls(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakelet", "serve", "--warehouse", str(tmp_path / "warehouse"), "--port", "0"]
    refused = subprocess.run(
        [*command, "--host", "0.0.0.0", "--no-keys"],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert refused.returncode == 1
    assert "API keys can be off only on a loopback address" in refused.stderr
    with serving(tmp_path, "--host", "0.0.0.0") as served:
        address = served.address.replace("0.0.0.0", "127.0.0.1")
        with Client(address) as nobody, pytest.raises(UnauthenticatedError):
            nobody.list_tables()
    assert "no TLS: rows and API keys travel over the network as they are" in (tmp_path / "log").read_text()


def test_wrong_files_are_told_before_anything_listens(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.issue("one"), authority.issue("other")
    command = [sys.executable, "-m", "lakelet", "serve", "--warehouse", str(tmp_path / "warehouse"), "--port", "0"]
    done = subprocess.run(
        [*command, "--tls-certificate", str(one.path), "--tls-key", str(other.key)],
        capture_output=True,
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "is not that of the certificate" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
