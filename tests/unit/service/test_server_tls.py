"""TLS of the servers: files that make none are told before anything listens, and others are read again."""

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.errors import InvalidError, NotFoundError
from lakelet.service.server_tls import ServerTls
from lakelet.service.settings import ServiceSettings
from tests.services.certificates import Authority, Certificate, encrypted


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Certificate:
    return authority.issue("server")


def shown_certificate(tls: ServerTls, trusted: Path, client: Certificate | None = None) -> bytes:
    """What a client is shown, and trusts, in a handshake without sockets."""
    context = ssl.create_default_context(cafile=str(trusted))
    if client is not None:
        context.load_cert_chain(client.path, client.key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = context.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    far = tls.context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (near, far):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    found = near.getpeercert(binary_form=True)
    assert found is not None
    far.write(b"x")
    assert near.read(1) == b"x"
    return found


def test_settings_without_files_ask_for_none() -> None:
    assert ServerTls.of_settings(ServiceSettings()) is None


@pytest.mark.parametrize(
    "given", [("tls_certificate",), ("tls_key",), ("tls_client_ca",), ("tls_key", "tls_client_ca")]
)
def test_half_of_the_settings_is_refused(given: tuple[str, ...]) -> None:
    with pytest.raises(InvalidError, match=f"expected tls_certificate and tls_key, found {given[0]}"):
        ServerTls.of_settings(ServiceSettings(**dict.fromkeys(given, "some.pem")))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (
            lambda one, _: (one.path.with_name("none"), one.key, None),
            NotFoundError,
            "tls_certificate: there is no file",
        ),
        (lambda one, _: (one.path, one.key.with_name("none"), None), NotFoundError, "tls_key: there is no file"),
        (lambda one, _: (one.path, one.key, one.key.with_name("no")), NotFoundError, "tls_client_ca: there is no file"),
        (lambda one, _: (one.path.parent, one.key, None), InvalidError, "tls_certificate: .* cannot be read"),
        (lambda one, other: (one.path, other.key, None), InvalidError, "is not that of the certificate"),
        (lambda one, _: (one.key, one.key, None), InvalidError, "expected PEM"),
        (lambda one, _: (one.path, one.path, None), InvalidError, "expected PEM"),
        (lambda one, _: (one.path, encrypted(one.key), None), InvalidError, "is encrypted"),
        (lambda one, _: (one.path, one.key, one.key), InvalidError, "tls_client_ca: expected certificates in PEM form"),
    ],
    ids=["certificate", "key", "ca", "folder", "mismatch", "no-certificate", "no-key", "encrypted", "no-ca"],
)
def test_files_that_make_no_tls_are_told(
    authority: Authority,
    server: Certificate,
    change: Callable[[Certificate, Certificate], tuple[Path, Path, Path | None]],
    kind: type[Exception],
    words: str,
) -> None:
    certificate, key, client_ca = change(server, authority.issue("another"))
    with pytest.raises(kind, match=words):
        ServerTls(str(certificate), str(key), None if client_ca is None else str(client_ca))


def test_a_reload_shows_the_new_certificate_and_keeps_the_old_one_where_the_new_is_wrong(
    tmp_path: Path, authority: Authority, server: Certificate
) -> None:
    live = Certificate(tmp_path / "live.pem", tmp_path / "live.key")

    def install(certificate: Certificate, key: Path) -> None:
        live.path.write_bytes(certificate.path.read_bytes())
        live.key.write_bytes(key.read_bytes())

    install(server, server.key)
    tls = ServerTls(str(live.path), str(live.key))
    first = shown_certificate(tls, authority.path)
    renewed = authority.issue("renewed")
    install(renewed, renewed.key)
    tls.reload()
    second = shown_certificate(tls, authority.path)
    assert first != second
    assert tls.files.certificate == renewed.path.read_bytes()
    install(server, renewed.key)
    with pytest.raises(InvalidError, match="is not that of"):
        tls.reload()
    assert shown_certificate(tls, authority.path) == second
    assert tls.files.certificate == renewed.path.read_bytes()


def test_a_client_without_a_certificate_of_the_ca_is_refused(
    tmp_path: Path, authority: Authority, server: Certificate
) -> None:
    tls = ServerTls(str(server.path), str(server.key), str(authority.path))
    assert shown_certificate(tls, authority.path, authority.issue("client"))
    stranger = Authority(tmp_path, "stranger").issue("client")
    for client in (None, stranger):
        with pytest.raises(ssl.SSLError):
            shown_certificate(tls, authority.path, client)
