"""Run queries of strangers on a DuckDB instance of their own, which reaches the files of the lake and nothing else.

The lake's folder is allowed, then external access is turned off, then the configuration is locked, but for the time zone: a query
that passed the allow-lists by a defect of ours would still read no other file, reach no address and load no extension.

    running = sandbox.start("SELECT … WHERE id = $id", tables, params={"id": "user-1"})
    running.arrow().to_reader()        or        running.json_parts()

`start` binds a query, and runs it where it has parameters; the rows come when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.errors import InvalidError
from lakelet.model.text import check_text
from lakelet.sql.engine.duckdb_engine import BATCH_ROWS, Engine, Space
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import listed, literal
from lakelet.sql.lexer.words import Word, statements_of
from lakelet.sql.query.plans import Plans
from lakelet.sql.query.relation import Rows
from lakelet.sql.sandbox.explained_plan import plan_rows
from lakelet.sql.sandbox.json_rows import json_bytes, json_relation, unique_columns
from lakelet.sql.sandbox.sandbox_table import SandboxTables
from lakelet.sql.sandbox.sandboxed_query import SandboxedQuery
from lakelet.sql.sandbox.spread import Releasable, Spread
from lakelet.sql.sandbox.spread_query import spread_query
from lakelet.sql.statement import Params

_ANALYZE = "ANALYZE"
# Rows of which a part of JSON is made: a megabyte or a few, of which there are several copies.
_JSON_ROWS = 16_384


class Sandbox:
    """A locked instance of DuckDB, for any number of queries at the same time."""

    def __init__(self, location: str, settings: Mapping[str, str] | None = None) -> None:
        """`location` is the lake's; `settings` are DuckDB's, such as `memory_limit`, set before the lock."""
        folders = [location] if location.startswith("/") else []
        limits = {name: literal(value) for name, value in (settings or {}).items()}
        self._engine = Engine(
            {
                **limits,
                # All files are the lake's own, and immutable.
                "parquet_metadata_cache": "true",
                "allow_community_extensions": "false",
                "autoload_known_extensions": "false",
                "allowed_directories": f"{listed(folders)}::VARCHAR[]",
                "enable_external_access": "false",
                "allowed_configs": "['TimeZone']",
                "lock_configuration": "true",
            }
        )
        self._plans = Plans()

    def start(
        self,
        text: str,
        tables: SandboxTables,
        params: Params = None,
        zone: str | None = None,
        opened: Callable[[Space], None] = lambda space: None,
        spread: Spread | None = None,
        given: Mapping[str, Rows] | None = None,
    ) -> RunningQuery:
        """Check and bind one SELECT, or EXPLAIN of one; `zone` is that of texts without one. `opened` gets what can be
        interrupted from then on. With a `spread`, other nodes take part in it where it is large enough. `given` are rows that
        it reads beside tables."""
        check_text(text, "sql")
        statements = statements_of(text)
        if len(statements) != 1:
            raise InvalidError(f"sql: expected one statement, found {len(statements)}")
        query, mode = _explained(text, statements[0])
        space = self.bare_space()
        try:
            opened(space)
            if zone is not None:
                space.run(f"SET TimeZone = {literal(zone)}")
            prepared = SandboxedQuery(space, query, params, tables, self._plans, zone is not None, given or {})
            prepared.prepare()
            if spread is not None and mode != _ANALYZE:
                found = spread_query(prepared, zone, spread, is_explained=mode is not None)
                if found is not None:
                    return RunningQuery(
                        space, found.placed, found.relation, found.known, found.gathered, found.batch_rows
                    )
            prepared.register()
            return _started(space, prepared, mode)
        except RecursionError as error:
            space.close()
            raise InvalidError("the statement is nested too deeply") from error
        except BaseException:
            space.close()
            raise

    def bare_space(self) -> Space:
        """A space of the instance, without any check of what runs in it."""
        return self._engine.space()

    def close(self) -> None:
        """Close the instance."""
        self._engine.close()


@dataclass(frozen=True, slots=True)
class RunningQuery:
    """A bound query, whose rows are read once, in one of two forms; `known` is a result that needs no rows of DuckDB."""

    space: Space
    placed: Placed
    relation: Any
    known: SqlResult | None = None
    gathered: Releasable | None = None
    batch_rows: int = BATCH_ROWS

    def arrow(self) -> SqlResult:
        """The rows as Arrow, repeated column names with a number behind them."""
        result = self.known or self.space.rows_of(self.relation, self.placed, self.batch_rows)
        names = unique_columns(result.schema.names)
        schema = pa.schema([field.with_name(name) for field, name in zip(result.schema, names, strict=True)])
        return SqlResult(
            schema,
            lambda: (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in result.to_batches()),
            close=self.close,
        )

    def json_parts(self) -> Iterator[tuple[int, bytes]]:
        """The rows as JSON: of each batch how many there are, and the objects with a comma behind each."""
        relation = self.relation if self.known is None else self.space.from_arrow(self.known.to_arrow())
        found = self.space.rows_of(json_relation(relation), self.placed, min(self.batch_rows, _JSON_ROWS))
        for batch in found.to_batches():
            yield batch.num_rows, json_bytes(batch)

    def interrupt(self) -> None:
        """Interrupt it; any thread may call this."""
        self.space.interrupt()

    def close(self) -> None:
        """Release what it holds."""
        self.space.close()
        if self.gathered is not None:
            self.gathered.close()


def _explained(text: str, words: Sequence[Word]) -> tuple[str, str | None]:
    """The query of a statement, with blanks before it so that positions stay, and what EXPLAIN is to do; None without EXPLAIN."""
    if words[0].keyword != "EXPLAIN":
        return text, None
    is_analyzed = len(words) > 1 and words[1].keyword == "ANALYZE"
    end = words[1 if is_analyzed else 0].end
    return " " * end + text[end:], _ANALYZE if is_analyzed else ""


def _started(space: Space, prepared: SandboxedQuery, mode: str | None) -> RunningQuery:
    if mode is None:
        count = prepared.count()
        relation = prepared.bind() if count is None else None
        return RunningQuery(space, prepared.placed, relation, count)
    prepared.bind()
    options = "(ANALYZE, FORMAT JSON)" if mode else "(FORMAT JSON)"
    rows = space.run(f"EXPLAIN {options} {prepared.placed.changed}", prepared.params, prepared.placed)
    return RunningQuery(space, prepared.placed, None, plan_rows(str(rows[0][1])))
