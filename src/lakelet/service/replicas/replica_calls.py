"""Calls to the nodes that hold copies of this one's logs, made by the threads that write: the event loop has no part in them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

import grpc

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.errors import LakeletError
from lakelet.format.wal.wal_group import WalKey
from lakelet.protos.message_types import PEER, message_class
from lakelet.service.grpc.rpc_calls import NODE
from lakelet.service.peers.peer_access import PeerAccess

# A node that is slower than that is taken for gone: writes wait for it.
_SECONDS = 5.0
_PING_SECONDS = 2.0
_KEYS_TOGETHER = 5_000
_OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_reconnect_backoff_ms", 1_000)]


class NotCopiedError(Exception):
    """A node did not take what it was sent, or did not say so."""


class Sent(Protocol):
    """Bytes on their way."""

    def wait(self) -> None:
        """Return when they are durable; NotCopiedError where that is not known."""


class ReplicaCalls:
    """Calls to any number of nodes; for any number of threads."""

    def __init__(self, access: PeerAccess, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._access = access
        self._credentials = credentials
        self._lock = threading.Lock()
        self._channels: dict[str, grpc.Channel] = {}

    def open(self, node: ClusterNode, origin: str, token: str, identity: str, table: str) -> None:
        """Begin a copy."""
        copy = _message("CopyName", origin=origin, token=token)
        self._call(
            node, "OpenCopy", _message("OpenCopyRequest", copy=copy, table_identity=identity, table=table)
        ).wait()

    def append(
        self, node: ClusterNode, origin: str, token: str, number: int, offset: int, data: bytes, *, durable: bool
    ) -> Sent:
        """Begin to write bytes of a log."""
        copy = _message("CopyName", origin=origin, token=token)
        request = _message("AppendCopyRequest", copy=copy, log=number, offset=offset, data=data, is_durable=durable)
        return self._call(node, "AppendCopy", request)

    def drop_logs(self, node: ClusterNode, origin: str, token: str, through: int, keys: Sequence[WalKey]) -> None:
        """Have logs that are committed deleted."""
        copy = _message("CopyName", origin=origin, token=token)
        for first in range(0, max(1, len(keys)), _KEYS_TOGETHER):
            part = keys[first : first + _KEYS_TOGETHER]
            made = [_message("CommittedKey", name=one.name, time_ms=one.time_ms, note=one.note) for one in part]
            is_last = first + _KEYS_TOGETHER >= len(keys)
            request = _message("DropLogsRequest", copy=copy, through=through if is_last else 0, keys=made)
            self._call(node, "DropLogs", request).wait()

    def drop(self, node: ClusterNode, origin: str, token: str) -> None:
        """Have a copy deleted."""
        self._call(node, "DropCopy", _message("CopyName", origin=origin, token=token)).wait()

    def answers(self, node: ClusterNode) -> bool:
        """Whether a node is alive at its address."""
        try:
            clock = _message("HybridClock")
            self._call(node, "ExchangeClocks", clock, answer="HybridClock", seconds=_PING_SECONDS).wait()
        except NotCopiedError:
            return False
        return True

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            channels, self._channels = list(self._channels.values()), {}
        for one in channels:
            one.close()

    def _call(
        self, node: ClusterNode, method: str, request: Any, *, answer: str = "CopyResponse", seconds: float = _SECONDS
    ) -> _Call:
        text, called = self._access.authorization, (NODE, node.id)
        try:
            stub = self._channel(node.address).unary_unary(
                f"/{PEER}/{method}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=message_class(f"lakelet.peer.v1.{answer}").FromString,
            )
            metadata = (called,) if text is None else (called, ("authorization", text))
            return _Call(node, stub.future(request, timeout=seconds, metadata=metadata))
        except (grpc.RpcError, ValueError) as error:
            # The channel is closed, or what is sent is too large.
            raise NotCopiedError(f"node {node.id} at {node.address}: {error}") from error

    def _channel(self, address: str) -> grpc.Channel:
        with self._lock:
            found = self._channels.get(address)
            if found is None:
                made, plain = grpc.secure_channel, grpc.Compression.NoCompression
                if self._credentials is None:
                    found = grpc.insecure_channel(address, options=_OPTIONS, compression=plain)
                else:
                    found = made(address, self._credentials, options=_OPTIONS, compression=plain)
                self._channels[address] = found
            return found


class _Call:
    def __init__(self, node: ClusterNode, future: Any) -> None:
        self._node = node
        self._future = future

    def wait(self) -> None:
        node = self._node
        try:
            self._future.result()
        except grpc.RpcError as error:
            raise NotCopiedError(f"node {node.id} at {node.address}: {error.code().name} {error.details()}") from error
        except (grpc.FutureCancelledError, grpc.FutureTimeoutError, LakeletError) as error:
            raise NotCopiedError(f"node {node.id} at {node.address}: {type(error).__name__}") from error


def _message(kind: str, /, **fields: Any) -> Any:
    return message_class(f"lakelet.peer.v1.{kind}")(**fields)
