"""Rollback as an operation."""

import pytest

from lakelet.errors import InvalidError, NotFoundError
from lakelet.operations.rollback import Rollback, roll_back
from lakelet.table import Table
from tests.unit.versioned_table import ids, put


@pytest.mark.parametrize("request_", [Rollback(2), Rollback("two"), Rollback(snapshot_id=2), Rollback(tag="two")])
def test_back_to_a_version_by_its_names(table: Table, request_: Rollback) -> None:
    table.tags.create("two", 2)
    assert roll_back(table, request_) == 2
    assert ids(table) == [1, 2]


def test_back_by_time_and_watermark(table: Table) -> None:
    put(table, 4, watermark=1000)
    put(table, 5, watermark=2000)
    assert roll_back(table, Rollback(watermark_ms=1500)) == 4
    assert roll_back(table, Rollback(timestamp=table.snapshots()[0].time_ms)) == 1
    with pytest.raises(NotFoundError, match="watermark of 10 or less"):
        roll_back(table, Rollback(watermark_ms=10))


@pytest.mark.parametrize(("given", "found"), [({}, "none"), ({"version": 1, "tag": "x"}, "version and tag")])
def test_a_request_names_one_version(given: dict[str, object], found: str) -> None:
    with pytest.raises(InvalidError, match=f"one of version, snapshot and tag; found {found}"):
        Rollback(**given)  # type: ignore[arg-type]
