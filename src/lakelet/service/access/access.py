"""Who asks: an API key, or, where the service is bound to a loopback address, anybody on the machine.

Without keys the Host and Origin of a request are checked: a page of the web that the user of the machine looks at could otherwise
write to the service through the browser.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Protocol
from urllib.parse import urlsplit

from lakelet.errors import InvalidError, PermissionDeniedError, UnauthenticatedError
from lakelet.service.access.audit_log import AuditLog
from lakelet.service.access.caller import ANYBODY, Caller
from lakelet.service.access.rate_limits import RateLimits

_BEARER = "bearer "
# Hosts of requests that need not be parsed again.
_KNOWN_HOSTS = 256


class KnownKeys(Protocol):
    """API keys that callers are known by."""

    def caller_of(self, key: str) -> Caller | None:
        """The caller with this key, None for an unknown, revoked or expired one."""


class Access:
    """Decides who sends a request; without keys everybody is `ANYBODY`."""

    def __init__(self, keys: KnownKeys | None, limits: RateLimits | None = None, audit: AuditLog | None = None) -> None:
        self._keys = keys
        self.limits = limits or RateLimits()
        self.audit = audit

    @property
    def asks_for_keys(self) -> bool:
        """Whether requests need a key."""
        return self._keys is not None

    def caller(self, authorization: str | None) -> Caller:
        """The caller of a request by its header Authorization; UnauthenticatedError where it is nobody."""
        if self._keys is None:
            return ANYBODY
        found = self.try_caller(authorization)
        if found is None:
            what = "none" if authorization is None else "one that is unknown, revoked or expired"
            raise UnauthenticatedError(f"expected an API key in the header 'Authorization: Bearer …', found {what}")
        return found

    def try_caller(self, authorization: str | None) -> Caller | None:
        """The caller of a request, None where it is nobody."""
        if self._keys is None:
            return ANYBODY
        if authorization is None or not authorization.lower().startswith(_BEARER):
            return None
        return self._keys.caller_of(authorization[len(_BEARER) :].strip())

    def check_origin(self, host: str | None, origin: str | None) -> None:
        """PermissionDeniedError, where no keys are asked for, for a request that came by a name that is not this machine's."""
        if self._keys is not None:
            return
        if host is not None and not is_loopback(_host_of(f"//{host}")):
            raise PermissionDeniedError(f"Host: expected localhost or a loopback address, found {host!r}")
        if origin is not None and not is_loopback(_host_of(origin)):
            raise PermissionDeniedError(f"Origin: expected a page of this machine, found {origin!r}")


@lru_cache(_KNOWN_HOSTS)
def is_loopback(host: str) -> bool:
    """Whether a name is this machine's own, reached from nowhere else."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_keys_required(host: str, *, require_keys: bool | None) -> bool:
    """Whether keys are asked for: always, unless the service is bound to a loopback address and that is not asked for."""
    if require_keys is None:
        return not is_loopback(host)
    if not require_keys and not is_loopback(host):
        raise InvalidError(f"require_keys: API keys can be off only on a loopback address, found host {host!r}")
    return require_keys


@lru_cache(_KNOWN_HOSTS)
def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
