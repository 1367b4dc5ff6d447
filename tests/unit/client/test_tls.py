"""A service behind TLS is trusted by the given certificates alone."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelet.client import Client, RepeatPolicy
from lakelet.errors import UnavailableError
from tests.unit.client.scripted_server import Answer

_NAMES = "subjectAltName=IP:127.0.0.1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here")
    made = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=lakelet", "-addext", _NAMES]
    subprocess.run([*command, "-keyout", f"{folder}/key.pem", "-out", made], check=True, capture_output=True)
    return made


@pytest.fixture
def address(certificate: Path) -> Iterator[str]:
    """A server that answers one connection at a time, as long as the test runs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(connection, server_side=True) as secured:
                        while secured.recv(1 << 16):
                            secured.sendall(Answer(document={"status": "ok", "details": {}}).encoded())
                except OSError:
                    connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_service_behind_tls(address: str, certificate: Path) -> None:
    with Client(address, ca_file=str(certificate)) as client:
        assert client.health().status == "ok"
        assert client.health().status == "ok"


def test_a_certificate_that_nobody_vouches_for_is_refused(address: str) -> None:
    with (
        Client(address, repeats=RepeatPolicy(attempts=1)) as client,
        pytest.raises(UnavailableError, match="certificate"),
    ):
        client.write("t", "a", "2026-01-31T10:00:00Z", {})


def test_a_certificate_of_another_name_is_refused(address: str, certificate: Path) -> None:
    other = address.replace("127.0.0.1", "localhost")
    once = RepeatPolicy(attempts=1)
    with (
        Client(other, ca_file=str(certificate), repeats=once) as client,
        pytest.raises(UnavailableError, match="certif"),
    ):
        client.health()
