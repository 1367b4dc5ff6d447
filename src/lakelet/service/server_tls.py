"""TLS of both servers: the files of a certificate, its key and a CA of clients, checked before anything listens.

    settings ── ServerTls ── context             REST: an ssl.SSLContext, whose certificate is replaced in place
                          └─ grpc_credentials    gRPC: asks for the files' bytes at each handshake

`reload` (SIGHUP) reads the files again. New connections get the new certificate, those that are open keep theirs; where the new
files are wrong, the old ones hold. REST goes on trusting a CA that was removed from the file until the process is started again:
a context takes further certificates, and gives none up.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

from lakelet.errors import InvalidError, NotFoundError
from lakelet.service.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The bytes of the files in PEM form; without `client_ca` clients need no certificate."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None


class ServerTls:
    """The certificate that both servers show, and the CA by which they know clients."""

    def __init__(self, certificate: str, key: str, client_ca: str | None = None) -> None:
        self._paths = (certificate, key, client_ca)
        self.files = self._read()
        self.context = self._checked_context()

    @classmethod
    def of_settings(cls, settings: ServiceSettings) -> ServerTls | None:
        """The TLS that settings ask for, None for none; InvalidError or NotFoundError where the files do not make one."""
        given = {
            "tls_certificate": settings.tls_certificate,
            "tls_key": settings.tls_key,
            "tls_client_ca": settings.tls_client_ca,
        }
        if settings.tls_certificate is None or settings.tls_key is None:
            found = [name for name, path in given.items() if path is not None]
            if found:
                raise InvalidError(f"TLS: expected tls_certificate and tls_key, found {' and '.join(found)} alone")
            return None
        return cls(settings.tls_certificate, settings.tls_key, settings.tls_client_ca)

    def reload(self) -> None:
        """Read the files again; they are checked before any of them is used."""
        files = self._read()
        self._checked_context()
        self._load(self.context)
        self.files = files

    def grpc_credentials(self) -> Any:
        """Credentials of a gRPC server, which follow a `reload`."""
        import grpc  # noqa: PLC0415 - REST may be served alone, and the settings be checked without it.

        def configuration() -> Any:
            files = self.files
            return grpc.ssl_server_certificate_configuration([(files.key, files.certificate)], files.client_ca)

        return grpc.dynamic_ssl_server_credentials(
            configuration(), configuration, require_client_authentication=self.files.client_ca is not None
        )

    def _read(self) -> TlsFiles:
        certificate, key, client_ca = self._paths
        return TlsFiles(
            _bytes_of("tls_certificate", certificate),
            _bytes_of("tls_key", key),
            None if client_ca is None else _bytes_of("tls_client_ca", client_ca),
        )

    def _checked_context(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._load(made)
        return made

    def _load(self, context: ssl.SSLContext) -> None:
        certificate, key, client_ca = self._paths
        try:
            # An empty password instead of a question on the terminal, which nobody may see.
            context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            raise InvalidError(f"TLS: {_meaning(error, certificate, key)}") from None
        if client_ca is None:
            return
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError as error:
            raise InvalidError(f"tls_client_ca: expected certificates in PEM form in {client_ca}: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED


def _bytes_of(name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise NotFoundError(f"{name}: there is no file {path}") from None
    except OSError as error:
        raise InvalidError(f"{name}: {path} cannot be read: {error.strerror}") from None


def _meaning(error: ssl.SSLError, certificate: str, key: str) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"the key {key} is not that of the certificate {certificate}"
    if b"ENCRYPTED" in _bytes_of("tls_key", key):
        return f"the key {key} is encrypted; expected one without a password"
    return f"expected PEM in {certificate} (certificates, the server's first) and {key} (its key): {error}"
