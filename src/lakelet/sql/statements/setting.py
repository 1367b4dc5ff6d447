"""`SET name = value` and `RESET name`: settings of the session.

Settings are those of DuckDB (threads, memory_limit, TimeZone …) and Lakelet's own. `SET` alone shows what was changed. A
setting that would change what equality means for texts is refused: files are pruned by it.
"""

from __future__ import annotations

import pyarrow as pa

from lakelet.errors import InvalidError
from lakelet.sql.context import Context
from lakelet.sql.result import SqlResult
from lakelet.sql.settings import OWN_SETTINGS
from lakelet.sql.statement import Statement

_REFUSED = frozenset(
    (
        *("default_collation", "errors_as_json", "python_enable_replacements", "search_path", "schema"),
        # These cannot be taken back, and nothing would be readable any more.
        *("lock_configuration", "enable_external_access", "disabled_filesystems"),
    )
)


def run_set(context: Context, statement: Statement) -> SqlResult:
    """SET, SET name = value, SET 'name' = 'value', SET [SESSION | GLOBAL] name TO value."""
    reader = statement.reader
    reader.expect("SET")
    if reader.at_end:
        rows = sorted(context.settings.items())
        return SqlResult.of_rows({"name": pa.string(), "value": pa.string()}, rows)
    if reader.peek(1).is_name and reader.peek().keyword in ("SESSION", "GLOBAL", "LOCAL"):
        reader.take()
    if reader.accept("TIME", "ZONE"):
        name = "TimeZone"
    else:
        name = _setting_name(statement)
        reader.one_of("=", "TO")
    if reader.at_end:
        raise reader.error("a value")
    single = len(reader.words) - reader.place == 1
    value = reader.take().text if single and reader.peek().kind != "parameter" else _evaluated(context, statement)
    reader.finish()
    if name in OWN_SETTINGS:
        OWN_SETTINGS[name].check(value)
    else:
        if name.lower() in _REFUSED:
            raise InvalidError(f"setting {name!r} cannot be changed here")
        context.engine.set(name, value)
    context.settings[name] = value
    return SqlResult.done(f"{name} = {value}")


def run_reset(context: Context, statement: Statement) -> SqlResult:
    """RESET, RESET name."""
    reader = statement.reader
    reader.expect("RESET")
    names = list(context.settings) if reader.at_end else [_setting_name(statement)]
    reader.finish()
    for name in names:
        known = next((other for other in context.settings if other.lower() == name.lower()), name)
        if known not in OWN_SETTINGS:
            context.engine.reset(known)
        context.settings.pop(known, None)
    return SqlResult.done(f"reset {', '.join(names) or 'nothing'}")


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
