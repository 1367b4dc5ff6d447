"""A table whose logs are copied to nodes without a network: every call, or its answer, can be lost, and a process end there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from lakelet.clock import SystemClock
from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.held_copy import HeldCopy, held_copies
from lakelet.cluster.replica_records import ReplicaRecords
from lakelet.commit.metadata.table_identity import table_identity
from lakelet.errors import LakeletError
from lakelet.format.wal.wal_group import WalKey
from lakelet.ids import RandomIds
from lakelet.realtime.open import open_writer, recover_table
from lakelet.realtime.row_writer import RowWriter
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.key_file import kept_keys
from lakelet.service.replicas.held_logs import HeldLogs
from lakelet.service.replicas.log_link import LoggedTable, LogLink
from lakelet.service.replicas.replica_calls import NotCopiedError
from tests.unit.realtime.written_table import WrittenTable, kill

ORIGIN = "origin"
Fault = Callable[[str, str], None]


class DirectCalls:
    """Calls that go to the copies of nodes in this process."""

    def __init__(self, held: dict[str, HeldLogs]) -> None:
        self._held = held
        # Called with the id of a node and a point of time, such as "before append"; raises what happens there.
        self.fault: Fault = lambda node, point: None

    def open(self, node: ClusterNode, origin: str, token: str, identity: str, table: str) -> None:
        self._call(node, "open", lambda held: held.open(origin, token, identity, table))

    def append(
        self, node: ClusterNode, origin: str, token: str, number: int, offset: int, data: bytes, *, durable: bool
    ) -> DirectCalls:
        self._call(node, "append", lambda held: held.append(origin, token, number, offset, data, durable=durable))
        return self

    def wait(self) -> None: ...

    def drop_logs(self, node: ClusterNode, origin: str, token: str, through: int, keys: Sequence[WalKey]) -> None:
        self._call(node, "drop_logs", lambda held: held.drop_logs(origin, token, through, keys))

    def drop(self, node: ClusterNode, origin: str, token: str) -> None:
        self._call(node, "drop", lambda held: held.drop(origin, token))

    def _call(self, node: ClusterNode, method: str, work: Callable[[HeldLogs], None]) -> None:
        self.fault(node.id, f"before {method}")
        try:
            work(self._held[node.id])
        except (LakeletError, KeyError) as error:
            raise NotCopiedError(str(error)) from error
        self.fault(node.id, f"after {method}")


class FixedNodes:
    """The nodes that hold copies, in this order."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = list(ids)
        self.marks = 0

    def mark(self) -> None:
        self.marks += 1

    def usable(self) -> dict[str, ClusterNode]:
        return {id: ClusterNode(id, "127.0.0.1:1") for id in self.ids}

    def candidates(self, folder: str) -> list[ClusterNode]:
        return list(self.usable().values())

    def avoid(self, id: str) -> None:
        """Keep the order: tests say who fails."""


class CopiedTable(WrittenTable):
    """`d.t` without a primary key, so that a row that is applied twice is seen."""

    def __init__(self, folder: Path, ids: Sequence[str] = ("p", "q")) -> None:
        super().__init__(folder, key=(), options={"bucket": "-1"})
        self.held = {id: HeldLogs(str(folder / f"wal-{id}"), SystemClock()) for id in ids}
        self.nodes = FixedNodes(ids)
        self.calls = DirectCalls(self.held)
        self.records = ReplicaRecords(self.table.home.store)
        self.identity = table_identity(self.table.home)
        self.link: LogLink | None = None
        self.part_bytes = 1 << 20

    def copied_writer(self) -> RowWriter:
        """A writer of the origin."""
        logged = LoggedTable(ORIGIN, self.identity, "d.t", Path(wal_path(self.logs, self.identity)).name)
        nodes, calls = self.nodes, self.calls
        self.link = LogLink(
            logged,
            nodes,  # type: ignore[arg-type]
            calls,  # type: ignore[arg-type]
            self.records,
            SystemClock(),
            RandomIds(),
            self.part_bytes,
            lambda: None,
            partial(kept_keys, wal_path(self.logs, self.identity), SystemClock()),
        )
        self.link_seconds(0.0)
        return open_writer(self.table.home, self.logs, None, self.link)

    def link_seconds(self, seconds: float) -> None:
        """How long a link that failed is not tried again."""
        assert self.link is not None
        self.link.retry_seconds = seconds

    def copies(self, id: str) -> list[HeldCopy]:
        """What a node holds."""
        return list(held_copies(str(self.folder / f"wal-{id}" / "replicas")))

    def adopt(self, id: str) -> int:
        """Have a node commit what it holds, as far as it counts; how many copies did."""
        adopted = 0
        for copy in self.copies(id):
            self.held[id].close_copy(copy)
            record = self.records.adopt(copy.origin, copy.folder, copy.token)
            if record is not None:
                recover_table(self.table.home, copy.root)
                self.records.end_adoption(record)
                adopted += 1
            copy.delete()
        return adopted

    def ids(self) -> list[int]:
        """The committed ids, each as often as it is there."""
        return [row[0] for row in self.rows()]


def end(writer: RowWriter) -> None:
    """End the process of a writer."""
    writer._copy = None
    with suppress(LakeletError, OSError):
        kill(writer)


def row(id: int) -> dict[str, object]:
    return {"id": id, "v": "x", "x": 1.0}
