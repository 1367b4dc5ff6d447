"""Random delays where the order of two events of a cluster decides what a query sees."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from lakelet.cluster.node_markers import NodeMarkers
from lakelet.realtime.row_writer import RowWriter
from lakelet.realtime.wal.wal_folder import WalFolder
from lakelet.service.peers.peer_buffers import PeerBuffers
from lakelet.service.tables.registry import TableRegistry
from lakelet.service.tables.served_table import OpenTable
from lakelet.table.write.table_commit import TableCommit

_PLACES: tuple[tuple[type, str], ...] = (
    (RowWriter, "pin"),
    (RowWriter, "close"),
    (WalFolder, "remove"),
    (PeerBuffers, "pinned"),
    (NodeMarkers, "ids"),
    (NodeMarkers, "remove"),
    (OpenTable, "close"),
    (OpenTable, "open_writer"),
    (TableRegistry, "load"),
    (TableCommit, "look_back"),
)
_LONGEST_SECONDS = 0.1


@contextmanager
def delays(chance: random.Random) -> Iterator[None]:
    """Delay these calls, before and after, every third time."""
    with ExitStack() as stack:
        for owner, name in _PLACES:
            stack.enter_context(patch.object(owner, name, _delayed(getattr(owner, name), chance)))
        yield


def _delayed(function: Callable[..., Any], chance: random.Random) -> Callable[..., Any]:
    def delayed(*given: Any, **named: Any) -> Any:
        _pause(chance)
        try:
            return function(*given, **named)
        finally:
            _pause(chance)

    return delayed


def _pause(chance: random.Random) -> None:
    if chance.random() < 0.17:
        time.sleep(chance.random() * _LONGEST_SECONDS)
