"""Random queries over the tables of `test_query_spread`."""

from __future__ import annotations

import random

_NUMBERS = ("s.kind", "s.price", "s.weight", "s.share", "s.qty", "s.big")
_VALUES = (*_NUMBERS, "s.city", "s.at", "s.local", "s.flag", "s.raw", "s.dt", "s.id")
_KEYS = (
    *(
        "s.city",
        "s.kind",
        "s.flag",
        "s.dt",
        "s.weight",
        "s.raw",
        "date_trunc('day', s.at)",
        "s.kind % 2",
        "lower(s.city)",
    ),
    *("s.qty > 3", "coalesce(s.city, 'none')", "CASE WHEN s.kind = 1 THEN 'one' ELSE s.city END", "s.price"),
)
_CONDITIONS = (
    *("s.kind > 1", "s.price BETWEEN -5000 AND 5000", "s.city LIKE 'U%'", "s.city IS NULL", "s.dt >= '2026-01-03'"),
    *("s.flag", "NOT s.flag OR s.kind IN (1, 2)", "s.id % 7 <> 3", "s.id < 0", "s.weight > 10", "isnan(s.weight)"),
    *("s.at < TIMESTAMPTZ '2026-01-02 10:00:00+00'", "s.price / 2 > s.kind", "s.id < 220"),
)
_JOINS = (
    *("JOIN cities c ON c.name = s.city", "LEFT JOIN cities c ON c.name = s.city AND c.people > 3", ", cities c"),
    *("LEFT JOIN cities c ON c.name = s.city", "SEMI JOIN cities c ON c.name = s.city"),
    "ANTI JOIN cities c ON c.name = s.city",
)


def generated(rng: random.Random) -> tuple[str, bool]:
    """A query, and whether the order of its rows is determined."""
    join = rng.choice(_JOINS) if rng.random() < 0.4 else ""
    source = (
        f"sales s {join}" if rng.random() < 0.8 or "LEFT" in join or "SEMI" in join or "ANTI" in join else "sales AS s"
    )
    source = source if join in source else f"sales s {join}"
    has_cities = bool(join) and "SEMI" not in join and "ANTI" not in join
    where = f" WHERE {' AND '.join(rng.sample(_CONDITIONS, rng.randint(1, 2)))}" if rng.random() < 0.6 else ""
    kind = rng.random()
    if kind < 0.6:
        return _grouped(rng, source, where, has_cities)
    if kind < 0.75:
        return _distinct(rng, source, where)
    return _plain(rng, source, where)


def _aggregate(rng: random.Random) -> str:
    number, value = rng.choice(_NUMBERS), rng.choice(_VALUES)
    found = rng.choice(
        (
            *("count(*)", f"count({value})", f"sum({number})", f"avg({number})", f"min({value})", f"max({value})"),
            *(f"count(DISTINCT {value})", "bool_and(s.flag)", "bit_xor(s.kind)", f"sum(s.qty + {rng.randrange(5)})"),
            *(f"sum(DISTINCT {rng.choice(['s.kind', 's.price'])})", f"sum({number}) / count(*)", "mean(s.kind) * 2"),
            *("round(avg(s.kind), 3)", "sum(CASE WHEN s.flag THEN 1 ELSE 0 END)", "max(s.city) || '!'"),
        )
    )
    if (
        found.endswith(")")
        and "DISTINCT" not in found
        and found.split("(")[0] in ("count", "sum", "avg", "min", "max")
        and rng.random() < 0.2
    ):
        return f"{found} FILTER (WHERE {rng.choice(_CONDITIONS)})"
    return found


def _grouped(rng: random.Random, source: str, where: str, has_cities: bool) -> tuple[str, bool]:
    keys = rng.sample(_KEYS, rng.choice([0, 1, 1, 2]))
    if has_cities and rng.random() < 0.5:
        keys.append("c.country")
    aggregates = [_aggregate(rng) for _ in range(rng.randint(0 if keys else 1, 3))]
    names = [f"k{number}" if rng.random() < 0.3 else "" for number in range(len(keys))]
    items = [f"{key} AS {name}" if name else key for key, name in zip(keys, names, strict=True)]
    sql = f"SELECT {', '.join([*items, *aggregates])} FROM {source}{where}"
    if keys:
        written = [
            str(number) if rng.random() < 0.2 else (name if name and rng.random() < 0.5 else key)
            for number, (key, name) in enumerate(zip(keys, names, strict=True), 1)
        ]
        sql += f" GROUP BY {', '.join(written)}"
    if rng.random() < 0.3:
        sql += f" HAVING {rng.choice(['count(*) > 3', 'max(s.id) > 100', 'sum(s.kind) IS NOT NULL', 'count(*) < 0'])}"
    return (sql, not keys) if not keys or rng.random() < 0.4 else _sorted(rng, sql, len(keys))


def _distinct(rng: random.Random, source: str, where: str) -> tuple[str, bool]:
    items = rng.sample(_KEYS, rng.randint(1, 2))
    sql = f"SELECT DISTINCT {', '.join(items)} FROM {source}{where}"
    return (sql, False) if rng.random() < 0.5 else _sorted(rng, sql, len(items))


def _plain(rng: random.Random, source: str, where: str) -> tuple[str, bool]:
    items = rng.choice(
        ["s.*", "s.id, s.price * 2 AS double_price, s.city", "s.id, s.at, s.raw, s.big", "s.* EXCLUDE (raw)"]
    )
    sql = f"SELECT {items} FROM {source}{where}"
    if rng.random() < 0.3:
        return sql, False
    joined = " , " in f" {source} " or "cities" in source
    order = rng.choice(["s.price DESC NULLS LAST", "s.kind", "s.city NULLS FIRST", "s.at", "abs(s.qty)"])
    if joined and "SEMI" not in source and "ANTI" not in source and "," in source:
        return f"{sql} ORDER BY {order}, s.id", False
    limit = f" LIMIT {rng.randrange(1, 30)}{rng.choice(['', ' OFFSET 3'])}" if rng.random() < 0.7 else ""
    return f"{sql} ORDER BY {order}, s.id{limit}", True


def _sorted(rng: random.Random, sql: str, keys: int) -> tuple[str, bool]:
    orders = [
        f"{number}{rng.choice(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}" for number in range(1, keys + 1)
    ]
    limit = f" LIMIT {rng.randrange(1, 6)}{rng.choice(['', ' OFFSET 1'])}" if rng.random() < 0.6 else ""
    return f"{sql} ORDER BY {', '.join(orders)}{limit}", True
