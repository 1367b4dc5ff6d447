"""Check properties of catalogs by their origin: the program, a stored file, or a statement.

The program (`connect()`, pyiceberg's own configuration) may set everything. A file in a lake and a statement of SQL are
untrusted: they may set where a catalog is and its protocol, and neither name a class, which pyiceberg would
import and call, nor a file of this machine, nor the caller's identity. That is an allow-list, so that a property which
a later pyiceberg adds is refused until it has been reviewed.

An address decides who gets a secret. Where the program gives a secret, it gives the addresses as well:

    catalogs/ice.json   {"type": "rest", "uri": "https://a.example"}
    connect()           catalog.ice.token = …                            refused: the token would be sent where the file says
    connect()           catalog.ice.token = …, catalog.ice.uri = …       the file does not decide where it is sent
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyiceberg.catalog import _ENV_CONFIG
from pyiceberg.typedef import RecursiveDict

from lakelet.errors import InvalidError
from lakelet.options import CATALOG_PREFIX

# Properties that name a class to import and call. The last is a table's: a catalog has it to allow the class.
LOCATION_CLASS = "write.py-location-provider.impl"
CLASSES = frozenset(("py-catalog-impl", "py-io-impl", "auth.impl", "s3.retry-strategy-impl", LOCATION_CLASS))

# Properties that a file or a statement may set.
_KEPT = frozenset(
    (
        *("type", "uri", "warehouse", "prefix", "downcast-ns-timestamp-to-us-on-write"),
        *("oauth2-server-uri", "scope", "audience", "resource", "rest-page-size", "namespace-separator"),
        *("view-endpoints-supported", "header.X-Iceberg-Access-Delegation"),
        *("pool_pre_ping", "schema_version"),
        *("ugi", "hive.hive2-compatible", "lock-check-min-wait-time", "lock-check-max-wait-time", "lock-check-retries"),
        *("glue.id", "glue.region", "glue.skip-archive", "glue.max-retries", "glue.retry-mode"),
        *("dynamodb.region", "table-name", "gcp.bigquery.project-id", "gcp.bigquery.location"),
        *("client.region", "s3.region", "s3.resolve-region", "s3.endpoint", "s3.force-virtual-addressing"),
        *("s3.anonymous", "s3.connect-timeout", "s3.request-timeout"),
        *("gcs.project-id", "gcs.default-bucket-location", "adls.account-name"),
    )
)
_ADDRESSES = ("uri", "oauth2-server-uri", "s3.endpoint", "adls.account-name")
# Databases by the scheme of their URL. Others have drivers that load what a URL names.
_DATABASES = ("sqlite", "postgresql", "postgresql+psycopg2", "postgresql+psycopg")
_SERVERS = ("http", "https", "thrift")
_PASSWORD_OF_LIBPQ = "PGPASSWORD"
# Parts of the names of secret properties, such as adls.account-key, adls.connection-string and header.Authorization.
_SECRET = (
    *("secret", "password", "token", "credential", "access-key", "account-key", "api-key", "connection-string"),
    *("authorization", "cookie"),
)
# Properties of the caller's identity that are no secrets themselves.
_PROOF = (
    *("auth.", "ssl.", "header.", "rest.sig", "hive.kerberos", "s3.profile-name", "client.profile-name"),
    *("s3.role-arn", "client.role-arn", "glue.profile-name", "dynamodb.profile-name", "s3.signer"),
)
_CONFIGURATION = ".pyiceberg.yaml"


def is_secret(key: str) -> bool:
    """Whether a property by its name holds a secret."""
    return any(word in key.lower() for word in _SECRET)


def check_kept(name: str, properties: Mapping[str, str], where: str) -> None:
    """InvalidError for properties that only the program may set. `where` is the file or the statement that sets them."""
    for key in properties:
        if key not in _KEPT:
            raise InvalidError(
                f"{where}: property {key!r} is taken from connect() alone: pass '{CATALOG_PREFIX}{name}.{key}' to it, "
                f"with the catalog's 'uri'"
            )
    uri = properties.get("uri", "")
    scheme = uri.partition("://")[0].lower()
    kind = properties.get("type", "").lower()
    is_database = kind in ("sql", "in-memory") or (not kind and scheme not in _SERVERS)
    if is_database and uri and scheme not in _DATABASES:
        raise InvalidError(
            f"{where}: 'uri' of a database begins with one of {', '.join(_DATABASES)}, found {scheme!r}; others are taken "
            f"from connect() alone, as '{CATALOG_PREFIX}{name}.uri'"
        )


def check_secrets(name: str, kept: Mapping[str, str], given: Mapping[str, str]) -> None:
    """InvalidError where the program gives a secret and somebody else says where it goes."""
    secret = next((key for key in given if is_secret(key) or key.startswith(_PROOF)), None)
    if secret is None and kept.get("uri", "").startswith("postgresql") and _PASSWORD_OF_LIBPQ in os.environ:
        secret = _PASSWORD_OF_LIBPQ
    foreign = [key for key in _ADDRESSES if key in kept and key not in given]
    if secret is not None and foreign:
        asked = " and ".join(f"'{CATALOG_PREFIX}{name}.{key}'" for key in foreign)
        raise InvalidError(
            f"catalog {name}: {secret!r} is given and would be sent where the lake's folder says: give {asked} to connect() "
            "as well"
        )


def configured(name: str, lake_folder: str | None = None) -> dict[str, str]:
    """A catalog's properties in pyiceberg's own configuration, with dotted names. pyiceberg also looks in the working
    directory of the process: a file in the lake is no configuration of the user's."""
    if lake_folder is not None and _is_of_the_lake(lake_folder):
        return {}
    return _flat(_ENV_CONFIG.get_catalog_config(name) or {})


def _is_of_the_lake(folder: str) -> bool:
    homes = [Path(place) for place in (os.environ.get("PYICEBERG_HOME"), Path.home()) if place]
    if any((home / _CONFIGURATION).is_file() for home in homes):
        return False
    here, lake = Path.cwd(), Path(folder).resolve()
    inside = [here] if here == lake or lake in here.parents else []
    return any((place / _CONFIGURATION).is_file() for place in (lake, *inside))


def _flat(found: RecursiveDict, before: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in found.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[f"{before}{key}"] = str(value)
    return flat
