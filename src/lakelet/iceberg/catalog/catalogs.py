"""The Iceberg catalogs of a lake, by name.

    connect(…, {"catalog.ice.type": "rest", "catalog.ice.uri": "http://…"})     given when the lake is opened
    CREATE CATALOG ice WITH ('type' = 'rest', 'uri' = '…')                      kept in the lake: catalogs/ice.json
    iceberg                                     the lake's own, where it is a folder: SQLite and files below iceberg/

Properties given when the lake is opened, or by pyiceberg's own configuration, override stored ones. `trust/properties` decides
what a stored file may set, for whoever wrote into the lake may have written it. A catalog without S3 properties
gets those that the lake itself was opened with. A stored catalog is one JSON object of strings:

    {"type": "rest", "uri": "https://…", "warehouse": "…"}
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping

from lakelet.errors import AlreadyExistsError, CorruptionError, InvalidError, NotFoundError
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.metadata.source import IcebergMetadataSource
from lakelet.iceberg.metadata.uncached import UNCACHED
from lakelet.iceberg.trust.lake_files import LAKE_FOLDER, LakeFileIO
from lakelet.iceberg.trust.properties import check_kept, check_secrets, configured, is_secret
from lakelet.options import (
    CATALOG_PREFIX,
    S3_ACCESS_KEY,
    S3_ENDPOINT,
    S3_PATH_STYLE_ACCESS,
    S3_REGION,
    S3_SECRET_KEY,
    S3_SESSION_TOKEN,
)
from lakelet.storage.paths import check_name
from lakelet.storage.store import ObjectInfo, ObjectStore

_LOG = logging.getLogger(__name__)

OWN_CATALOG = "iceberg"
_FOLDER = "catalogs"
_SUFFIX = ".json"
# The greatest size of a stored catalog's file, more than any needs.
_MOST_BYTES = 1 << 16
# The lake's options for S3 and what pyiceberg calls the same.
_S3 = {
    S3_ENDPOINT.name: "s3.endpoint",
    S3_ACCESS_KEY.name: "s3.access-key-id",
    S3_SECRET_KEY.name: "s3.secret-access-key",
    S3_SESSION_TOKEN.name: "s3.session-token",
    S3_REGION.name: "s3.region",
}
# A self-hosted server has no regions, but requests are signed with one.
_REGION_OF_OWN_SERVER = "us-east-1"
_TAKEN_AMISS = re.compile(r"%[0-9A-Fa-f]{2}|\?")


class Catalogs:
    """The catalogs of one lake, each opened once, and reopened where somebody else has recreated it."""

    def __init__(
        self, store: ObjectStore, options: Mapping[str, str], source: IcebergMetadataSource | None = None
    ) -> None:
        self._store = store
        # Where the metadata of their tables comes from.
        self._source = source or UNCACHED
        self._options = dict(options)
        self._opened: dict[str, IcebergCatalog] = {}
        # The files of stored catalogs at the last listing.
        self._listed: dict[str, ObjectInfo] = {}

    def names(self) -> list[str]:
        """All of them."""
        found = {key.removeprefix(CATALOG_PREFIX).split(".", 1)[0] for key in self._given_keys()}
        files = {info.path.rsplit("/", 1)[-1]: info for info in self._store.list(_FOLDER)}
        kept = {name.removesuffix(_SUFFIX): info for name, info in files.items() if name.endswith(_SUFFIX)}
        kept = {name: info for name, info in kept.items() if self._may_be_kept(name)}
        for name, info in self._listed.items():
            if kept.get(name) != info:
                self._opened.pop(name, None)
        self._listed = kept
        found |= set(kept)
        if self._own() is not None:
            found.add(OWN_CATALOG)
        return sorted(found)

    def open(self, name: str) -> IcebergCatalog:
        """The catalog of that name; NotFoundError where the lake has none."""
        if name not in self._opened:
            there = self.names()
            if name not in there:
                raise NotFoundError(
                    f"catalog {name!r} is not known to {self._store.location}; there are {', '.join(there) or 'none'}"
                )
            properties = self._properties(name, self._kept(name))
            own = self._own()
            if own is not None and properties.get("uri") == own["uri"]:
                self._store.make_folder(OWN_CATALOG)
            self._opened[name] = IcebergCatalog(name, properties, self._source)
        return self._opened[name]

    def given(self, name: str) -> IcebergCatalog:
        """The catalog of that name as the program alone describes it, whatever the lake's folder says."""
        own = None if self._own() is None else self._store.location
        properties = configured(name, own) | self._given(name)
        return IcebergCatalog(name, self._with_s3(properties), self._source)

    def create(self, name: str, properties: Mapping[str, str]) -> None:
        """Stores a catalog in the lake after checking that it can be opened. Secrets are refused: they are given when the lake
        is opened."""
        check_name(name, "catalog")
        exists = AlreadyExistsError(f"catalog {name!r} exists in {self._store.location}")
        if name.lower() in (other.lower() for other in self.names()) and not self._is_only_given(name):
            raise exists
        secret = next((key for key in properties if is_secret(key)), None)
        if secret is None and _has_password(properties.get("uri", "")):
            secret = "uri"
        if secret is not None:
            raise InvalidError(
                f"catalog {name!r}: {secret!r} would be readable in the lake's folder: pass the catalog to connect() instead, as "
                f"'{CATALOG_PREFIX}{name}.{secret}', '{CATALOG_PREFIX}{name}.uri' and so on"
            )
        check_kept(name, properties, f"catalog {name!r}")
        catalog = IcebergCatalog(name, self._properties(name, properties), self._source)
        catalog.check()
        kept = json.dumps(dict(properties), indent=2, sort_keys=True).encode()
        if not self._store.put_if_absent(self._path(name), kept):
            raise exists
        self._opened[name] = catalog

    def drop(self, name: str) -> None:
        """Removes a stored catalog from the lake; its tables are not touched."""
        if self._store.head(self._path(name)) is None:
            if name not in self.names():
                raise NotFoundError(f"catalog {name!r} is not known to {self._store.location}")
            reason = "it was given to connect()" if self._given(name) else "it is the lake's own"
            raise InvalidError(f"catalog {name!r} cannot be dropped: {reason}")
        self._store.delete([self._path(name)])
        self._opened.pop(name, None)

    def _is_only_given(self, name: str) -> bool:
        """Whether only `connect()` has properties of a catalog, such as secrets, and nothing defines its type."""
        given = self._given(name)
        is_kept = self._store.head(self._path(name)) is not None
        return bool(given) and not is_kept and not {"type", "uri", "py-catalog-impl"} & set(given)

    def _properties(self, name: str, kept: Mapping[str, str] | None) -> dict[str, str]:
        given = self._given(name)
        own = self._own()
        if name == OWN_CATALOG and own is not None:
            # Its tables are those of the lake, whatever a file or the configuration for another catalog of that name says.
            properties = given if {"type", "uri", "py-catalog-impl"} & set(given) else own | given
        else:
            given = configured(name, None if own is None else self._store.location) | given
            check_secrets(name, kept or {}, given)
            properties = dict(kept or {}) | given
        return self._with_s3(properties)

    def _with_s3(self, properties: dict[str, str]) -> dict[str, str]:
        return self._lake_s3() | properties if not any(key.startswith("s3.") for key in properties) else properties

    def _lake_s3(self) -> dict[str, str]:
        """The lake's S3 options as pyiceberg's properties. A catalog gets all of them or none, so that a secret of the lake
        is never sent to a server that a catalog names."""
        found = {known: self._options[key] for key, known in _S3.items() if key in self._options}
        if "s3.endpoint" in found:
            found.setdefault("s3.region", _REGION_OF_OWN_SERVER)
        path_style = self._options.get(S3_PATH_STYLE_ACCESS.name)
        if path_style is not None:
            found["s3.force-virtual-addressing"] = "false" if path_style.lower() == "true" else "true"
        return found

    def _given_keys(self) -> list[str]:
        return [key for key in self._options if key.startswith(CATALOG_PREFIX)]

    def _given(self, name: str) -> dict[str, str]:
        prefix = f"{CATALOG_PREFIX}{name}."
        return {key.removeprefix(prefix): self._options[key] for key in self._given_keys() if key.startswith(prefix)}

    def _may_be_kept(self, name: str) -> bool:
        """Whether a file of that name is a catalog: the lake's own is none that a file could replace."""
        try:
            check_name(name, "catalog")
        except InvalidError:
            return False
        if name.lower() == OWN_CATALOG and self._own() is not None:
            _LOG.warning("%s/%s is ignored: %s is the lake's own catalog", self._store.location, self._path(name), name)
            return False
        return True

    def _kept(self, name: str) -> dict[str, str] | None:
        path = self._path(name)
        where = f"{self._store.location}/{path}"
        info = self._store.head(path)
        if info is None or not self._may_be_kept(name):
            return None
        if info.size > _MOST_BYTES:
            raise CorruptionError(f"{where} has {info.size} bytes: a catalog is described in {_MOST_BYTES} at most")
        try:
            found = json.loads(self._store.get_range(path, 0, info.size))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise CorruptionError(f"{where} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise CorruptionError(f"{where}: expected an object, found {type(found).__name__}")
        for key, value in found.items():
            if not isinstance(value, str):
                raise CorruptionError(f"{where}: property {key!r}: expected a text, found {type(value).__name__}")
        check_kept(name, found, where)
        return found

    def _own(self) -> dict[str, str] | None:
        """The lake's own catalog, where its folder is on this machine."""
        root = self._store.location.rstrip("/")
        if not root.startswith("/"):
            return None
        folder = f"{root}/{OWN_CATALOG}"
        # pyiceberg cuts an address at these signs, and takes a path without a scheme as it is.
        warehouse = folder if {"#", "?"} & set(folder) else f"file://{folder}"
        return {
            "type": "sql",
            "uri": f"sqlite:///{_quoted(folder)}/catalog.db",
            "warehouse": warehouse,
            "py-io-impl": f"{LakeFileIO.__module__}.{LakeFileIO.__name__}",
            LAKE_FOLDER: root,
        }

    @staticmethod
    def _path(name: str) -> str:
        return f"{_FOLDER}/{name}{_SUFFIX}"


def _quoted(path: str) -> str:
    """A path as part of a database URL: unchanged, unless a character in it would be taken for an escape or for
    parameters."""
    return path.replace("%", "%25").replace("?", "%3F") if _TAKEN_AMISS.search(path) else path


def _has_password(uri: str) -> bool:
    """Whether an address is of the form scheme://user:password@host, or has a password or the like among its parameters."""
    scheme, _, rest = uri.partition("://")
    parameters = rest.partition("?")[2].split("&")
    if any(is_secret(one.partition("=")[0]) for one in parameters):
        return True
    # A database's password may have any sign in it; behind the first slash of an address in the web there is a path.
    before, at, _ = (rest.partition("/")[0] if scheme.lower().startswith("http") else rest).rpartition("@")
    user, colon, _ = before.partition(":")
    return bool(at) and bool(colon) and not {"/", "@"} & set(user)
