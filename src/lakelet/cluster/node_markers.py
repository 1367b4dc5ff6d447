"""Markers in the warehouse: which nodes may have acknowledged rows in their logs that are not committed.

    service/nodes/{id}.json      {"address": "10.0.0.1:50051", "since_ms": 1800000000000, "replicas": 1}

A node writes its marker before it takes records, and deletes it when all of them are committed and it leaves. So a marker without
a live node is that of one that died, whatever happened to Redis meanwhile; only the node itself, a recovery of its logs, or an
administrator deletes it. Nothing is written with a record.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from lakelet.errors import LakeletError, NotFoundError
from lakelet.storage.store import ObjectStore

_LOG = logging.getLogger(__name__)
_FOLDER, _END = "service/nodes", ".json"


@dataclass(frozen=True, slots=True)
class MarkedNode:
    """A node that may have rows which are not committed; with `replicas` all of them are in copies on so many other nodes."""

    id: str
    address: str = ""
    since_ms: int = 0
    replicas: int = 0


class NodeMarkers:
    """The markers of a warehouse; for threads."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def put(self, node: MarkedNode) -> None:
        """Mark a node, durably."""
        text = json.dumps({"address": node.address, "since_ms": node.since_ms, "replicas": node.replicas})
        self.store.put(_path(node.id), text.encode())

    def remove(self, id: str) -> None:
        """Delete the marker of a node, if there is one."""
        self.store.delete([_path(id)])

    def ids(self) -> frozenset[str]:
        """The ids of all marked nodes."""
        names = [one.path.rpartition("/")[2] for one in self.store.list_folder(_FOLDER).files]
        return frozenset(name.removesuffix(_END) for name in names if name.endswith(_END))

    def read(self, id: str) -> MarkedNode:
        """What a marker says; one that cannot be read says that there is a node, and no more."""
        try:
            found = json.loads(self.store.get(_path(id)))
            return MarkedNode(id, str(found["address"]), int(found["since_ms"]), int(found.get("replicas", 0)))
        except NotFoundError:
            return MarkedNode(id)
        except (ValueError, KeyError, TypeError, LakeletError) as error:
            _LOG.warning("the marker of node %s cannot be read: %s", id, error)
            return MarkedNode(id)


def _path(id: str) -> str:
    return f"{_FOLDER}/{id}{_END}"
