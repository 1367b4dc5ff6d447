"""How nodes of a cluster know one another: by a secret that all of them are given."""

from __future__ import annotations

import hmac

from lakelet.errors import InvalidError, NotFoundError, UnauthenticatedError
from lakelet.service.access.audit_log import AuditLog
from lakelet.service.access.caller import ADMIN, EVERY_TABLE, Caller
from lakelet.service.access.rate_limits import RateLimit, RateLimits

_SCHEME = "LakeletPeer "
_LEAST_LETTERS = 16
_NODE = Caller("node", {EVERY_TABLE: ADMIN})


class PeerAccess:
    """Checks that a call comes from a node; without a secret, on a loopback address alone, everybody is one."""

    def __init__(self, secret: str | None) -> None:
        self._secret = secret
        # Whoever asked a node for something has been counted and told of there.
        self.limits = RateLimits(RateLimit())
        self.audit: AuditLog | None = None

    @property
    def authorization(self) -> str | None:
        """What a node sends."""
        return None if self._secret is None else _SCHEME + self._secret

    def caller(self, authorization: str | None) -> Caller:
        """The node that calls; UnauthenticatedError for others."""
        expected = self.authorization
        if expected is not None and not hmac.compare_digest((authorization or "").encode(), expected.encode()):
            raise UnauthenticatedError("expected a node of this cluster")
        return _NODE

    def try_caller(self, authorization: str | None) -> Caller | None:
        """The node that calls, None for others."""
        try:
            return self.caller(authorization)
        except UnauthenticatedError:
            return None


def read_secret(path: str | None, *, is_needed: bool) -> str | None:
    """The secret in a file; InvalidError where it is needed and there is none, or where it is easily guessed."""
    if path is None:
        if is_needed:
            raise InvalidError("peer_secret_file: nodes that listen to other machines need a secret of their cluster")
        return None
    try:
        with open(path, encoding="utf-8") as file:
            found = file.read().strip()
    except FileNotFoundError:
        raise NotFoundError(f"peer_secret_file: there is no file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"peer_secret_file: {path} cannot be read: {error}") from None
    if len(found) < _LEAST_LETTERS or not found.isascii() or not found.isprintable():
        raise InvalidError(
            f"peer_secret_file: {path}: expected at least {_LEAST_LETTERS} printable ASCII characters, found {len(found)}"
        )
    return found
