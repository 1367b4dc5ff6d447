"""Random requests under idempotency keys, repeats, flushes, crashes inside of a write and restarts, against a dict."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.tiers.examples import examples
from tests.unit.realtime.written_table import kill
from tests.unit.service.served_lake import MORNING, ServedLake

KEYS = st.sampled_from(["k1", "k2", "k3", "K1"])
BODIES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4)


class KeyedRequests(RuleBasedStateMachine):
    """A table without a primary key: a row that is written twice is there twice."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.rows: Counter[str] = Counter()
        self.known: dict[str, tuple[list[str], dict[str, Any]]] = {}
        self.served = self._started()

    def _started(self) -> ServedLake:
        made = ServedLake(Path(self.folder.name))
        made.__enter__()
        return made

    @initialize(properties=st.sampled_from([{}, {"primary_key": "id, timestamp"}]))
    def create(self, properties: dict[str, str]) -> None:
        self.is_keyed = bool(properties)
        self.served.create("t", properties=properties)

    def _send(self, key: str | None, ids: list[str]) -> Any:
        records = [{"id": id, "timestamp": MORNING, "payload": {"n": len(ids)}} for id in ids]
        path = "/v1/data/batch?table=t"
        body: Any = records
        if len(ids) == 1:
            path, body = "/v1/data", {"table": "t", **records[0]}
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.served.request("POST", path, content=json.dumps(body), headers=headers)

    @rule(key=st.none() | KEYS, ids=BODIES)
    def write(self, key: str | None, ids: list[str]) -> None:
        answer = self._send(key, ids)
        first = None if key is None else self.known.get(key)
        if first is not None and first[0] != ids:
            assert (answer.status_code, answer.json()["code"]) == (409, "already-exists")
        elif first is not None:
            assert answer.json() == {**first[1], "repeated": True}
        else:
            assert answer.json()["written"] == len(ids)
            self.rows.update(ids)
            if key is not None:
                self.known[key] = (ids, answer.json())

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.known)))
        ids, answer = self.known[key]
        assert self._send(key, ids).json() == {**answer, "repeated": True}

    @rule()
    def flush(self) -> None:
        writer = self.served.service.tables.open("t").writer
        if writer is not None:
            writer.flush()

    @rule()
    def restart(self) -> None:
        self.served.__exit__()
        self.served = self._started()

    @rule(key=KEYS, ids=BODIES, share=st.floats(0, 1, exclude_max=True))
    def crash_inside_of_a_write(self, key: str, ids: list[str], share: float) -> None:
        """A request whose bytes are in the log in part when the process dies: it was never answered."""
        writer = self.served.service.tables.open("t").open_writer()
        log, before = writer._log._log, writer._log._log.size
        answer = self._send(key, ids)
        same, after = writer._log._log is log, log.size
        kill(writer)
        if same and after > before:
            with open(log.path, "r+b") as file:
                file.truncate(before + int((after - before) * share))
        elif key not in self.known:
            # The write went to another log: it is there.
            self.known[key] = (ids, answer.json())
            self.rows.update(ids)
        self.served.__exit__()
        self.served = self._started()

    @rule()
    def look(self) -> None:
        found = Counter(row["id"] for id in "abc" for row in self.served.records("t", id))
        assert found == (Counter(set(self.rows)) if self.is_keyed else self.rows)

    def teardown(self) -> None:
        self.look()
        self.served.__exit__()
        committed = Counter(row["id"] for row in self.served.rows("SELECT id FROM t"))
        assert committed == (Counter(set(self.rows)) if self.is_keyed else self.rows)
        self.folder.cleanup()


TestKeyedRequests = KeyedRequests.TestCase
TestKeyedRequests.settings = settings(
    max_examples=examples(25),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
