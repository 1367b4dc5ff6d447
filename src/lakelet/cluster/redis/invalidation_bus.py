"""The invalidation bus of the metadata cache over Redis pub/sub.

    {"bus": "3f2a…", "number": 7, "kind": "data_change", "table": ["lakelet", "shop", "orders", "main"]}

Two threads: one publishes what is sent, so that no commit waits for Redis; one receives. Pub/sub forgets: whoever was not
connected hears nothing of what was sent meanwhile. So the messages of a bus are numbered, and a gap in the numbers, as every new
connection, invalidates the whole catalog: a refresh too many costs time, one too few would leave metadata outdated for as long as
staleness is allowed. Messages are idempotent, a process that restarts has a new bus whose numbers begin anew, and while Redis is
away the cache goes on revalidating its pointers, as it does without a bus.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import redis
import redis.exceptions as redis_errors

from lakelet.cache.bus import InProcessBus, Receiver
from lakelet.cache.invalidation import Invalidation, InvalidationType
from lakelet.cache.keys import TableCacheKey
from lakelet.cluster.cluster_keys import ClusterKeys
from lakelet.cluster.redis.connection import RedisTimes, connect_redis_blocking, redis_problem
from lakelet.ids import Ids, RandomIds

_LOG = logging.getLogger(__name__)
_MOST_WAITING = 10_000
_FAILURES = (redis_errors.RedisError, OSError)
_NOBODY = object()
_NOT_SENT, _NOT_RECEIVED = "invalidations are not sent to other nodes", "invalidations of other nodes are not received"


class RedisBus:
    """An `InvalidationBus` between processes; `close` ends its threads."""

    def __init__(
        self,
        url: str,
        keys: ClusterKeys | None = None,
        *,
        catalogs: Iterable[str] = ("lakelet",),
        times: RedisTimes | None = None,
        ids: Ids | None = None,
        retry_seconds: float = 1.0,
    ) -> None:
        self._url = url
        self._open_client = partial(connect_redis_blocking, url, times)
        self._channel = (keys or ClusterKeys()).invalidations
        self._catalogs = tuple(catalogs)
        self._retry_seconds = retry_seconds
        self._id = (ids or RandomIds()).uuid()
        self._local = InProcessBus()
        self._waiting: queue.Queue[Invalidation | None] = queue.Queue(_MOST_WAITING)
        self._heard: dict[str, int] = {}
        self._is_lost = threading.Event()
        # What was told last of each direction: an outage is a line, and not one a second.
        self._told: dict[str, str] = {}
        self._stopped = threading.Event()
        self.connected = threading.Event()
        self._threads = [
            threading.Thread(target=self._publish, name="lakelet-bus-send", daemon=True),
            threading.Thread(target=self._listen, name="lakelet-bus-receive", daemon=True),
        ]

    def start(self) -> None:
        """Connect, in the background."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Publish what waits if Redis answers, and disconnect."""
        self._stopped.set()
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            _LOG.warning("invalidations were not sent: %d wait for redis", _MOST_WAITING)
        for thread in self._threads:
            thread.join()

    def send(self, invalidation: Invalidation, sender: object) -> None:
        """Tell the other members of this process at once, and those of other processes as soon as Redis takes it."""
        self._local.send(invalidation, sender)
        try:
            self._waiting.put_nowait(invalidation)
        except queue.Full:
            # The number of the next message that is sent tells the others that they missed one.
            self._is_lost.set()
            _LOG.warning("an invalidation of %s was not sent: %d wait for redis", invalidation.table, _MOST_WAITING)

    def join(self, member: object, receiver: Receiver) -> Callable[[], None]:
        """Receive the invalidations that others send, until the function returned is called."""
        return self._local.join(member, receiver)

    def _tell(self, what: str, problem: str) -> None:
        if self._told.get(what) != problem:
            _LOG.warning("%s: %s; metadata is validated as without them", what, problem)
        self._told[what] = problem

    # ------------------------------------------------------------------ the thread that sends

    def _publish(self) -> None:
        number = 0
        client: redis.Redis | None = None
        while True:
            invalidation = self._waiting.get()
            if invalidation is None:
                break
            number += 2 if self._is_lost.is_set() else 1
            self._is_lost.clear()
            try:
                client = client or self._open_client()
                client.publish(self._channel, self._encoded(invalidation, number))
            except _FAILURES as error:
                # Not sent again: the gap in the numbers says more than this message does.
                self._is_lost.set()
                self._tell(_NOT_SENT, redis_problem(error, self._url))
            else:
                self._told.pop(_NOT_SENT, None)
        if client is not None:
            client.close()

    def _encoded(self, invalidation: Invalidation, number: int) -> str:
        table = invalidation.table
        parts = [table.catalog, table.database, table.table, table.branch]
        return json.dumps({"bus": self._id, "number": number, "kind": invalidation.kind.value, "table": parts})

    # ------------------------------------------------------------------ the thread that receives

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                self._receive()
            except _FAILURES as error:
                self._tell(_NOT_RECEIVED, redis_problem(error, self._url))
            self.connected.clear()
            self._stopped.wait(self._retry_seconds)

    def _receive(self) -> None:
        client = self._open_client()
        try:
            subscriber: Any = client
            pubsub = subscriber.pubsub(ignore_subscribe_messages=False)
            pubsub.subscribe(self._channel)
            while not self._stopped.is_set():
                message = pubsub.get_message(timeout=0.2)
                if message is None:
                    continue
                if message["type"] == "subscribe":
                    # From here on nothing is missed; what was sent before may have been.
                    self._heard.clear()
                    self._refresh_all()
                    self._told.pop(_NOT_RECEIVED, None)
                    self.connected.set()
                elif message["type"] == "message":
                    self._take(message["data"])
            pubsub.close()
        finally:
            client.close()

    def _take(self, data: str) -> None:
        try:
            found = json.loads(data)
            bus, number = str(found["bus"]), int(found["number"])
            if bus == self._id:
                return
            catalog, database, table, branch = map(str, found["table"])
            key = TableCacheKey(catalog, database, table, branch)
            invalidation = Invalidation(InvalidationType(found["kind"]), key)
        except (ValueError, KeyError, TypeError) as error:
            _LOG.warning("a message of the bus cannot be read, everything is refreshed: %s", error)
            self._refresh_all()
            return
        last = self._heard.get(bus)
        self._heard[bus] = number
        if last is not None and number != last + 1:
            self._refresh_all()
        self._local.send(invalidation, _NOBODY)

    def _refresh_all(self) -> None:
        for catalog in self._catalogs:
            everything = TableCacheKey(catalog, "", "")
            self._local.send(Invalidation(InvalidationType.CATALOG_REFRESH, everything), _NOBODY)
