"""Random queries of queries over the tables of `test_query_spread`: nested, united, windowed, grouped by sets."""

from __future__ import annotations

import random

_ROWS = "s.id, s.city, s.kind, s.price, s.weight, s.qty, s.at, s.flag, s.dt"
_CONDITIONS = (
    *("s.kind > 1", "s.price BETWEEN -5000 AND 5000", "s.city LIKE 'U%'", "s.city IS NULL", "s.id % 7 <> 3"),
    *("s.flag", "s.id < 0", "s.id < 220", "s.dt >= '2026-01-03'", "NOT isnan(s.weight)"),
)
_KEYS = ("x.city", "x.kind", "x.flag", "x.dt", "x.kind % 2", "coalesce(x.city, 'none')", "date_trunc('day', x.at)")
_AGGREGATES = (
    *("count(*)", "sum(x.price)", "avg(x.qty)", "min(x.at)", "max(x.city)", "count(DISTINCT x.city)", "sum(x.weight)"),
    *("count(*) FILTER (WHERE x.flag)", "count(DISTINCT x.kind) FILTER (WHERE x.id > 50)", "bool_or(x.flag)"),
    *("count_if(x.kind = 1)", "sum(x.kind) / count(*)", "max(x.price) - min(x.price)"),
)
_WINDOWS = (
    *(
        "row_number() OVER (PARTITION BY x.city ORDER BY x.id)",
        "rank() OVER (PARTITION BY x.kind ORDER BY x.price, x.id)",
    ),
    *("sum(x.qty) OVER (PARTITION BY x.kind)", "lag(x.price) OVER (ORDER BY x.id)", "count(*) OVER ()"),
    "avg(x.price) OVER (PARTITION BY x.city ORDER BY x.id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "max(x.id) FILTER (WHERE x.flag) OVER (PARTITION BY x.dt)",
    "dense_rank() OVER (ORDER BY x.city NULLS FIRST)",
)
_FIRST = (
    *("row_number() OVER (PARTITION BY x.city ORDER BY x.price DESC, x.id) = 1",),
    *("rank() OVER (PARTITION BY x.kind ORDER BY x.kind, x.dt) <= 2", "dense_rank() OVER (ORDER BY x.dt) < 3"),
    "count(*) OVER (PARTITION BY x.city, x.kind) > 3",
)
_SUBQUERIES = (
    *("x.price > (SELECT avg(price) FROM sales)", "x.kind IN (SELECT kind FROM sales WHERE id < 3)", "x.id > 3"),
    *("x.city IN (SELECT name FROM cities)", "x.city NOT IN (SELECT name FROM cities WHERE country = 'DE')"),
    *("EXISTS (SELECT 1 FROM cities WHERE people > 100)", "x.kind NOT IN (SELECT kind FROM sales WHERE id < 9)"),
    "EXISTS (SELECT 1 FROM cities c WHERE c.name = x.city AND c.people > 2)",
    "NOT EXISTS (SELECT 1 FROM cities c WHERE c.name = x.city)",
    "x.dt = (SELECT max(dt) FROM sales WHERE kind = 2)",
    "x.kind = (SELECT count(*) FROM cities c WHERE c.name = x.city)",
    "x.weight >= (SELECT min(weight) FROM sales WHERE id < 0) IS NULL",
    'x."at" IN (SELECT max("at") FROM sales GROUP BY city)',
)
_MEDIANS = ("median(x.price)", "quantile_disc(x.id, 0.25)", "list(x.id ORDER BY x.id)", "arg_max(x.city, x.id)")


def nested(rng: random.Random) -> tuple[str, bool]:
    """A query, and whether the order of its rows is determined."""
    made = rng.choice(
        (_groups, _groups, _sets, _windowed, _first, _filtered, _united, _of_groups, _ranked_groups, _common)
    )
    return made(rng)


def _source(rng: random.Random, depth: int = 2) -> str:
    """Something in FROM under the name x, with the columns of sales that are used."""
    where = f" WHERE {rng.choice(_CONDITIONS)}" if rng.random() < 0.7 else ""
    rows = f"SELECT {_ROWS} FROM sales s{where}"
    kind = rng.random()
    if kind < 0.15:
        return "sales x"
    if kind < 0.6 or not depth:
        return f"({rows}) x"
    if kind < 0.7:
        return f"(SELECT s.* EXCLUDE (raw, big) FROM sales s{where}) AS x"
    if kind < 0.85:
        return f"({rows} UNION ALL SELECT {_ROWS} FROM sales s WHERE {rng.choice(_CONDITIONS)}) x"
    if kind < 0.93:
        return f"(SELECT x.* FROM {_source(rng, depth - 1)} WHERE x.kind IS NOT NULL) x"
    return f"(SELECT DISTINCT {_ROWS} FROM sales s{where}) x"


def _where(rng: random.Random, least: int = 0) -> str:
    found = rng.sample(_SUBQUERIES, max(least, rng.choice([0, 0, 1])))
    return f" WHERE {' AND '.join(found)}" if found else ""


def _groups(rng: random.Random) -> tuple[str, bool]:
    keys = rng.sample(_KEYS, rng.randint(0, 2))
    items = [*keys, *rng.sample(_AGGREGATES, rng.randint(1, 3))]
    if rng.random() < 0.2:
        items.append(rng.choice(_MEDIANS))
    join = rng.choice(
        (
            "",
            "",
            " JOIN cities c ON c.name = x.city",
            " LEFT JOIN (SELECT name, people FROM cities) c ON c.name = x.city",
        )
    )
    sql = f"SELECT {', '.join(items)} FROM {_source(rng)}{join}{_where(rng)}"
    if not keys:
        return sql, True
    if rng.random() < 0.3:
        return f"{sql} GROUP BY ALL ORDER BY {', '.join(map(str, range(1, len(keys) + 1)))}", True
    having = rng.choice(("", "", " HAVING count(*) > 3"))
    return f"{sql} GROUP BY {', '.join(keys)}{having}", False


def _sets(rng: random.Random) -> tuple[str, bool]:
    keys = rng.sample(_KEYS[:5], 2)
    given = rng.choice(
        ("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ({first}), ())", "GROUPING SETS (({first}), ({}))")
    )
    sets = given.replace("{first}", keys[0]).replace("{}", ", ".join(keys))
    items = [*keys, f"grouping({keys[0]})", *rng.sample(_AGGREGATES, 2)]
    return f"SELECT {', '.join(items)} FROM {_source(rng)}{_where(rng)} GROUP BY {sets}", False


def _windowed(rng: random.Random) -> tuple[str, bool]:
    items = rng.sample(_WINDOWS, rng.randint(1, 2))
    star = rng.choice(("x.id, x.city", "x.id, x.price * 2 AS more", "x.id"))
    sql = f"SELECT {star}, {', '.join(items)} FROM {_source(rng)}{_where(rng)}"
    return (sql, False) if rng.random() < 0.5 or "UNION" in sql else (f"{sql} ORDER BY x.id LIMIT 40", True)


def _first(rng: random.Random) -> tuple[str, bool]:
    if rng.random() < 0.5:
        return (
            f"SELECT *, row_number() OVER (PARTITION BY kind ORDER BY id) AS r FROM sales QUALIFY r <= {rng.randint(1, 4)}",
            False,
        )
    source = _source(rng)
    first = rng.choice(_FIRST[1:] if "UNION" in source else _FIRST)
    return f"SELECT x.id, x.city, x.kind FROM {source}{_where(rng)} QUALIFY {first}", False


def _filtered(rng: random.Random) -> tuple[str, bool]:
    sql = f"SELECT x.id, x.city, x.price FROM {_source(rng)}{_where(rng, 1)}"
    return (
        (sql, False)
        if rng.random() < 0.5 or "UNION" in sql
        else (f"{sql} ORDER BY x.price NULLS FIRST, x.id LIMIT 20", True)
    )


def _united(rng: random.Random) -> tuple[str, bool]:
    word = rng.choice(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
    parts = [f"SELECT x.city, x.kind, x.dt FROM {_source(rng)}{_where(rng)}" for _ in range(2)]
    if rng.random() < 0.4:
        parts[1] = "SELECT name, people % 4, DATE '2026-01-01' FROM cities"
    sql = f" {word} ".join(parts)
    return (f"{sql} ORDER BY ALL LIMIT 9", True) if rng.random() < 0.5 else (sql, False)


def _of_groups(rng: random.Random) -> tuple[str, bool]:
    """What is computed of groups."""
    inner = (
        f"SELECT x.city, x.kind, count(*) AS n, sum(x.price) AS total FROM {_source(rng)}{_where(rng)} GROUP BY 1, 2"
    )
    return (
        rng.choice(
            (
                f"SELECT city, max(n), sum(total) FROM ({inner}) GROUP BY city",
                f"SELECT count(*), avg(n) FROM ({inner}) AS g WHERE g.n > 1",
                f"SELECT g.*, c.country FROM ({inner}) g LEFT JOIN cities c ON c.name = g.city",
                f"SELECT a.city, a.n, b.n FROM ({inner}) a JOIN ({inner}) b USING (city, kind)",
                f"SELECT city, kind, n FROM ({inner}) g(city, kind, n) WHERE n > (SELECT avg(people) FROM cities)",
            )
        ),
        False,
    )


def _ranked_groups(rng: random.Random) -> tuple[str, bool]:
    """Windows over groups."""
    more = rng.choice(("", " QUALIFY rank() OVER (ORDER BY count(*) DESC, x.city, x.kind) <= 3", " QUALIFY r < 4"))
    sql = (
        f"SELECT x.city, x.kind, count(*) AS n, rank() OVER (PARTITION BY x.kind ORDER BY count(*) DESC, x.city) AS r, "
        f"sum(sum(x.qty)) OVER (PARTITION BY x.kind), count(*) * 100 / sum(count(*)) OVER () FROM {_source(rng)}{_where(rng)} "
        f"GROUP BY x.city, x.kind{more}"
    )
    return sql, False


def _common(rng: random.Random) -> tuple[str, bool]:
    where = rng.choice(_CONDITIONS)
    return (
        rng.choice(
            (
                f"WITH x AS (SELECT {_ROWS} FROM sales s WHERE {where}) SELECT city, count(*), sum(price) FROM x GROUP BY city",
                f"WITH x AS (SELECT {_ROWS} FROM sales s WHERE {where}), y AS (SELECT kind, count(*) AS n FROM x GROUP BY kind) "
                "SELECT x.id, y.n FROM x JOIN y USING (kind)",
                "WITH g AS (SELECT city, sum(weight) AS w, count(*) AS n FROM sales s GROUP BY city) "
                "SELECT city, n FROM g WHERE n = (SELECT max(n) FROM g) OR w = (SELECT max(w) FROM g)",
                f"WITH a AS (SELECT city, count(*) AS n FROM sales s WHERE {where} GROUP BY city), b AS "
                "(SELECT country, count(*) AS m FROM cities GROUP BY country) SELECT * FROM a, b",
                f"WITH t(a, b) AS (SELECT kind, qty FROM sales s WHERE {where}) SELECT a, max(b) FROM t GROUP BY a "
                "HAVING max(b) > 0",
                f"WITH sales AS (SELECT * FROM sales s WHERE {where}) SELECT kind, count(*), median(qty) FROM sales "
                "GROUP BY kind",
                f"WITH m AS MATERIALIZED (SELECT max(id) AS m FROM sales s WHERE {where}) SELECT s.id FROM sales s, m "
                "WHERE s.id >= m.m - 3",
                f"SELECT date_trunc('month', s.at) AS at, count(*) FROM sales s WHERE {where} GROUP BY 1 ORDER BY 2, 1",
                f"SELECT upper(city) AS city, city AS was FROM sales s WHERE {where}",
                f"SELECT DISTINCT ON (kind) kind, id FROM sales s WHERE {where} ORDER BY kind, id DESC",
            )
        ),
        False,
    )
