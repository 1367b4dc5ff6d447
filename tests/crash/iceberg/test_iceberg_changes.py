"""UPDATE, DELETE and MERGE of an Iceberg table are stopped, or meet an error, at every call of its files and of its catalog: the
rows are those of before or of after, and the same statement then does what it was to do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from lakelet.errors import LakeletError
from tests.crash.iceberg.test_iceberg_commit import Calls, Stopped, calls
from tests.unit.sql.iceberg.changed_iceberg import NAME, START, IcebergSession, filled

__all__ = ["calls"]

# Up to the commit nothing differs, and only some of the stopped statements are done again.
_REPEATED = 8
# Each comes to the same rows when it is done again.
STATEMENTS: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "update": ("UPDATE {} SET v = 7, p = 'c' WHERE s = 'five' OR id = 2", [(2, "c", 7, "two"), (5, "c", 7, "five")]),
    "delete": ("DELETE FROM {} WHERE v = 10 OR p = 'b'", [(1,), (2,), (4,)]),
    "merge": (
        "MERGE INTO {} AS t USING (VALUES (1, 'x'), (3, NULL), (6, 'y')) AS n(i, s) ON t.id = n.i "
        "WHEN MATCHED AND n.s IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET s = n.s "
        "WHEN NOT MATCHED AND n.s IS NOT NULL THEN INSERT VALUES (n.i, 'a', 0, n.s)",
        [(1, "a", 10, "x"), (3,), (6, "a", 0, "y")],
    ),
}


class Copies:
    """A table of which copies are made by naming its metadata anew: what one of them does, the others do not see."""

    def __init__(self, folder: Path) -> None:
        self.sql: IcebergSession = filled(folder, "identity")
        self._numbers = count()

    def new(self) -> str:
        name = f"copy_{next(self._numbers)}"
        library = self.sql.table.library
        library.catalog.register_table(("shop", name), library.metadata_location)
        return f"iceberg.shop.{name}"

    def rows(self, name: str) -> list[tuple[object, ...]]:
        found = self.sql.lake.catalogs.open("iceberg").table(name.removeprefix("iceberg.")).library.scan().to_arrow()
        return sorted(tuple(row[column] for column in ("id", "p", "v", "s")) for row in found.to_pylist())

    def data_files(self) -> set[str]:
        return {path for path in self.sql.files() if path.endswith((".parquet", ".avro"))}


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path)


def _after(kind: str) -> list[tuple[object, ...]]:
    found: dict[object, tuple[object, ...]] = {row[0]: row for row in START}
    for row in STATEMENTS[kind][1]:
        if len(row) == 1:
            del found[row[0]]
        else:
            found[row[0]] = row
    return [found[key] for key in sorted(found, key=repr)]


def _total(copies: Copies, calls: Calls, text: str) -> int:
    name = copies.new()
    with calls.stopping_after(None):
        copies.sql.rows(text.format(name))
    return calls.count


@pytest.mark.parametrize("kind", STATEMENTS)
def test_stopped_at_every_call(kind: str, copies: Copies, calls: Calls) -> None:
    text, after = STATEMENTS[kind][0], _after(kind)
    seen = []
    for last in range(_total(copies, calls, text)):
        name = copies.new()
        with calls.stopping_after(last), pytest.raises((Stopped, LakeletError)):
            copies.sql.rows(text.format(name))
        found = copies.rows(name)
        assert found in (START, after), f"stopped at call {last}"
        seen.append(found == after)
        if found == after or last % _REPEATED == 0:
            copies.sql.rows(text.format(name))
            assert copies.rows(name) == after
    # Stopped early nothing has happened, stopped last everything has.
    assert seen == sorted(seen)
    assert set(seen) == {False, True}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_an_error_at_every_call(kind: str, copies: Copies, calls: Calls) -> None:
    text, after = STATEMENTS[kind][0], _after(kind)
    outcomes = set()
    for bad in range(_total(copies, calls, text)):
        name, before = copies.new(), copies.data_files()
        calls.one = _failing(bad)  # type: ignore[method-assign]
        try:
            with calls.stopping_after(None):
                copies.sql.rows(text.format(name))
        except LakeletError:
            calls.one = lambda: None  # type: ignore[method-assign]
            outcomes.add("error")
            assert copies.rows(name) == START, f"error at call {bad}"
            # Nothing is left of it, unless the error was about removing it.
            assert copies.data_files() == before, f"error at call {bad}"
        else:
            outcomes.add("done")
            assert copies.rows(name) == after
    assert outcomes >= {"error"}
    assert copies.sql.rows(f"SELECT count(*) FROM {NAME}") == [(5,)]


def _failing(bad: int) -> Callable[[], None]:
    """Nothing, call by call, but for one, which fails."""
    numbers = count()

    def one() -> None:
        if next(numbers) == bad:
            raise OSError("the disk is not there")

    return one
