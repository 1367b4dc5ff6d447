"""The options `s3.*`: how a bucket is reached.

Place in the data path: read once when an S3 warehouse is opened; carried inside the picklable store. It owns
the names, and their translation for the two clients (obstore for objects, pyarrow for data files). What is left
out comes from AWS's own variables and files (`aws_environment`) or the machine's role.

    s3.endpoint            http(s)://host:port of the server; AWS when absent
    s3.access-key          access key id
    s3.secret-key          secret access key
    s3.session-token       token of temporary credentials
    s3.region              region, us-east-1 when absent
    s3.path-style-access   true: http://host/bucket/key; false: http://bucket.host/key; true when an endpoint is given
    s3.allow-http          allow unencrypted connections; true when the endpoint begins with http://
"""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow.fs

from lakelet.errors import InvalidError
from lakelet.storage.s3.aws_environment import AwsEnvironment

if TYPE_CHECKING:
    from obstore.store import S3Config

_NAMES = (
    "s3.endpoint",
    "s3.access-key",
    "s3.secret-key",
    "s3.session-token",
    "s3.region",
    "s3.path-style-access",
    "s3.allow-http",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """Checked options; secrets stay out of its text form."""

    endpoint: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    path_style: bool = False
    allow_http: bool = False

    @staticmethod
    def parse(options: Mapping[str, str]) -> "S3Options":
        """From a warehouse's options; those without the prefix `s3.` belong to others."""
        for name in options:
            if name.startswith("s3.") and name not in _NAMES:
                near = difflib.get_close_matches(name, _NAMES, n=1)
                raise InvalidError(f"unknown option {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        access_key, secret_key = options.get("s3.access-key"), options.get("s3.secret-key")
        if (access_key is None) != (secret_key is None):
            raise InvalidError("s3.access-key and s3.secret-key must be given together")
        around = AwsEnvironment.of(os.environ, needs_keys=access_key is None)
        endpoint = options.get("s3.endpoint") or around.endpoint
        allow_http = _boolean(options, "s3.allow-http", default=bool(endpoint and endpoint.startswith("http://")))
        if endpoint is not None:
            endpoint = _checked_endpoint(endpoint, allow_http=allow_http)
        return S3Options(
            endpoint=endpoint,
            access_key=access_key or around.access_key,
            secret_key=secret_key or around.secret_key,
            session_token=options.get("s3.session-token") or around.session_token,
            region=options.get("s3.region") or around.region,
            path_style=_boolean(options, "s3.path-style-access", default=endpoint is not None),
            allow_http=allow_http,
        )

    def client_config(self, bucket: str) -> "S3Config":
        """The configuration of obstore's S3 client."""
        config: S3Config = {"virtual_hosted_style_request": not self.path_style}
        if self.access_key is not None and self.secret_key is not None:
            config["access_key_id"] = self.access_key
            config["secret_access_key"] = self.secret_key
        if self.session_token is not None:
            config["session_token"] = self.session_token
        if self.region is not None:
            config["region"] = self.region
        if self.endpoint is not None:
            parts = urlsplit(self.endpoint)
            host = parts.netloc if self.path_style else f"{bucket}.{parts.netloc}"
            config["endpoint"] = f"{parts.scheme}://{host}"
        return config

    def arrow_filesystem(self) -> pyarrow.fs.FileSystem:
        """pyarrow's S3 client with the same credentials."""
        arguments: dict[str, str | bool | None] = {
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "session_token": self.session_token,
            "region": self.region,
        }
        if self.endpoint is not None:
            parts = urlsplit(self.endpoint)
            arguments |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
            arguments["force_virtual_addressing"] = not self.path_style
        return pyarrow.fs.S3FileSystem(**{name: value for name, value in arguments.items() if value is not None})


def _checked_endpoint(endpoint: str, *, allow_http: bool) -> str:
    if "://" not in endpoint:
        endpoint = f"{'http' if allow_http else 'https'}://{endpoint}"
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/") or parts.query:
        raise InvalidError(f"s3.endpoint is {endpoint!r}; expected http(s)://host:port")
    if parts.scheme == "http" and not allow_http:
        raise InvalidError(f"s3.endpoint {endpoint!r} is not encrypted and s3.allow-http is false")
    return f"{parts.scheme}://{parts.netloc}"


def _boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidError(f"{name} is {text!r}; expected true or false")
    return text.lower() == "true"
