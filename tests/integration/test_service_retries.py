"""`lakelet serve` killed under clients that send again what was not answered: every row is there once, every batch whole."""

import random
import signal
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from lakelet.client import Client, RepeatPolicy
from tests.services.server import free_ports
from tests.services.serving import PATIENCE_SECONDS as _PATIENCE_SECONDS
from tests.services.serving import Served, ids_in, serving

_SEED = 20261118
_ROUNDS = 5
_CLIENTS = 4
_PER_ROUND = 150
_MOMENT = "2026-01-31T10:00:00Z"
# As often as it takes for the next process to listen.
_PATIENT = RepeatPolicy(attempts=100_000, first_wait_seconds=0.02, longest_wait_seconds=0.5)


class Writers:
    """Clients that write records of their own, single ones and batches, until they are told to stop."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._counted = threading.Condition()
        self._stop = threading.Event()
        self.acknowledged: list[str] = []
        self.sent: list[str] = []
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(_CLIENTS)]
        for thread in self._threads:
            thread.start()

    def wait_for(self, count: int) -> None:
        with self._counted:
            assert self._counted.wait_for(lambda: len(self.acknowledged) >= count or self.errors, _PATIENCE_SECONDS)
        assert not self.errors, self.errors

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors, self.errors

    def _run(self, number: int) -> None:
        try:
            with Client(self._address, repeats=_PATIENT, timeout_seconds=_PATIENCE_SECONDS) as client:
                count = 0
                while not self._stop.is_set():
                    self._write(client, [f"{number}-{count}-{place}" for place in range(1 if number % 2 else 25)])
                    count += 1
        except BaseException as error:
            with self._counted:
                self.errors.append(error)
                self._counted.notify_all()

    def _write(self, client: Client, ids: list[str]) -> None:
        with self._counted:
            self.sent += ids
        if len(ids) == 1:
            answer = client.write("t", ids[0], _MOMENT, {"n": 1})
        else:
            answer = client.write_many("t", [{"id": id, "timestamp": _MOMENT, "payload": {"n": 2}} for id in ids])
        assert answer.written == len(ids)
        with self._counted:
            self.acknowledged += ids
            self._counted.notify_all()


def test_clients_that_send_again_write_every_row_once(tmp_path: Path) -> None:
    chance = random.Random(_SEED)
    (port,) = free_ports(1)
    with ExitStack() as stack:
        served = stack.enter_context(serving(tmp_path, "--port", str(port)))
        with Client(served.address) as client:
            client.create_table("t", buffer_size=200, flush_interval_seconds=1)
        writers = Writers(served.address)
        stack.callback(writers._stop.set)
        for _ in range(_ROUNDS):
            writers.wait_for(len(writers.acknowledged) + _PER_ROUND)
            threading.Event().wait(chance.random() / 10)
            served.process.kill()
            served.process.wait()
            served = _next(stack, tmp_path, port)
        writers.wait_for(len(writers.acknowledged) + _PER_ROUND)
        writers.finish()
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(_PATIENCE_SECONDS) == 0
    # Each request was answered in the end: what is there is what was sent, neither more nor less.
    assert Counter(ids_in(tmp_path)) == Counter(writers.sent) == Counter(writers.acknowledged)


def _next(stack: ExitStack, folder: Path, port: int) -> Served:
    return stack.enter_context(serving(folder, "--port", str(port)))
