"""Claims of idempotency keys: of all nodes at most one writes a request, and those that come later learn what it has answered.

    own claim held ── all other nodes asked ── one knows the key       its answer is that of the request
                                             ── one writes it          asked again, a moment later
                                             ── none knows it          written here, then the claim is over
                                             ── somebody cannot tell   OutcomeUnknownError, nothing is written

Every node holds its own claim before it asks, so that of two that ask each other at least one is told of the other. While both
only ask, the node with the smaller id goes first: the other has to ask all again. A node answers nothing before it has replayed
its logs, and nobody keeps what others have claimed: a claim that its node forgets in a crash was written, then it is in that
node's log, or it was not. Absent nodes, which may have written it, cannot tell. With a primary key that is no hindrance, for rows
that are written again are there once; nor is it for a request that its client sends for the first time (`claims_of_others`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lakelet.clock import Clock
from lakelet.cluster.membership import Membership
from lakelet.errors import LakeletError, OutcomeUnknownError
from lakelet.format.wal.wal_group import WalKey
from lakelet.protos.message_types import message_class
from lakelet.service.ingest.request_keys import UnitKey
from lakelet.service.peers.claims_of_others import ClaimsOfOthers
from lakelet.service.peers.peers import Peers
from lakelet.service.values import WriteResult

_UNKNOWN, _KNOWN, _BUSY, _FAILED = range(4)
_MOST_TOGETHER = 1_000
_SECONDS = 10.0
# Between two looks at a request that another node writes.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.2

_Place = tuple[str, bytes]


class KeyKeeper(Protocol):
    """What this node itself knows of keys."""

    async def kept_keys(self, table: str, names: Sequence[bytes]) -> Mapping[bytes, WalKey]:
        """The requests of these names that are written here, or by nodes that have left their keys behind."""
        ...

    async def problems(self, tables: Sequence[str]) -> tuple[str, ...]:
        """Why requests for these tables may be known to nodes that cannot be asked. Afterwards this node knows what those knew
        that have left."""
        ...

    async def has_primary_key(self, table: str) -> bool:
        """Whether rows that are written again are there once."""
        ...


@dataclass(slots=True, eq=False)
class _Claim:
    """A request that this node is about to write, or writes."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    is_writing: bool = False
    # Another node goes first: what was answered before does not count.
    has_yielded: bool = False


@dataclass(slots=True)
class _Found:
    """What all other nodes together know of a request."""

    kept: WalKey | None = None
    is_busy: bool = False
    problems: tuple[str, ...] = ()


class KeyClaims:
    """The claims of one node; used on the event loop alone."""

    def __init__(self, members: Membership, peers: Peers, keeper: KeyKeeper, clock: Clock) -> None:
        self._members = members
        self._peers = peers
        self._keeper = keeper
        self._claims: dict[_Place, _Claim] = {}
        self._asking: list[tuple[_Place, bool, asyncio.Future[_Found]]] = []
        self._others = ClaimsOfOthers(clock)
        self._rounds: asyncio.Task[None] | None = None
        self._writes: set[asyncio.Task[WriteResult]] = set()

    async def write(self, table: str, key: UnitKey, write: Callable[[], Awaitable[WriteResult]]) -> WriteResult:
        """Write a request here unless another node has; OutcomeUnknownError where nobody can tell whether one has."""
        # A request that is given up is written all the same: until it is, other nodes are told of it.
        task = asyncio.get_running_loop().create_task(self._written(table, key, write))
        self._writes.add(task)
        task.add_done_callback(self._end)
        return await asyncio.shield(task)

    def _end(self, task: asyncio.Task[WriteResult]) -> None:
        self._writes.discard(task)
        if not task.cancelled():
            # Taken, for the one that waits for it may have given up.
            task.exception()

    async def answers(self, request: Any) -> Any:
        """What this node knows of requests that another one is about to write."""
        busy: set[_Place] = set()
        free: defaultdict[str, list[bytes]] = defaultdict(list)
        for one in request.claims:
            place = (one.table, one.name)
            if not one.is_first:
                self._others.note(place)
            claim = self._claims.get(place)
            if claim is not None and (claim.is_writing or self._members.node.id < request.node):
                busy.add(place)
                continue
            if claim is not None:
                claim.has_yielded = True
            free[one.table].append(one.name)
        known: dict[_Place, WalKey] = {}
        failed: set[str] = set()
        for table, names in free.items():
            try:
                kept = await self._keeper.kept_keys(table, names)
            except LakeletError:
                failed.add(table)
                continue
            known.update(((table, name), one) for name, one in kept.items())
        made = message_class("lakelet.peer.v1.KeyAnswer")
        answers = []
        for one in request.claims:
            place = (one.table, one.name)
            if place in busy:
                answers.append(made(state=_BUSY))
            elif place in known:
                answers.append(made(state=_KNOWN, time_ms=known[place].time_ms, note=known[place].note))
            else:
                answers.append(made(state=_FAILED if one.table in failed else _UNKNOWN))
        nodes = [node.id for node in self._members.nodes()]
        return message_class("lakelet.peer.v1.ClaimKeysResponse")(
            answers=answers, epoch=self._members.epoch, nodes=nodes
        )

    async def _written(self, table: str, key: UnitKey, write: Callable[[], Awaitable[WriteResult]]) -> WriteResult:
        place = (table, key.name)
        while (other := self._claims.get(place)) is not None:
            await other.over.wait()
        claim = self._claims[place] = _Claim()
        try:
            kept = await self._decided(place, key, claim)
            return key.first_answer(kept) if kept is not None else await write()
        finally:
            del self._claims[place]
            claim.over.set()

    async def _decided(self, place: _Place, key: UnitKey, claim: _Claim) -> WalKey | None:
        """What is kept of the request anywhere; None, with the claim writing, where it is to be written here."""
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE
        deadline = loop.time() + _SECONDS
        while True:
            claim.has_yielded = False
            found = await self._asked(place, is_first=key.is_first)
            if found.kept is not None:
                return found.kept
            if found.problems and not found.is_busy and not claim.has_yielded:
                kept = await self._despite(place, key, found.problems)
                if kept is not None:
                    return kept
            if not found.is_busy and not claim.has_yielded:
                claim.is_writing = True
                return None
            if loop.time() >= deadline:
                raise OutcomeUnknownError(
                    f"idempotency key {key.shown!r}: another node has been writing the request for {_SECONDS:g} seconds; nothing "
                    "of it was written here"
                )
            if found.is_busy:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _despite(self, place: _Place, key: UnitKey, problems: Sequence[str]) -> WalKey | None:
        """What this node knows itself; OutcomeUnknownError where it knows nothing, and a second write would double rows."""
        table, name = place
        kept = (await self._keeper.kept_keys(table, [name])).get(name)
        if kept is None and key.is_first and self._others.is_first(place):
            return None
        if kept is None and not await self._keeper.has_primary_key(table):
            raise OutcomeUnknownError(
                f"idempotency key {key.shown!r}: {'; '.join(problems)}: the request may be written there or not, nothing of it "
                "was written here"
            )
        return kept

    # ------------------------------------------------------------------ asking

    async def _asked(self, place: _Place, *, is_first: bool) -> _Found:
        """Ask all other nodes; requests that come while they are asked are the next round."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_Found] = loop.create_future()
        self._asking.append((place, is_first, answer))
        if self._rounds is None:
            self._rounds = loop.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._asking:
                group, self._asking = self._asking[:_MOST_TOGETHER], self._asking[_MOST_TOGETHER:]
                try:
                    found = await self._round([(place, is_first) for place, is_first, _ in group])
                except Exception as error:
                    for _, _, answer in group:
                        answer.set_exception(error)
                else:
                    for (_, _, answer), one in zip(group, found, strict=True):
                        answer.set_result(one)
        finally:
            self._rounds = None

    async def _round(self, asked: Sequence[tuple[_Place, bool]]) -> list[_Found]:
        problems: list[str] = []
        places = [place for place, _ in asked]
        found = [_Found() for _ in places]
        if (unsettled := self._members.unsettled()) is not None:
            problems.append(unsettled)
        answered = {self._members.node.id}
        if self._peers.are_there:
            made = message_class("lakelet.peer.v1.KeyClaim")
            request = message_class("lakelet.peer.v1.ClaimKeysRequest")(
                node=self._members.node.id,
                epoch=self._members.epoch,
                claims=[made(table=table, name=name, is_first=is_first) for (table, name), is_first in asked],
            )
            responses, missing = await self._peers.claim_keys(request)
            answered |= responses.keys()
            problems += missing
            problems += await self._not_known(list(responses.values()))
            for response in responses.values():
                for one, answer in zip(found, response.answers, strict=True):
                    _add(one, answer)
        # After live nodes were asked: one that was dropped from the view meanwhile is found here.
        problems += await self._keeper.problems(list({table for table, _ in places}))
        # Nodes that have come, or come back, meanwhile are asked, too: they are no longer absent.
        is_again = not problems and any(node.id not in answered for node in self._members.nodes())
        for place, one in zip(places, found, strict=True):
            one.is_busy |= is_again
            one.problems = (*problems, *one.problems)
            if one.kept is not None:
                one.kept = WalKey(place[1], one.kept.time_ms, one.kept.note)
        return found

    async def _not_known(self, responses: Sequence[Any]) -> list[str]:
        """The nodes that others know of under a newer ring, and this one does not, also after a look at the registry."""
        if not self._unknown(responses):
            return []
        await self._members.refresh()
        return [f"node {id}, which other nodes know, is not known here" for id in self._unknown(responses)]

    def _unknown(self, responses: Sequence[Any]) -> list[str]:
        epoch, live = self._members.epoch, {node.id for node in self._members.nodes()}
        return sorted({id for one in responses if one.epoch > epoch for id in one.nodes} - live)


def _add(found: _Found, answer: Any) -> None:
    """Add what one node knows."""
    if answer.state == _KNOWN:
        found.kept = WalKey(b"", answer.time_ms, answer.note)
    elif answer.state == _BUSY:
        found.is_busy = True
    elif answer.state != _UNKNOWN:
        found.problems = ("a node cannot look up its keys",)
