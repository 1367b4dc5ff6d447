"""How many storage calls a write of one row makes: on an object store each is a request, on a disk several system calls."""

import pyarrow as pa
import pytest

from lakelet.storage.memory import MemoryStore
from lakelet.testing.instrumented_stores import CountingStore
from tests.crash.warehouse import TABLE, lake_on

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING")]
# The hint, the snapshot it names and the two neighbours of that; the newest schema, the table's identity.
LOOK = {"get": 2, "head": 2}
APPEND = {
    # Schema, identity, hint, snapshot and two lists; before the rows schema and identity; then snapshot and hint again.
    "get": 10,
    "head": 2,
    # The schemas twice, the tags.
    "list_folder": 3,
    "open_output": 1,
    "close": 1,
    # A manifest, two lists, the hint.
    "put": 4,
    "sync": 1,
    "put_if_absent": 1,
}
MOST = {
    "append": ({}, APPEND),
    # The sequence numbers of the bucket: one more look for the newest snapshot, its two lists, and a manifest of each commit.
    "upsert": (
        {"primary_key": ["id"], "options": {"bucket": "1"}},
        {**APPEND, "get": APPEND["get"] + LOOK["get"] + 2 + 3, "head": APPEND["head"] + LOOK["head"]},
    ),
}


@pytest.mark.parametrize("kind", MOST)
def test_a_write_of_one_row_makes_few_storage_calls(kind: str) -> None:
    options, most = MOST[kind]
    counting = CountingStore(MemoryStore())
    lake = lake_on(counting)
    lake.create_database("d")
    table = lake.create_table(TABLE, COLUMNS, **options)  # type: ignore[arg-type]
    for number in range(3):
        table.write(pa.table({"id": [number], "v": ["x"]}))
    counting.reset()
    table.write(pa.table({"id": [3], "v": ["x"]}))
    assert dict(counting.counts()) == most, counting.log


def test_a_deletion_of_one_key_makes_few_storage_calls() -> None:
    counting = CountingStore(MemoryStore())
    lake = lake_on(counting)
    lake.create_database("d")
    table = lake.create_table(TABLE, COLUMNS, primary_key=["id"], options={"bucket": "1"})
    table.write(pa.table({"id": list(range(100)), "v": ["x"] * 100}))
    table.delete([{"id": 1}])
    counting.reset()
    table.delete([{"id": 2}])
    # The schema is asked for by the call, its commit, the attempt and the committer; the row is looked up and read.
    assert dict(counting.counts()) == {**APPEND, "get": 21, "head": 4, "list_folder": 5}, counting.log
