"""The operations of primary-key tables, alone and against a rival that commits in the middle.

A rival is another process: crashes and faults pass it by. It writes under a user of its own, so that it is not repeated.
"""

import pickle
from collections.abc import Callable

import pyarrow as pa

from lakelet.catalog.lake import Lake
from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.storage.decorated import DecoratedStore
from lakelet.table import Table
from tests.crash.operations import USER, Action, Operation
from tests.crash.warehouse import TABLE, CountedIds
from tests.unit.hooked_store import HookedStore

_COLUMNS = [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")]
_FIXED = {"bucket": "2"}
_DYNAMIC = {"dynamic-bucket.target-row-num": "2"}
_DONE = (AlreadyExistsError, InvalidError, NotFoundError)
_START = ((1, "a", 1), (2, "a", 1), (3, "b", 1), (4, "b", 1), (5, "a", 1))
_NEXT = ((2, "a", 2), (4, "b", 2), (6, "a", 2))
_OURS = ((1, "a", 9), (4, "b", 9), (7, "a", 9), (8, "c", 9))
# Races take many calls even with few rows: one key that is there and one that is new, wanted by both.
_CONTESTED = ((1, "a", 1), (2, "a", 1))
_THEIRS = ((1, "a", 5), (3, "a", 5), (4, "a", 5))


def keyed(*rows: tuple[int, str, int]) -> pa.Table:
    """Rows of the test table."""
    types = {"id": pa.int64(), "p": pa.string(), "v": pa.int64()}
    return pa.table({name: pa.array([row[i] for row in rows], types[name]) for i, name in enumerate(types)})


def _create(options: dict[str, str], key: tuple[str, ...] = ("id", "p")) -> Action:
    def create(lake: Lake) -> None:
        lake.create_database("d")
        lake.create_table(TABLE, _COLUMNS, primary_key=list(key), partitioned_by=["p"], options=options)

    return create


def _filled(options: dict[str, str], key: tuple[str, ...] = ("id", "p")) -> Action:
    def fill(lake: Lake) -> None:
        _create(options, key)(lake)
        lake.table(TABLE).write(keyed(*_START))
        lake.table(TABLE).write(keyed(*_NEXT), kinds=["+U", "-D", "+I"])

    return fill


def _across(lake: Lake) -> None:
    _filled(_DYNAMIC, ("id",))(lake)


def _write(*rows: tuple[int, str, int], **arguments: object) -> Action:
    return lambda lake: lake.table(TABLE).write(keyed(*rows), commit_user=USER, commit_identifier=7, **arguments)  # type: ignore[arg-type]


def _two_phases(lake: Lake) -> None:
    """Two writers: of keys with fixed buckets, of partitions with dynamic ones."""
    table = lake.table(TABLE)
    messages = []
    for part in (((1, "a", 9), (7, "a", 9)), ((4, "b", 9), (8, "c", 9))):
        with table.new_write() as write:
            write.write(keyed(*part))
            messages += pickle.loads(pickle.dumps(write.prepare_commit()))
    table.new_commit(USER, 7).commit(messages)


def _write_and_abort(lake: Lake) -> None:
    table = lake.table(TABLE)
    write = table.new_write()
    write.write(keyed(*_OURS))
    table.new_commit(USER, 7).abort(write.prepare_commit())


def _contested(options: dict[str, str], key: tuple[str, ...] = ("id", "p")) -> Action:
    def fill(lake: Lake) -> None:
        _create(options, key)(lake)
        lake.table(TABLE).write(keyed(*_CONTESTED))

    return fill


def _rival(lake: Lake) -> object:
    return lake.table(TABLE).write(keyed(*_THEIRS), commit_user="rival", commit_identifier=1)


def _against(rival: Action, run: Callable[[Table], object]) -> Action:
    """Runs on a store on which the rival comes in before our snapshot is made."""

    def raced(lake: Lake) -> object:
        hooked = HookedStore(lake._store)
        hooked.when = lambda call, path: call == "put" and "manifest-list" in path

        def step_in() -> None:
            store = lake._store._store if isinstance(lake._store, DecoratedStore) else lake._store
            rival(Lake(store, clock=lake._clock, ids=CountedIds("rival")))

        hooked.after = step_in
        return run(Lake(hooked, clock=lake._clock, ids=lake._ids).table(TABLE))

    return raced


def _raced(name: str, prepare: Action, run: Callable[[Table], object]) -> Operation:
    return Operation(name, prepare, _against(_rival, run), between=(_rival,))


def _upsert(table: Table) -> object:
    return table.write(keyed((1, "a", 9), (3, "a", 9)), commit_user=USER, commit_identifier=7)


def _delete(table: Table) -> object:
    return table.delete(keyed((1, "a", 0), (2, "a", 0)), commit_user=USER, commit_identifier=7)


KEYED_OPERATIONS = (
    Operation("keyed_first_write", _create(_DYNAMIC), _write(*_START)),
    Operation("keyed_upsert", _filled(_FIXED), _write(*_OURS, kinds=["-D", "+I", "-U", "U"])),
    Operation("keyed_upsert_dynamic", _filled(_DYNAMIC), _write(*_OURS)),
    Operation("keyed_upsert_across", _across, _write(*_OURS, (2, "c", 9))),
    Operation("keyed_spilled", _filled({**_FIXED, "write-buffer-size": "1 b"}), _write(*_OURS)),
    Operation(
        "keyed_changelog",
        _filled({**_FIXED, "changelog-producer": "input", "write-buffer-size": "1 b"}),
        _write(*_OURS, kinds=["-D", "+I", "-U", "U"]),
    ),
    Operation(
        "keyed_delete_keys",
        _filled(_DYNAMIC),
        lambda lake: lake.table(TABLE).delete(keyed((1, "a", 0), (3, "b", 0), (99, "a", 0))),
    ),
    Operation(
        "keyed_delete_where",
        _filled(_FIXED),
        lambda lake: lake.table(TABLE).delete(where="v = 1 AND id < 5", commit_user=USER, commit_identifier=7),
    ),
    Operation("keyed_overwrite", _filled(_DYNAMIC), _write(*_OURS, mode="overwrite")),
    Operation("keyed_overwrite_static", _filled(_DYNAMIC), _write((1, "a", 9), mode="overwrite", partition={"p": "a"})),
    Operation("keyed_overwrite_static_across", _across, _write((3, "a", 9), mode="overwrite", partition={"p": "a"})),
    Operation("keyed_overwrite_dynamic", _filled(_DYNAMIC), _write((1, "a", 9), mode="overwrite_partitions")),
    Operation("keyed_overwrite_dynamic_across", _across, _write((3, "a", 9), mode="overwrite_partitions")),
    Operation("keyed_two_phases", _filled(_FIXED), _two_phases),
    Operation("keyed_two_phases_dynamic", _filled(_DYNAMIC), _two_phases),
    Operation("keyed_abort", _filled(_DYNAMIC), _write_and_abort),
    Operation(
        "keyed_rename_key",
        _filled(_DYNAMIC),
        lambda lake: lake.table(TABLE).rename_column("id", "number"),
        refusals=_DONE,
    ),
    _raced("keyed_restamp", _contested({"bucket": "1"}), _upsert),
    _raced("keyed_restamp_changelog", _contested({"bucket": "1", "changelog-producer": "input"}), _upsert),
    _raced("keyed_reroute", _contested({"dynamic-bucket.target-row-num": "10"}), _upsert),
    _raced("keyed_reroute_across", _contested(_DYNAMIC, ("id",)), _upsert),
    _raced("keyed_delete_again", _contested({"bucket": "1"}), _delete),
)
