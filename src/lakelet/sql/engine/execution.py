"""Other engines that can run the query of an INSERT: `SET execution.engine = 'spark'`.

A layer above registers itself here when it is loaded, so that this one need not know it:

    import lakelet.spark        registers "spark", which runs on the Spark session that is active

The text of the query reaches the engine as it was written, in the engine's own SQL. What an engine gives back is what an insert
here gives back: the snapshot it made and how many rows came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lakelet.errors import InvalidError
from lakelet.sql.statement import Params

if TYPE_CHECKING:
    from lakelet.catalog.lake import Lake
    from lakelet.sql.engine.frames import Frames

LOCAL_ENGINE = "local"


@dataclass(frozen=True, slots=True)
class EngineInsert:
    """The rows of a query for an Iceberg table. `columns` are those that the query's columns are for, in their order (None: all
    that `partition` does not fix); with `by_name` they go by their names. `mode` and `partition` are those of a transaction;
    `fixed` are values of columns that PARTITION gives, also where it does not say what is replaced."""

    lake: Lake
    query: str
    params: Params
    frames: Frames
    table: tuple[str, str, str]
    mode: str = "append"
    partition: Mapping[str, object] | None = None
    fixed: Mapping[str, object] | None = None
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    branch: str | None = None


class InsertEngine(Protocol):
    """Runs the query and inserts its rows; gives the id of the snapshot, None where none was needed, and how many rows came."""

    def __call__(self, insert: EngineInsert) -> tuple[int | None, int]: ...


_ENGINES: dict[str, InsertEngine] = {}
_TO_LOAD = {"spark": "import lakelet.spark first, and have a Spark session"}


def register_engine(name: str, engine: InsertEngine) -> None:
    """Makes an engine known."""
    _ENGINES[name] = engine


def insert_engine(name: str) -> InsertEngine:
    """The engine of that name; InvalidError where nobody has registered it."""
    if name not in _ENGINES:
        raise InvalidError(f"setting 'execution.engine' is {name!r}, which is not loaded: {_TO_LOAD.get(name, name)}")
    return _ENGINES[name]
