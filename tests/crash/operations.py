"""Every operation that changes a warehouse, each with the state it starts from and how a caller repeats it."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.errors import AlreadyExistsError, InvalidError, LakeletError, NotFoundError
from lakelet.table import Table
from tests.crash.warehouse import TABLE

USER = "job"
Action = Callable[[Lake], object]


@dataclass(frozen=True, slots=True)
class Operation:
    """`run` on the warehouse that `prepare` makes.

    `again` is how a caller repeats it (None: the same way); errors in `refusals` tell such a caller that the first run had
    its effect. `between` makes the states that an interrupted run may leave as well.
    """

    name: str
    prepare: Action
    run: Action
    again: Action | None = None
    refusals: tuple[type[LakeletError], ...] = ()
    between: tuple[Action, ...] = ()

    def repeat(self, lake: Lake) -> object:
        """Runs it once more."""
        return (self.again or self.run)(lake)


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    """Rows of the test table."""
    return pa.table(
        {
            "id": pa.array([pair[0] for pair in pairs], pa.int64()),
            "p": pa.array([pair[1] for pair in pairs], pa.string()),
        }
    )


def _database(lake: Lake) -> None:
    lake.create_database("d")


def _create(lake: Lake, **arguments: object) -> Table:
    return lake.create_table(TABLE, [("id", "BIGINT"), ("p", "STRING")], **arguments)  # type: ignore[arg-type]


def _plain(lake: Lake) -> None:
    _database(lake)
    _create(lake).write(rows((1, "a"), (2, "b")))
    lake.table(TABLE).write(rows((3, None)))


def _partitioned(lake: Lake) -> None:
    _database(lake)
    _create(lake, partitioned_by=["p"]).write(rows((1, "a"), (2, "b"), (3, None)))
    lake.table(TABLE).write(rows((4, "a")))


def _marked(lake: Lake) -> None:
    """A table of which a row is marked in a deletion vector."""
    _database(lake)
    table = _create(lake, options={"deletion-vectors.enabled": "true"})
    table.write(rows((1, "a"), (2, "b"), (3, "c")))
    table.write(rows((4, "a"), (5, "b")))
    table.delete(where="id = 2")


def _empty(lake: Lake) -> None:
    _database(lake)
    _create(lake)


def _many_manifests(lake: Lake) -> None:
    _database(lake)
    table = _create(lake, partitioned_by=["p"], options={"manifest.merge-min-count": 3})
    for number in range(3):
        table.write(rows((number, "a")))


def _many_removals(lake: Lake) -> None:
    _database(lake)
    table = _create(lake, options={"manifest.full-compaction-threshold-size": "1 b", "manifest.merge-min-count": 100})
    table.write(rows((1, "a"), (2, "b")))
    table.write(rows((3, "c")), mode="overwrite")


def _json_manifests(lake: Lake) -> None:
    _plain(lake)
    lake.table(TABLE).set_options({"manifest.format": "json"})


def _nested(lake: Lake) -> None:
    _database(lake)
    table = lake.create_table(TABLE, [("id", "INT NOT NULL"), ("r", "ROW<a INT, b STRING>")])
    table.write(pa.table({"id": pa.array([1], pa.int32()), "r": [{"a": 1, "b": "x"}]}))


def _write(data: pa.Table, identifier: int | None = 7, **arguments: object) -> Action:
    user = USER if identifier is not None else None
    return lambda lake: lake.table(TABLE).write(data, commit_user=user, commit_identifier=identifier, **arguments)  # type: ignore[arg-type]


def _alter(change: Callable[[Table], object]) -> Action:
    return lambda lake: change(lake.table(TABLE))


def _two_phases(lake: Lake) -> None:
    table = lake.table(TABLE)
    messages = []
    for part in (rows((10, "a"), (11, "c")), rows((12, "a"))):
        with table.new_write() as write:
            write.write(part)
            messages += pickle.loads(pickle.dumps(write.prepare_commit()))
    table.new_commit(USER, 7).commit(messages)


def _write_and_abort(lake: Lake) -> None:
    table = lake.table(TABLE)
    write = table.new_write()
    write.write(rows((10, "a"), (11, "c")))
    table.new_commit(USER, 7).abort(write.prepare_commit())


def _without_snapshots(lake: Lake) -> None:
    """What a drop leaves that was interrupted after its first step: a table without rows."""
    folder = f"{TABLE.replace('.', '.db/')}/snapshot"
    lake._store.delete_folder(folder)


_DONE = (AlreadyExistsError, InvalidError, NotFoundError)

OPERATIONS = (
    Operation(
        "create_database", lambda lake: None, _database, lambda lake: lake.create_database("d", if_not_exists=True)
    ),
    Operation("create_table", _database, _create, lambda lake: _create(lake, if_not_exists=True)),
    Operation("first_write", _empty, _write(rows((10, "a")))),
    Operation("append", _plain, _write(rows((10, "a"), (11, None)))),
    Operation("append_by_nobody", _plain, _write(rows((10, "a")), identifier=None)),
    Operation("append_partitioned", _partitioned, _write(rows((10, "a"), (11, "c"), (12, None)))),
    Operation("append_json_manifests", _json_manifests, _write(rows((10, "a")))),
    Operation("append_merging_manifests", _many_manifests, _write(rows((10, "a")))),
    Operation("append_merging_all_manifests", _many_removals, _write(rows((10, "a")))),
    Operation("overwrite", _plain, _write(rows((10, "a")), mode="overwrite")),
    Operation("overwrite_with_nothing", _plain, _write(rows(), mode="overwrite")),
    Operation("overwrite_static", _partitioned, _write(rows((10, "a")), mode="overwrite", partition={"p": "a"})),
    Operation(
        "overwrite_null_partition", _partitioned, _write(rows((10, None)), mode="overwrite", partition={"p": None})
    ),
    Operation("overwrite_dynamic", _partitioned, _write(rows((10, "a"), (11, "c")), mode="overwrite_partitions")),
    Operation("delete", _plain, lambda lake: lake.table(TABLE).delete(where="id = 1")),
    Operation(
        "delete_by_user",
        _partitioned,
        lambda lake: lake.table(TABLE).delete(where="id IN (1, 2)", commit_user=USER, commit_identifier=7),
    ),
    Operation("mark", _marked, lambda lake: lake.table(TABLE).delete(where="id IN (3, 4)")),
    Operation(
        "mark_by_user",
        _marked,
        lambda lake: lake.table(TABLE).delete(where="id IN (3, 4)", commit_user=USER, commit_identifier=7),
    ),
    Operation("two_phases", _partitioned, _two_phases),
    Operation("abort", _partitioned, _write_and_abort),
    Operation("add_column", _plain, _alter(lambda t: t.add_column("c", "INT", default=5)), refusals=_DONE),
    Operation("add_nested_column", _nested, _alter(lambda t: t.add_column("r.c", "INT", after="a")), refusals=_DONE),
    Operation("rename_column", _plain, _alter(lambda t: t.rename_column("p", "q")), refusals=_DONE),
    Operation("drop_column", _plain, _alter(lambda t: t.drop_column("p")), refusals=_DONE),
    Operation("change_type", _nested, _alter(lambda t: t.change_type("id", "BIGINT NOT NULL"))),
    Operation("change_nullability", _nested, _alter(lambda t: t.change_nullability("id", nullable=True))),
    Operation("change_column_comment", _plain, _alter(lambda t: t.change_column_comment("p", "why"))),
    Operation("change_default", _plain, _alter(lambda t: t.change_default("p", "none"))),
    Operation("move_column", _plain, _alter(lambda t: t.move_column("p", first=True))),
    Operation("change_comment", _plain, _alter(lambda t: t.change_comment("why"))),
    Operation("set_options", _plain, _alter(lambda t: t.set_options({"target-file-size": "1 mb"}))),
    Operation("reset_options", _json_manifests, _alter(lambda t: t.reset_options(["manifest.format"]))),
    Operation("rename_table", _plain, lambda lake: lake.rename_table(TABLE, "d.u"), refusals=_DONE),
    Operation(
        "drop_table",
        _partitioned,
        lambda lake: lake.drop_table(TABLE),
        lambda lake: lake.drop_table(TABLE, if_exists=True),
        between=(_without_snapshots,),
    ),
    Operation(
        "drop_database",
        _plain,
        lambda lake: lake.drop_database("d", cascade=True),
        lambda lake: lake.drop_database("d", cascade=True, if_exists=True),
        between=(_without_snapshots, lambda lake: lake.drop_table(TABLE)),
    ),
)
