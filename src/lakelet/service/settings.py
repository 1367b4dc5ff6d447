"""The settings of a service process: one value, made of flags, the environment, a TOML file and defaults, in this order.

lakelet serve --port 9000      LAKELET_PORT=9000      port = 9000 in the file of --config      8080
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from lakelet.cluster.cluster_node import ROLES
from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.near_names import nearest

_PREFIX = "LAKELET_"
_MEANING, _LEAST, _MOST, _CHOICES = "meaning", "least", "most", "choices"
_LARGEST_PORT = 65_535
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def _setting(default: Any, meaning: str, **limits: Any) -> Any:
    return field(default=default, metadata={_MEANING: meaning, **limits})


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What a process is started with."""

    warehouse: str = _setting("./warehouse", "A folder or an s3:// address.")
    host: str = _setting("127.0.0.1", "The address that is listened at.")
    port: int = _setting(8080, "The port of REST; 0 takes a free one.", least=0, most=_LARGEST_PORT)
    grpc_port: int | None = _setting(50051, "The port of gRPC; 0 takes a free one.", least=0, most=_LARGEST_PORT)
    wal_folder: str | None = _setting(None, "The folder of write-ahead logs; lakelet/wal in the user's state folder.")
    wal_replicas: int = _setting(
        0,
        "Other nodes that must have a record on disk before it is acknowledged; 1 needs a cluster with a second live node.",
        least=0,
        most=1,
    )
    redis: str | None = _setting(
        None, "The redis:// address of the cluster that this node belongs to; alone without one."
    )
    node_address: str | None = _setting(
        None, "host:port by which other nodes reach this one's gRPC; by default that which is listened at."
    )
    node_role: str = _setting(
        "all", "What the node does: all owns ids, as worker does; gateway takes requests and owns none.", choices=ROLES
    )
    peer_secret_file: str | None = _setting(
        None,
        "A file with the secret of the cluster, the same for all nodes; needed where other machines are listened to.",
    )
    peer_ca: str | None = _setting(
        None,
        "A PEM file with the CA of the nodes' certificates, where they speak TLS; by default the certificate itself.",
    )
    backup: str | None = _setting(None, "A second store, a folder or an s3:// address, to which tables are copied.")
    keys_file: str | None = _setting(None, "The file of API keys; service/keys.json below a local warehouse.")
    require_keys: bool | None = _setting(
        None, "Whether requests need an API key; by default unless the address is a loopback."
    )
    callbacks: str | None = _setting(
        None, "Classes to call for each commit, such as shop.hooks:Audit, separated by commas."
    )
    tls_certificate: str | None = _setting(
        None,
        "A PEM file with the certificate of the server, and those between it and its CA; with it both servers speak TLS.",
    )
    tls_key: str | None = _setting(None, "The PEM file of the certificate's key, without a password.")
    tls_client_ca: str | None = _setting(
        None, "A PEM file with CAs: clients then need a certificate of one of them, besides an API key."
    )
    requests_per_second: int = _setting(
        0, "Requests a second of one API key, or of all callers without one; 0 is no limit.", least=0, most=10**9
    )
    bytes_per_second: int = _setting(
        0,
        "Bytes of requests a second of one API key, or of all callers without one; 0 is no limit.",
        least=0,
        most=10**12,
    )
    most_body_bytes: int = _setting(32 << 20, "The largest body of a request.", least=1024, most=1 << 30)
    most_waiting_records: int = _setting(
        100_000, "Records of a table that may wait for the log before requests are refused.", least=1, most=10**8
    )
    drain_seconds: int = _setting(30, "How long running requests may take after SIGTERM.", least=0, most=3600)
    maintenance_seconds: int = _setting(
        3600, "How often each table is maintained, by one node of all.", least=1, most=30 * 86_400
    )
    maintenance_engine: str = _setting(
        "local",
        "Who compacts tables that are due: the nodes of the service, or jobs of the Spark that `spark` names.",
        choices=("local", "spark"),
    )
    query_seconds: int = _setting(60, "How long a query may take.", least=1, most=86_400)
    query_rows: int = _setting(1_000_000, "The most rows of a result.", least=1, most=10**12)
    query_bytes: int = _setting(256 << 20, "The largest result, as JSON or Arrow.", least=1024, most=1 << 40)
    query_running: int = _setting(8, "Queries that run at the same time; a few more wait.", least=1, most=1000)
    query_memory: str | None = _setting(None, "Memory of all queries together, such as 2GB; DuckDB decides by default.")
    query_strict: bool = _setting(
        False, "Whether a query fails where a node of the cluster with rows of its own cannot be reached."
    )
    query_spread_bytes: int = _setting(
        256 << 20,
        "A query that reads so many bytes of a table is spread over the workers of the cluster; 0 spreads all that can be.",
        least=0,
        most=1 << 50,
    )
    spark: str | None = _setting(
        None,
        "Where queries run that are too large for nodes, or ask for it: a Spark master, such as local[4], or the sc:// address "
        "of Spark Connect.",
    )
    query_spark_bytes: int = _setting(
        64 << 30,
        "A query that reads so many bytes of a table runs on Spark, where there is one.",
        least=0,
        most=1 << 50,
    )
    slow_query_seconds: int = _setting(5, "Queries that take as long are logged.", least=0, most=86_400)
    audit_file: str | None = _setting(None, "The file of the audit log; by default its lines are in the log.")
    audit_sql: str = _setting(
        "digest",
        "How the audit log tells queries: by the SHA-256 of their text, the text, or not.",
        choices=("digest", "text", "none"),
    )
    audit_writes: str = _setting(
        "count",
        "How the audit log tells writes: their number by caller and table, a line each, or not.",
        choices=("count", "each", "none"),
    )
    log_level: str = _setting("info", "How much is logged.", choices=("debug", "info", "warning", "error"))


def load_settings(
    given: Mapping[str, object], environment: Mapping[str, str] | None = None, file: str | None = None
) -> ServiceSettings:
    """The settings; InvalidError for a name or a value that is none. What is None in `given` is not given."""
    environment = os.environ if environment is None else environment
    found: dict[str, object] = {}
    file = file or environment.get(f"{_PREFIX}CONFIG") or None
    if file is not None:
        found.update(_from_file(file))
    known = {one.name: one for one in fields(ServiceSettings)}
    for name in known:
        text = environment.get(_PREFIX + name.upper())
        if text:
            found[name] = _parsed(name, text, f"{_PREFIX}{name.upper()}")
    found.update({name: value for name, value in given.items() if value is not None})
    for name, value in found.items():
        _check(name, value, known[name].metadata)
    settings = ServiceSettings(**found)  # type: ignore[arg-type]  # checked one by one
    if settings.backup is not None and _place(settings.backup) == _place(settings.warehouse):
        raise InvalidError(f"backup: expected another place than the warehouse, found {settings.backup!r} for both")
    if settings.wal_replicas and settings.redis is None:
        raise InvalidError(
            "wal_replicas: expected the setting redis beside it, for a node alone has no second disk; found none"
        )
    if settings.maintenance_engine == "spark" and settings.spark is None:
        raise InvalidError("maintenance_engine: expected the setting spark beside it, found none")
    return settings


def printed_settings(settings: ServiceSettings) -> str:
    """The settings as a TOML file with the meaning of each; those that are unset as comments."""
    lines = []
    for one in fields(ServiceSettings):
        value = getattr(settings, one.name)
        lines.append(f"# {one.metadata[_MEANING]}")
        lines.append(f"# {one.name} =" if value is None else f"{one.name} = {_toml(value)}")
    return "\n".join(lines)


def _place(address: str) -> str:
    """An address by which two of them can be compared."""
    is_folder = "://" not in address
    return os.path.realpath(os.path.expanduser(address)) if is_folder else address.rstrip("/")


def _from_file(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidError(f"{path}: {error}") from None
    names = [one.name for one in fields(ServiceSettings)]
    for name in found:
        if name not in names:
            raise InvalidError(f"{path}: unknown setting {name!r}{nearest(name, names)}")
    return found


def _parsed(name: str, text: str, where: str) -> object:
    kind = _kind(name)
    if kind is int:
        if not text.strip().lstrip("-").isdigit():
            raise InvalidError(f"{where}: expected a whole number, found {text!r}")
        return int(text)
    if kind is bool:
        if text.lower() not in (*_TRUE, *_FALSE):
            raise InvalidError(f"{where}: expected true or false, found {text!r}")
        return text.lower() in _TRUE
    return text


def _check(name: str, value: object, limits: Mapping[str, Any]) -> None:
    kind = _kind(name)
    if type(value) is not kind:
        raise InvalidError(f"{name}: expected {_KINDS[kind]}, found {value!r}")
    if isinstance(value, int) and _LEAST in limits and not limits[_LEAST] <= value <= limits[_MOST]:
        raise InvalidError(f"{name}: expected {limits[_LEAST]} to {limits[_MOST]}, found {value}")
    if _CHOICES in limits and value not in limits[_CHOICES]:
        raise InvalidError(f"{name}: expected {' or '.join(limits[_CHOICES])}, found {value!r}")
    if kind is str and not value:
        raise InvalidError(f"{name}: expected a text, found an empty one")


_KINDS: dict[type, str] = {int: "a whole number", bool: "true or false", str: "a text"}


def _kind(name: str) -> type:
    annotation = str(next(one.type for one in fields(ServiceSettings) if one.name == name))
    return {"int": int, "bool": bool, "str": str}[annotation.split(" ", 1)[0]]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
