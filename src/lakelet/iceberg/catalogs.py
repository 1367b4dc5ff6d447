"""The Iceberg catalogs that a lake knows, by name.

    connect(…, {"catalog.ice.type": "rest", "catalog.ice.uri": "http://…"})     given when the lake is opened
    CREATE CATALOG ice WITH ('type' = 'rest', 'uri' = '…')                      kept in the lake: catalogs/ice.json
    iceberg                                     the lake's own, where it is a folder: SQLite and files below iceberg/

What is given when the lake is opened goes before what is kept, property by property, so that secrets need not be kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from lakelet.errors import AlreadyExistsError, CorruptionError, InvalidError, NotFoundError
from lakelet.iceberg.catalog import IcebergCatalog
from lakelet.storage.paths import check_name
from lakelet.storage.store import ObjectStore

OWN_CATALOG = "iceberg"
_FOLDER = "catalogs"
_OPTION = "catalog."
_SECRET = ("secret", "password", "token", "credential", "access-key")


class Catalogs:
    """The catalogs of one lake, opened once."""

    def __init__(self, store: ObjectStore, options: Mapping[str, str]) -> None:
        self._store = store
        self._options = dict(options)
        self._opened: dict[str, IcebergCatalog] = {}

    def names(self) -> list[str]:
        """All of them."""
        found = {key[len(_OPTION) :].split(".", 1)[0] for key in self._options if key.startswith(_OPTION)}
        found |= {info.path.rsplit("/", 1)[-1].removesuffix(".json") for info in self._store.list(_FOLDER)}
        if self._own() is not None:
            found.add(OWN_CATALOG)
        return sorted(found)

    def open(self, name: str) -> IcebergCatalog:
        """The catalog of that name; NotFoundError where the lake knows none."""
        if name not in self._opened:
            if name == OWN_CATALOG and self._own() is not None:
                self._store.make_folder(OWN_CATALOG)
            self._opened[name] = IcebergCatalog(name, self._properties(name))
        return self._opened[name]

    def create(self, name: str, properties: Mapping[str, str]) -> None:
        """Keeps a catalog in the lake. Secrets are refused: they are given when the lake is opened."""
        check_name(name, "catalog")
        if name in self.names():
            raise AlreadyExistsError(f"catalog {name!r} exists in {self._store.location}")
        secret = next((key for key in properties if any(word in key.lower() for word in _SECRET)), None)
        if secret is not None:
            raise InvalidError(
                f"catalog {name!r}: {secret!r} would be readable in the lake's folder: pass '{_OPTION}{name}.{secret}' to "
                "connect() instead"
            )
        self._store.put(self._path(name), json.dumps(dict(properties), indent=2, sort_keys=True).encode())

    def drop(self, name: str) -> None:
        """Forgets a catalog that is kept in the lake; its tables stay where they are."""
        if self._store.head(self._path(name)) is None:
            raise NotFoundError(f"catalog {name!r} is not kept in {self._store.location}")
        self._store.delete([self._path(name)])
        self._opened.pop(name, None)

    def _properties(self, name: str) -> dict[str, str]:
        if name not in self.names():
            raise NotFoundError(
                f"catalog {name!r} is not known to {self._store.location}; there are {', '.join(self.names()) or 'none'}"
            )
        properties = dict(self._kept(name) or (self._own() if name == OWN_CATALOG else None) or {})
        prefix = f"{_OPTION}{name}."
        given = {key.removeprefix(prefix): text for key, text in self._options.items() if key.startswith(prefix)}
        return properties | given

    def _kept(self, name: str) -> dict[str, str] | None:
        if self._store.head(self._path(name)) is None:
            return None
        try:
            found = json.loads(self._store.get(self._path(name)))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise CorruptionError(f"{self._store.location}/{self._path(name)} is no JSON: {error}") from error
        return {str(key): str(value) for key, value in found.items()}

    def _own(self) -> dict[str, str] | None:
        """The lake's own catalog, where its folder is on this machine."""
        root = self._store.location.rstrip("/")
        if not root.startswith("/"):
            return None
        folder = f"{root}/{OWN_CATALOG}"
        return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}

    @staticmethod
    def _path(name: str) -> str:
        return f"{_FOLDER}/{name}.json"
