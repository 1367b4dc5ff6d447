"""A crash at every storage call of the statements that make, change and empty tables."""

from contextlib import suppress

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.sql.session import Session
from lakelet.testing.instrumented_stores import CountingStore, CrashStore, SimulatedCrash, changes
from tests.crash.commit.test_crash import crash_everywhere
from tests.crash.operations import Action, Operation, rows
from tests.crash.warehouse import TABLE, copied, fingerprint, lake_on, prepared


def run(*texts: str) -> Action:
    """Runs statements, one after the other."""

    def action(lake: Lake) -> None:
        session = Session(lake)
        try:
            for text in texts:
                session.run(text)
        finally:
            session.close()

    return action


def _filled(lake: Lake) -> None:
    lake.create_database("d")
    table = lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], partitioned_by=["p"])
    table.write(rows((1, "a"), (2, "b"), (3, None), (4, "c")))


_AS_QUERY = "CREATE TABLE d.u AS SELECT range AS n FROM range(5)"
OPERATIONS = (
    Operation(
        "create_table", run("CREATE DATABASE d"), run("CREATE TABLE d.t (id INT)"), refusals=(AlreadyExistsError,)
    ),
    Operation(
        "create_first_table",
        lambda lake: None,
        run("CREATE TABLE t (id INT)"),
        refusals=(AlreadyExistsError,),
        between=(run('CREATE DATABASE "default"'),),
    ),
    # Whoever was cut off finds the rows, or an empty table to drop.
    Operation(
        "create_table_as",
        _filled,
        run(_AS_QUERY),
        again=run("DROP TABLE IF EXISTS d.u", _AS_QUERY),
        between=(run("CREATE TABLE d.u (n BIGINT)"),),
    ),
    Operation("create_table_like", _filled, run("CREATE TABLE d.u LIKE d.t"), refusals=(AlreadyExistsError,)),
    Operation(
        "alter_columns",
        _filled,
        run("ALTER TABLE d.t ADD COLUMNS (x INT, y ROW<z INT> FIRST)"),
        refusals=(InvalidError,),
    ),
    Operation("alter_options", _filled, run("ALTER TABLE d.t SET ('write-only' = 'true', 'comment' = 'x')")),
    Operation(
        "drop_partitions",
        _filled,
        run("ALTER TABLE d.t DROP PARTITION (p = 'a'), PARTITION (p = NULL)"),
        refusals=(NotFoundError,),
    ),
    Operation("truncate", _filled, run("TRUNCATE TABLE d.t")),
    Operation("truncate_partition", _filled, run("TRUNCATE TABLE d.t PARTITION (p = 'b')")),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_crash_at_any_call_leaves_all_or_nothing(operation: Operation) -> None:
    crash_everywhere(operation, prepared(operation.prepare))


OLD = [(1, "a"), (2, "b"), (3, None), (4, "c")]
REPLACEMENTS = {
    # Of the table's own rows, with its history.
    "kept": "CREATE OR REPLACE TABLE d.t PARTITIONED BY (p) AS SELECT id, p, id * 2 AS n FROM d.t",
    # With other keys: a new table in its place.
    "new": "CREATE OR REPLACE TABLE d.t (PRIMARY KEY (id)) AS SELECT id, 'x' AS p, id * 2 AS n FROM range(1, 5) r(id)",
}
NEW = {
    "kept": [(1, "a", 2), (2, "b", 4), (3, None, 6), (4, "c", 8)],
    "new": [(id_, "x", id_ * 2) for id_ in range(1, 5)],
}


def _shown(lake: Lake, name: str) -> list[tuple[object, ...]]:
    found = lake.table(name).scan().to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("kind", REPLACEMENTS)
def test_a_table_that_is_being_replaced_loses_nothing(kind: str) -> None:
    """Whatever call is the last: the new rows are in the table, or all old ones are there, and it can be done again."""
    start = prepared(_filled)
    action = run(REPLACEMENTS[kind])
    counting = CountingStore(copied(start))
    action(lake_on(counting, "run"))
    assert _shown(lake_on(counting), TABLE) == NEW[kind]
    seen = set()
    for call in range(1, counting.changing_calls + 1):
        for after in (False, True):
            store = copied(start)
            with suppress(SimulatedCrash):
                action(lake_on(CrashStore(store, crash_at=call, after=after, only=changes), "run"))
            left = fingerprint(store)
            if left in seen:
                continue
            seen.add(left)
            lake = lake_on(store, "again")
            names = [f"d.{table}" for table in lake.tables("d")]
            rows_of = {name: _shown(lake, name) for name in names}
            is_old = any([row[:2] for row in shown] == OLD for name, shown in rows_of.items() if "__new_" not in name)
            assert is_old or rows_of.get(TABLE) == NEW[kind], f"after call {call}: {rows_of}"
            if TABLE in rows_of or kind == "new":
                action(lake)
                assert _shown(lake, TABLE) == NEW[kind]
    assert len(seen) > 5
