"""A REST catalog that filters the settings its server sends.

A server answers with settings for its client twice: with `/v1/config` when a catalog is opened, and with every table.
pyiceberg takes all of them, also the name of a class to read files with. Here they go through an allow-list for servers:
how its own addresses are made up, and the credentials it vends for the files of a table. Properties of the table itself, which
are in its metadata, do not configure access to files.

    the server says                              taken
    ─────────────────────────────────────────    ──────────────────────────────────────────────────────────────
    prefix, warehouse, namespace-separator …     yes
    uri                                          of the same host and port; elsewhere it is an error that says so
    keys for S3, with or without an endpoint     yes, instead of all that the program said of keys
    an endpoint for S3 alone                     unless the program gives keys, which would be sent there: an error
    everything else                              no

Requests time out after `_TIMEOUT_SECONDS`; pyiceberg has no timeout.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog, TableResponse
from pyiceberg.catalog.rest.auth import AUTH_MANAGER
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import StagedTable, Table
from pyiceberg.typedef import EMPTY_DICT, Properties
from requests import PreparedRequest, Response, Session

from lakelet.errors import InvalidError
from lakelet.iceberg.trust.properties import is_secret
from lakelet.options import CATALOG_PREFIX

# For a connection, and for an answer.
_TIMEOUT_SECONDS = (30.0, 300.0)
_ANSWERED = frozenset(
    (
        *("prefix", "warehouse", "namespace-separator", "view-endpoints-supported", "rest-page-size"),
        *("client.region", "s3.region", "s3.force-virtual-addressing", "gcs.project-id"),
        *("gcs.oauth2.token", "gcs.oauth2.token-expires-at", "adls.sas-token"),
    )
)
_S3_KEYS = ("s3.access-key-id", "s3.secret-access-key")
_S3_VENDED = (*_S3_KEYS, "s3.session-token")
_S3_ENDPOINT = "s3.endpoint"
# Whose keys the program may have given: S3's own, and those for all of AWS.
_S3_FAMILIES = ("s3.", "client.")
_HEADER = "header."
_PORTS = {"http": 80, "https": 443}


class CheckedRestCatalog(RestCatalog):
    """pyiceberg's REST catalog, with its server's settings filtered by an allow-list."""

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.request = partial(session.request, timeout=_TIMEOUT_SECONDS)  # type: ignore[method-assign]
        own = [key.removeprefix(_HEADER) for key in self.properties if key.startswith(_HEADER)]
        rebuild = session.rebuild_auth

        def rebuild_auth(request: PreparedRequest, response: Response) -> None:
            # A token goes to no other server that an answer sends its client to; what the program gives as headers is no less.
            rebuild(request, response)
            if _origin(str(request.url)) != _origin(response.url):
                for name in (*own, "Authorization"):
                    request.headers.pop(name, None)

        session.rebuild_auth = rebuild_auth  # type: ignore[assignment, method-assign]
        return session

    def _fetch_config(self) -> None:
        told: dict[str, Any] = dict(self.properties)
        super()._fetch_config()
        said = {key: value for key, value in self.properties.items() if told.get(key) != value}
        address = said.pop("uri", None)
        self.uri = told["uri"] if address is None else self._same_server(str(told["uri"]), str(address))
        server = said.pop("oauth2-server-uri", None)
        if server is not None and "credential" in told and "oauth2-server-uri" not in told:
            told["oauth2-server-uri"] = self._same_server(self.uri, str(server), "oauth2-server-uri")
        self.properties = taken(self.name, told, said) | {"uri": self.uri}

    def _same_server(self, asked: str, said: str, key: str = "uri") -> str:
        """An address that the server gives instead of the one that was asked; InvalidError where it is another server's."""
        if _origin(asked) != _origin(said):
            raise InvalidError(
                f"catalog {self.name}: its server sends its clients to {_shown(said)!r}: where that is right, give it to "
                f"connect() as '{CATALOG_PREFIX}{self.name}.{key}'"
            )
        return said

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        # The properties are those of a table's metadata, which whoever wrote the table chose.
        return self._files({}, location)

    def _files(self, said: Mapping[str, str], location: str | None) -> FileIO:
        known: dict[str, Any] = taken(self.name, self.properties, said)
        if self._auth_manager:
            known[AUTH_MANAGER] = self._auth_manager
        return load_file_io(known, location)

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        return Table(**self._parts(identifier_tuple, table_response), config=dict(table_response.config))

    def _response_to_staged_table(
        self, identifier_tuple: tuple[str, ...], table_response: TableResponse
    ) -> StagedTable:
        return StagedTable(**self._parts(identifier_tuple, table_response))

    def _parts(self, identifier: tuple[str, ...], response: TableResponse) -> dict[str, Any]:
        location = response.metadata_location
        said = {**response.config, **self._resolve_storage_credentials(response.storage_credentials, location)}
        return {
            "identifier": identifier,
            "metadata_location": location,
            "metadata": response.metadata,
            "io": self._files(said, location),
            "catalog": self,
        }


def taken(name: str, told: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of the program, with what it takes of a server's; InvalidError where its keys would go to a stranger's
    address."""
    found = dict(told) | {key: value for key, value in said.items() if key in _ANSWERED}
    if all(key in said for key in _S3_KEYS):
        found = {key: value for key, value in found.items() if not (key.startswith(_S3_FAMILIES) and is_secret(key))}
        found |= {key: said[key] for key in _S3_VENDED if key in said}
        if _S3_ENDPOINT in said:
            found.setdefault(_S3_ENDPOINT, said[_S3_ENDPOINT])
    elif _S3_ENDPOINT in said and _S3_ENDPOINT not in told:
        own = next((key for key in told if key.startswith(_S3_FAMILIES) and is_secret(key)), None)
        if own is not None:
            raise InvalidError(
                f"catalog {name}: its server names the 's3.endpoint' {_shown(str(said[_S3_ENDPOINT]))!r}, and {own!r} would be "
                f"sent there: where that is right, give it to connect() as '{CATALOG_PREFIX}{name}.s3.endpoint'"
            )
        found[_S3_ENDPOINT] = said[_S3_ENDPOINT]
    return found


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    return parts.scheme.lower(), parts.hostname, parts.port or _PORTS.get(parts.scheme.lower())


def _shown(address: str) -> str:
    """An address without the user and parameters that may be in it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
