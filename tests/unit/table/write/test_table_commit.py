"""Commits are checked before anything is written: no snapshot that cannot be read, no raw error."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError
from lakelet.format.metadata.snapshot_json import decode_snapshot
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table

ROWS = pa.table({"id": [1, 2]})
NAN = float("nan")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> Table:
    lake = Lake(store)
    lake.create_database("d")
    made = lake.create_table("d.t", [("id", "BIGINT")])
    made.write(ROWS)
    return made


def paths(store: MemoryStore) -> list[str]:
    return [info.path for info in store.list("")]


BAD: dict[str, tuple[dict[str, object], str]] = {
    "watermark as text": ({"watermark": "x"}, "watermark: expected a whole number, found 'x'"),
    "watermark with a fraction": ({"watermark": 1.5}, "watermark: expected a whole number"),
    "watermark as truth": ({"watermark": True}, "watermark: expected a whole number"),
    "watermark too great": ({"watermark": 2**63}, "watermark 9223372036854775808: expected .* 64 bits"),
    "watermark too small": ({"watermark": -(2**63) - 1}, "expected .* 64 bits"),
    "properties as text": ({"properties": "a=b"}, "properties: expected a mapping of text to text, found str"),
    "property as a number": ({"properties": {"a": 1}}, "property 'a': expected text, found 1"),
    "property of none": ({"properties": {"a": None}}, "property 'a': expected text, found None"),
    "property name as a number": ({"properties": {1: "a"}}, "name of a property: expected text, found 1"),
    "half a pair in a property": ({"properties": {"a": "\ud800"}}, "property 'a': .* is not valid Unicode"),
    "user as a number": ({"commit_user": 7, "commit_identifier": 1}, "commit user: expected text, found 7"),
    "user of no letters": ({"commit_user": "", "commit_identifier": 1}, "needs both a user and an identifier"),
    "half a pair in the user": ({"commit_user": "\udfff", "commit_identifier": 1}, "commit user: .* not valid Unicode"),
    "identifier as text": (
        {"commit_user": "u", "commit_identifier": "7"},
        "commit identifier: expected a whole number",
    ),
    "identifier as truth": ({"commit_user": "u", "commit_identifier": True}, "commit identifier: expected a whole"),
    "identifier with a fraction": ({"commit_user": "u", "commit_identifier": 1.0}, "expected a whole number"),
    "identifier below 0": ({"commit_user": "u", "commit_identifier": -1}, "expected 0 to"),
    "identifier of batch commits": ({"commit_user": "u", "commit_identifier": 2**63 - 1}, "expected 0 to"),
}


@pytest.mark.parametrize(("arguments", "reason"), BAD.values(), ids=BAD)
def test_what_a_snapshot_cannot_hold_is_refused_before_anything_is_written(
    table: Table, store: MemoryStore, arguments: dict[str, object], reason: str
) -> None:
    before = paths(store)
    with pytest.raises(InvalidError, match=reason):
        table.write(ROWS, **arguments)  # type: ignore[arg-type]
    assert paths(store) == before


def test_the_same_in_two_phases(table: Table, store: MemoryStore) -> None:
    before = paths(store)
    with pytest.raises(InvalidError, match="watermark"):
        table.new_commit().watermark("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="property"):
        table.new_commit().properties({"a": 1})  # type: ignore[dict-item]
    with pytest.raises(InvalidError, match="cannot commit a NoneType"):
        table.new_commit().commit([None])  # type: ignore[list-item]
    assert paths(store) == before


def test_numbers_of_numpy_are_numbers(table: Table, store: MemoryStore) -> None:
    made = table.write(
        ROWS, commit_user="u", commit_identifier=np.int64(3), watermark=np.int32(5), properties={"a": "ä"}
    )
    assert made is not None
    stored = decode_snapshot(store.get(f"d.db/t/snapshot/snapshot-{made.id}"), path="")
    assert (stored.commit_identifier, stored.watermark, stored.properties) == (3, 5, {"a": "ä"})
    last = table.write(ROWS, watermark=2**63 - 1)
    assert last is not None
    assert last.watermark == 2**63 - 1


ALTERED: dict[str, Callable[[Table], object]] = {
    "comment of the table": lambda table: table.change_comment(5),  # type: ignore[arg-type]
    "comment of column 'id'": lambda table: table.change_column_comment("id", b"x"),  # type: ignore[arg-type]
    "comment of column 'z'": lambda table: table.add_column("z", "INT", comment=5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("what", "change"), ALTERED.items(), ids=ALTERED)
def test_comments_are_text(table: Table, store: MemoryStore, what: str, change: Callable[[Table], object]) -> None:
    before = paths(store)
    with pytest.raises(InvalidError, match=f"{what}: expected text"):
        change(table)
    assert paths(store) == before
    with pytest.raises(InvalidError, match="comment of the table: expected text"):
        Lake(store).create_table("d.u", [("id", "INT")], comment=5)  # type: ignore[arg-type]
    assert paths(store) == before


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_nan_is_a_partition_of_its_own(kind: str) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT"), ("p", kind)], partitioned_by=["p"])
    table.write([{"id": 1, "p": NAN}, {"id": 2, "p": 0.5}, {"id": 3, "p": None}, {"id": 4, "p": -0.0}])
    table.write([{"id": 5}], mode="overwrite", partition={"p": NAN})
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == [2, 3, 4, 5]
    with pytest.raises(InvalidError, match="there are rows of"):
        table.write([{"id": 7, "p": 0.5}], mode="overwrite", partition={"p": NAN})


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize(("named", "other"), [(0.0, -0.0), (-0.0, 0.0)])
def test_zeros_of_both_signs_are_two_partitions(kind: str, named: float, other: float) -> None:
    lake = Lake(MemoryStore())
    lake.create_database("d")
    table = lake.create_table("d.t", [("id", "BIGINT"), ("p", kind)], partitioned_by=["p"])
    table.write([{"id": 1, "p": named}, {"id": 2, "p": other}, {"id": 3, "p": None}])
    table.write([{"id": 4}], mode="overwrite", partition={"p": named})
    rows = {row["id"]: row["p"] for row in table.scan().to_arrow().to_pylist()}
    assert {number: str(value) for number, value in rows.items()} == {2: str(other), 3: "None", 4: str(named)}
    with pytest.raises(InvalidError, match="there are rows of"):
        table.write([{"id": 5, "p": other}], mode="overwrite", partition={"p": named})
