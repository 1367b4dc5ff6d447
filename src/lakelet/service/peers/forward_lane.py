"""Records on their way to the node that owns them: one call for all that wait.

While a call runs, further records wait; the next one takes them all. A record is sent at most once: where no connection could be
made it is written here, where a call has no answer the outcome is unknown, and the client is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import msgspec

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.hybrid_clock import HybridClock
from lakelet.error_codes import ERROR_CODES
from lakelet.errors import InternalError, OutcomeUnknownError, OverloadedError
from lakelet.protos.message_types import PEER, message_class
from lakelet.service.values import WriteRequest, WriteResult

_LOG = logging.getLogger(__name__)
_KINDS = {codes.code: kind for kind, codes in ERROR_CODES.items()}
# The code of a node that takes no records: it starts or stops.
NOT_TAKEN = "not-taken"
_MOST_TOGETHER = 1_000
_CONNECT_SECONDS = 0.5
_SECONDS = 30.0


class NotSentError(Exception):
    """The node was not reached, or takes no records: nothing of this one was done."""


@dataclass(slots=True)
class _Unit:
    request: WriteRequest
    caller: str
    answer: asyncio.Future[WriteResult]


class ForwardLane:
    """The way to one node; used on the event loop alone."""

    def __init__(
        self,
        node: ClusterNode,
        channel: grpc.aio.Channel,
        metadata: tuple[tuple[str, str], ...],
        order: HybridClock,
        epoch: Callable[[], int],
    ) -> None:
        self._node = node
        self._channel = channel
        self._metadata = metadata
        self._order = order
        self._epoch = epoch
        self._waiting: list[_Unit] = []
        self._running: asyncio.Task[None] | None = None
        self._call: Callable[..., Any] = channel.unary_unary(
            f"/{PEER}/ForwardWrites",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class("lakelet.peer.v1.ForwardWritesResponse").FromString,
        )

    async def write(self, request: WriteRequest, caller: str) -> WriteResult:
        """Have the node write a record. NotSentError where it was not reached, OutcomeUnknownError where it did not answer."""
        loop = asyncio.get_running_loop()
        unit = _Unit(request, caller, loop.create_future())
        self._waiting.append(unit)
        if self._running is None:
            self._running = loop.create_task(self._run())
        return await unit.answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:_MOST_TOGETHER], self._waiting[_MOST_TOGETHER:]
                try:
                    outcomes = await self._outcomes(group)
                except (Exception, asyncio.CancelledError) as error:
                    # Its channel is closed in the middle, or before: whoever waits is answered all the same.
                    outcomes = [self._unknown(type(error).__name__) for _ in group]
                for unit, outcome in zip(group, outcomes, strict=True):
                    # The request may have been given up meanwhile.
                    if unit.answer.done():
                        continue
                    if isinstance(outcome, WriteResult):
                        unit.answer.set_result(outcome)
                    else:
                        unit.answer.set_exception(outcome)
        finally:
            self._running = None

    async def _outcomes(self, group: Sequence[_Unit]) -> Sequence[WriteResult | Exception]:
        if not await self._is_connected():
            return [NotSentError() for _ in group]
        try:
            message = self._message(group)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            # What has no JSON is written where it is.
            _LOG.debug("records are not forwarded: %s", error)
            return [NotSentError() for _ in group]
        try:
            found = await self._call(message, timeout=_SECONDS, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            _LOG.warning("node %s at %s: %s %s", self._node.id, self._node.address, error.code().name, error.details())
            return [self._unknown(error.code().name) for _ in group]
        self._order.observe(found.clock)
        if len(found.results) != len(group):
            return [self._unknown("another number of answers") for _ in group]
        return [_outcome(one) for one in found.results]

    async def _is_connected(self) -> bool:
        """Whether there is a connection; one is waited for a moment."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._channel.channel_ready()
        except TimeoutError:
            return False
        return True

    def _message(self, group: Sequence[_Unit]) -> Any:
        made = message_class("lakelet.peer.v1.ForwardedWrite")
        writes = [
            made(
                table=unit.request.table,
                id=unit.request.record.id,
                timestamp_us=unit.request.record.timestamp_us,
                payload=msgspec.json.encode(unit.request.record.payload),
                caller=unit.caller,
                idempotency_key=key.key if (key := unit.request.idempotency_key) else "",
                fingerprint=key.fingerprint if key else b"",
                is_first=key.is_first if key else False,
            )
            for unit in group
        ]
        made = message_class("lakelet.peer.v1.ForwardWritesRequest")
        return made(writes=writes, clock=self._order.last, epoch=self._epoch())

    def _unknown(self, why: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"node {self._node.id}, which the record was sent to, did not answer ({why}): it may be written or not"
        )


def _outcome(result: Any) -> WriteResult | Exception:
    if not result.code:
        return WriteResult(1, result.rest_values, repeated=result.repeated_request)
    if result.code == NOT_TAKEN:
        return NotSentError()
    kind = _KINDS.get(result.code, InternalError)
    if kind is OverloadedError:
        return OverloadedError(result.message, retry_after_seconds=result.retry_after_seconds)
    return kind(result.message)
