"""API keys in a file: hashed, with rights by table, revocable.

    <warehouse>/service/keys.json      {"version": 1, "keys": [{"id", "name", "hash", "rights", "created_at", "revoked_at",
                                                            "requests_per_second", "bytes_per_second"}]}

A key is `lk_<id>_<secret>`, its secret 244 random bits, of which SHA-256 is kept: a slow hash guards weak passwords, which these
are not. The file is read again when it changes, so that `lakelet keys revoke` holds at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

from lakelet.clock import Clock, SystemClock
from lakelet.errors import CorruptionError, InvalidError, NotFoundError
from lakelet.ids import Ids, RandomIds
from lakelet.service.access.caller import ADMIN, EVERY_TABLE, RIGHTS, Caller
from lakelet.service.tables.table_config import check_table_name
from lakelet.service.timestamps import timestamp_text

T = TypeVar("T")
_PRIVATE = 0o600
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is kept: never its secret."""

    id: str
    name: str
    hash: str
    rights: Mapping[str, str]
    created_at: str
    revoked_at: str | None = None
    requests_per_second: int | None = None
    bytes_per_second: int | None = None


class KeyStore:
    """The keys of a service; for any number of threads and processes."""

    def __init__(
        self,
        path: str,
        clock: Clock | None = None,
        ids: Ids | None = None,
        when_changed: Callable[[Mapping[str, ApiKey], Mapping[str, ApiKey]], None] | None = None,
    ) -> None:
        self._path = path
        self._when_changed = when_changed
        self._was_read = False
        self._clock = clock or SystemClock()
        self._ids = ids or RandomIds()
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._keys: dict[str, ApiKey] = {}

    def list(self) -> list[ApiKey]:
        """All keys, those that are revoked included."""
        return list(self._current().values())

    def create(
        self,
        name: str,
        rights: Mapping[str, str],
        *,
        requests_per_second: int | None = None,
        bytes_per_second: int | None = None,
    ) -> str:
        """Make a key; its text, which is shown this once. Limits that are None are those of the service, 0 is none."""
        _check_limits(requests_per_second, bytes_per_second)
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
            raise InvalidError(f"name: expected 1 to {_LONGEST_NAME} characters, found {name!r}")
        for table, right in rights.items():
            if table != EVERY_TABLE:
                check_table_name(table)
            if right not in RIGHTS:
                raise InvalidError(f"rights of {table}: expected {', '.join(RIGHTS)}, found {right!r}")
        if not rights:
            raise InvalidError("rights: expected at least one, such as *=read or orders=write")
        number, secret = self._ids.uuid()[:8], f"{self._ids.uuid()}{self._ids.uuid()}".replace("-", "")
        now = timestamp_text(self._clock.now_ms() * 1000)
        made = ApiKey(number, name, _hash(secret), dict(rights), now, None, requests_per_second, bytes_per_second)
        self._change(lambda keys: keys.update({number: made}))
        return f"lk_{number}_{secret}"

    def revoke(self, number: str) -> ApiKey:
        """Revoke a key by its id; it stays in the list."""
        now = timestamp_text(self._clock.now_ms() * 1000)
        return self._change_one(number, lambda key: replace(key, revoked_at=key.revoked_at or now))

    def limit(self, number: str, *, requests_per_second: int | None, bytes_per_second: int | None) -> ApiKey:
        """Give a key limits of its own; None takes them back, 0 is no limit."""
        _check_limits(requests_per_second, bytes_per_second)
        return self._change_one(
            number,
            lambda key: replace(key, requests_per_second=requests_per_second, bytes_per_second=bytes_per_second),
        )

    def caller_of(self, key: str) -> Caller | None:
        """The caller with this key, None for an unknown or revoked one."""
        kind, _, rest = key.partition("_")
        number, _, secret = rest.partition("_")
        found = self._current().get(number)
        # An unknown id takes as long as a wrong secret.
        wanted = found.hash if found is not None else _hash("")
        is_right = hmac.compare_digest(_hash(secret), wanted)
        if found is None or kind != "lk" or not is_right or found.revoked_at is not None:
            return None
        name = f"key {found.id} ({found.name})"
        return Caller(name, found.rights, found.id, found.requests_per_second, found.bytes_per_second)

    def _current(self) -> dict[str, ApiKey]:
        with self._lock:
            try:
                stat = os.stat(self._path)
            except FileNotFoundError:
                self._seen, self._keys, self._was_read = None, {}, True
                return self._keys
            seen = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if seen != self._seen:
                before, self._keys, self._seen = self._keys, _read(self._path), seen
                if self._when_changed is not None and self._was_read:
                    self._when_changed(before, self._keys)
                self._was_read = True
            return self._keys

    def _change_one(self, number: str, change: Callable[[ApiKey], ApiKey]) -> ApiKey:
        def changed(keys: dict[str, ApiKey]) -> ApiKey:
            if number not in keys:
                raise NotFoundError(f"there is no key {number!r} in {self._path}")
            keys[number] = change(keys[number])
            return keys[number]

        return self._change(changed)

    def _change(self, change: Callable[[dict[str, ApiKey]], T]) -> T:
        """Change the keys, one process at a time: the file is replaced whole."""
        os.makedirs(os.path.dirname(self._path) or ".", mode=0o700, exist_ok=True)
        with open(f"{self._path}.lock", "a", opener=_private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = _read(self._path) if os.path.exists(self._path) else {}
            answer = change(keys)
            document = {"version": 1, "keys": [asdict(key) for key in keys.values()]}
            temporary = f"{self._path}.tmp"
            with open(temporary, "w", opener=_private) as file:
                json.dump(document, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
            return answer


def first_admin_key(store: KeyStore) -> str | None:
    """A key with all rights, made where there is none at all."""
    if store.list():
        return None
    return store.create("first", {EVERY_TABLE: ADMIN})


def keys_path(given: str | None, location: str) -> str:
    """The file of keys: the given one, or that of a warehouse on this machine."""
    if given is not None:
        return os.path.abspath(os.path.expanduser(given))
    if "://" in location:
        raise InvalidError(f"keys_file: name a file of this machine: the warehouse {location} is none")
    return os.path.join(location, "service", "keys.json")


def _read(path: str) -> dict[str, ApiKey]:
    try:
        with open(path, "rb") as file:
            document = json.load(file)
        return {one["id"]: ApiKey(**one) for one in document["keys"]}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(f"{path}: expected API keys as JSON, found: {error}") from None


def _check_limits(requests_per_second: int | None, bytes_per_second: int | None) -> None:
    for name, value in (("requests_per_second", requests_per_second), ("bytes_per_second", bytes_per_second)):
        if value is not None and value < 0:
            raise InvalidError(f"{name}: expected 0 or more, found {value}")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, _PRIVATE)
