"""Certificates for tests, made by openssl: a CA, and certificates of it for servers and clients."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
_NAMES = "subjectAltName=IP:127.0.0.1,DNS:localhost\n"


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, both PEM files."""

    path: Path
    key: Path


class Authority:
    """A CA in a folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        if shutil.which("openssl") is None:
            pytest.skip("openssl is not here")
        self._folder = folder
        self.path, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        subject = ("-subj", f"/CN={name}", "-days", "2")
        _openssl("req", "-x509", *_NEW_KEY, *subject, "-keyout", self._key, "-out", self.path)

    def issue(self, name: str) -> Certificate:
        """A certificate for 127.0.0.1 and localhost."""
        path, key, request, names = (self._folder / f"{name}.{end}" for end in ("pem", "key", "csr", "names"))
        names.write_text(_NAMES)
        _openssl("req", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        signed = ("-CA", self.path, "-CAkey", self._key, "-CAcreateserial", "-days", "2", "-extfile", names)
        _openssl("x509", "-req", "-in", request, *signed, "-out", path)
        return Certificate(path, key)


def encrypted(key: Path) -> Path:
    """The same key behind a password."""
    made = key.with_suffix(".encrypted")
    _openssl("pkcs8", "-topk8", "-in", key, "-out", made, "-passout", "pass:secret")
    return made


def _openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
