"""A crash at every storage call of the statements that make, change and empty tables."""

import pytest

from lakelet.catalog.lake import Lake
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.sql.session import Session
from tests.crash.operations import Action, Operation, rows
from tests.crash.test_crash import crash_everywhere
from tests.crash.warehouse import TABLE, prepared


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
