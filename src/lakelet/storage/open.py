"""Open the store of a warehouse by its location.

Place in the data path: the first thing `connect` does, and again wherever a store is reopened by its
location. It owns the forms a location takes and which decorators a backend gets. It reads no object, except
that an S3 bucket is probed once per process.

    ./warehouse, /data/warehouse, file:///data/warehouse    LocalStore; ~/warehouse is in the home folder
    s3://bucket/prefix (s3a:// too)                         S3Store, probed, within RetryingStore
    memory://NAME                                           the process's MemoryStore of that name
"""

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lakelet.errors import InvalidError, PermissionDeniedError
from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.probe import require_conditional_put
from lakelet.storage.retry import RetryingStore
from lakelet.storage.s3.s3_options import S3Options
from lakelet.storage.store import ObjectStore

if TYPE_CHECKING:
    from lakelet.storage.s3.s3_store import S3Store

_probed: set[tuple[str, str]] = set()
_probe_lock = threading.Lock()


def open_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The store at a path, file://, s3:// or memory:// location."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        if not url:
            raise InvalidError("the warehouse location is empty; expected a path, file://, s3:// or memory://")
        # A location of a program or a settings file has not been through a shell, which would have expanded `~`.
        return LocalStore(url.removeprefix("file:") if url.startswith("file:/") else os.path.expanduser(url))
    match scheme.lower():
        case "file":
            return LocalStore(_file_path(url))
        case "s3" | "s3a":
            bucket, _, prefix = rest.partition("/")
            from lakelet.storage.s3.s3_store import S3Store  # noqa: PLC0415 - its client loads only where it is asked for.

            return _opened_s3(S3Store(bucket, prefix.strip("/"), S3Options.parse(options)))
        case "memory":
            if not rest:
                raise InvalidError(f"{url!r} has no name; expected memory://NAME")
            return MemoryStore.named(rest.rstrip("/"))
    raise InvalidError(f"unknown scheme {scheme!r} in {url!r}; expected a path, file://, s3:// or memory://")


def _file_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise InvalidError(f"{url!r} names the host {parts.netloc!r}; expected file:///path")
    return unquote(parts.path)


def _opened_s3(store: "S3Store") -> ObjectStore:
    retrying = RetryingStore(store)
    with _probe_lock:
        if store.bucket_identity not in _probed:
            # A reader without write access cannot commit, so nothing depends on the condition.
            try:
                require_conditional_put(retrying)
                _probed.add(store.bucket_identity)
            except PermissionDeniedError:
                pass
    return retrying
