"""A batch of a stream in an Iceberg table: its identity in the snapshot's summary and in a property set by the same request.

    summary     lakelet.commit-id              "<user>/<batch>"
    property    lakelet.stream.<32 hex digits>  {"user": "job-7", "branch": "main", "batch": 42, "query": "…", "offsets": "…"}

The digits are of the SHA-256 of user and branch. Snapshots expire and take their summaries along; the property stays, so that a
late replay is never applied twice. One request sets both: there is no moment at which only one of them is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata

from lakelet.errors import CorruptionError, InvalidError

_PREFIX = "lakelet.stream."
_DIGITS = 32


@dataclass(frozen=True, slots=True)
class KnownBatch:
    """The last batch of a user that a table has, the query that wrote it and a digest of its offsets, where these are known."""

    batch_id: int
    query_id: str | None
    offsets: str | None


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The user and the number of a batch. A batch is applied once, and numbers rise."""

    user: str
    batch_id: int
    query_id: str | None = None
    offsets: str | None = None

    def __post_init__(self) -> None:
        if not self.user or self.batch_id < 0:
            raise InvalidError(f"a batch needs a user and a number from 0 on, found {self.user!r} and {self.batch_id}")

    @property
    def commit_id(self) -> str:
        """The id of the commit in the snapshot's summary."""
        return f"{self.user}/{self.batch_id}"

    def properties(self, branch: str) -> dict[str, str]:
        """What the request that commits the batch sets."""
        found = {
            "user": self.user,
            "branch": branch,
            "batch": self.batch_id,
            "query": self.query_id,
            "offsets": self.offsets,
        }
        return {_name(self.user, branch): json.dumps(found, ensure_ascii=False)}

    def known(self, metadata: TableMetadata, branch: str) -> KnownBatch | None:
        """The user's last batch on a branch, None where there is none."""
        properties: Mapping[str, str] = metadata.properties
        text = properties.get(_name(self.user, branch))
        if text is None:
            return None
        try:
            found = json.loads(text)
            query, offsets = found.get("query"), found.get("offsets")
            return KnownBatch(
                int(found["batch"]),
                None if query is None else str(query),
                None if offsets is None else str(offsets),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptionError(
                f"table property {_name(self.user, branch)}: expected the last batch of a stream, found {text!r}"
            ) from error


def _name(user: str, branch: str) -> str:
    digest = hashlib.sha256(f"{branch}\0{user}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_PREFIX}{digest[:_DIGITS]}"
