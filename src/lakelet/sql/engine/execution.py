"""Other engines that can run the query of an INSERT: `SET execution.engine = 'spark'`.

A layer above registers itself in `lakelet.insert_engines` when it is imported, so that this one does not depend on it:

    import lakelet.spark        registers "spark", which runs on the Spark session that is active

The engine gets the query text as it was written, in the engine's own SQL dialect. It returns what an insert here returns: the
snapshot created and the number of inserted rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from lakelet.errors import InvalidError
from lakelet.insert_engines import ENGINES
from lakelet.sql.statement import Params

if TYPE_CHECKING:
    from lakelet.catalog.lake import Lake
    from lakelet.sql.engine.frames import Frames

LOCAL_ENGINE = "local"


@dataclass(frozen=True, slots=True)
class EngineInsert:
    """An insert of a query's rows into an Iceberg table. `columns` are the target columns, in the query's order (None: all
    that `partition` does not fix); with `by_name` they are matched by name. `mode` and `partition` are those of a transaction;
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


InsertEngine: TypeAlias = Callable[[EngineInsert], tuple[int | None, int]]
"""Runs the query and inserts its rows; returns the snapshot id, None where none was needed, and the row count."""

_ENGINES: dict[str, InsertEngine] = ENGINES
_TO_LOAD = {"spark": "import lakelet.spark first, and have a Spark session"}


def register_engine(name: str, engine: InsertEngine) -> None:
    """Registers an engine."""
    _ENGINES[name] = engine


def insert_engine(name: str) -> InsertEngine:
    """The engine of that name; InvalidError if it is not registered."""
    if name not in _ENGINES:
        raise InvalidError(f"setting 'execution.engine' is {name!r}, which is not loaded: {_TO_LOAD.get(name, name)}")
    return _ENGINES[name]
