"""`SET name = value`, `SET name TO DEFAULT` and `RESET name`: settings of the session.

Settings are Lakelet's own and those of DuckDB that `sql/engine/settings` lists. `SET` alone shows the changed settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakelet.catalog.sql_result import SqlResult
from lakelet.sql.context import Context
from lakelet.sql.engine.settings import OWN_SETTINGS, engine_setting
from lakelet.sql.lexer.errors import SqlError
from lakelet.sql.statement import Statement


def run_set(context: Context, statement: Statement) -> SqlResult:
    """SET, SET name = value, SET 'name' = 'value', SET [SESSION | GLOBAL] name TO value."""
    reader = statement.reader
    reader.expect("SET")
    if reader.at_end:
        rows = sorted(context.settings.items())
        return SqlResult.of_rows({"name": pa.string(), "value": pa.string()}, rows)
    if reader.at("VARIABLE") and reader.peek(1).is_name:
        raise SqlError(
            "SET VARIABLE: values are parameters here, $name with params= or --param; PREPARE keeps a statement with some",
            reader.text,
            reader.peek().start,
        )
    _skip_scope(statement)
    if reader.accept("TIME", "ZONE"):
        name = "TimeZone"
    else:
        name = _setting_name(statement)
        reader.one_of("=", "TO")
    return set_to_rest(context, statement, name)


def set_to_rest(context: Context, statement: Statement, name: str) -> SqlResult:
    """Sets a setting to the value that the rest of the statement is."""
    reader = statement.reader
    if reader.at_end:
        raise reader.error("a value")
    if reader.peek().keyword == "DEFAULT" and reader.place + 1 == len(reader.words):
        return _reset(context, [name])
    single = len(reader.words) - reader.place == 1
    value = reader.take().text if single and reader.peek().kind != "parameter" else _evaluated(context, statement)
    reader.finish()
    context.profile.check_setting(name)
    if name in OWN_SETTINGS:
        OWN_SETTINGS[name].check(value)
    else:
        name = engine_setting(name)
        context.engine.set(name, value)
    context.settings[name] = value
    return SqlResult.done(f"{name} = {value}")


def run_reset(context: Context, statement: Statement) -> SqlResult:
    """RESET, RESET [SESSION | GLOBAL] name."""
    reader = statement.reader
    reader.expect("RESET")
    _skip_scope(statement)
    names = list(context.settings) if reader.at_end else [_setting_name(statement)]
    reader.finish()
    return _reset(context, names)


def _reset(context: Context, names: Sequence[str]) -> SqlResult:
    for name in names:
        context.profile.check_setting(name)
        known = name if name in OWN_SETTINGS else engine_setting(name)
        if known not in OWN_SETTINGS:
            context.engine.reset(known)
        context.settings.pop(known, None)
    return SqlResult.done(f"reset {', '.join(names) or 'nothing'}")


def _skip_scope(statement: Statement) -> None:
    """Skips SESSION and GLOBAL in front of a name: a setting belongs to the session."""
    reader = statement.reader
    if reader.peek(1).is_name and reader.peek().keyword in ("SESSION", "GLOBAL", "LOCAL"):
        reader.take()


def _setting_name(statement: Statement) -> str:
    reader = statement.reader
    if reader.peek().kind == "string":
        return reader.take().text
    name = reader.name("the name of a setting")
    while reader.peek().keyword in (".", "-"):
        sign = reader.take().text
        name += sign + reader.name("the name of a setting")
    return name


def _evaluated(context: Context, statement: Statement) -> str:
    text = statement.reader.rest()
    rows = context.query(f"SELECT {text}", statement.params).rows()
    return str(rows[0][0])
