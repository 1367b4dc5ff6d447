"""No text leaves the sandbox, and where the lists failed, the engine would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.catalog.connect import connect
from lakelet.catalog.lake import Lake
from lakelet.errors import InvalidError, LakeletError, NotFoundError, PermissionDeniedError
from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.lexer.quotes import quoted
from lakelet.sql.sandbox.allow_list import FUNCTIONS, TABLE_FUNCTIONS, check_tree
from lakelet.sql.sandbox.sandbox import Sandbox
from lakelet.sql.sandbox.sandbox_table import SandboxTable
from tests.unit.sql.sandbox.escapes import escapes

VARIABLE = variable = pa.table({"id": [42]})
SECRET = "id\n424242\n"


class Tables:
    """The only table is `users`."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def names(self) -> list[str]:
        """The names."""
        return ["users"]

    def open(self, name: str) -> SandboxTable:
        """The table."""
        return SandboxTable(name, self._lake.table(f"default.{name}").scan())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp("escapes")
    (folder / "secret.csv").write_text(SECRET)
    made = connect(str(folder / "lake"))
    made.sql("CREATE TABLE users (id STRING)")
    made.sql("INSERT INTO users VALUES ('a')")
    made.sql("CREATE TABLE secret (id BIGINT)")
    made.sql("INSERT INTO secret VALUES (424242)")
    return made


@pytest.fixture(scope="module")
def folder(lake: Lake) -> Path:
    return Path(lake.location).parent


@pytest.fixture(scope="module")
def sandbox(lake: Lake) -> Iterator[Sandbox]:
    made = Sandbox(lake.location)
    yield made
    made.close()


def test_the_corpus_is_large() -> None:
    assert len(set(escapes())) == len(escapes()) >= 150


@pytest.mark.parametrize("text", escapes())
def test_escapes_are_refused(lake: Lake, folder: Path, sandbox: Sandbox, text: str) -> None:
    (inside,) = (folder / "lake" / "default.db" / "secret").rglob("*.parquet")
    filled = text.format(secret=folder / "secret.csv", inside=inside, folder=folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises((PermissionDeniedError, InvalidError, NotFoundError)) as caught:
        sandbox.start(filled, Tables(lake)).arrow().to_arrow()
    assert "424242" not in str(caught.value)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("param", ["{secret}", "/etc/passwd", "secret"])
@pytest.mark.parametrize("source", ["read_csv($1)", "query($1)", "query_table($1)", "glob($1)", "$1"])
def test_parameters_name_no_source(lake: Lake, folder: Path, sandbox: Sandbox, source: str, param: str) -> None:
    with pytest.raises((PermissionDeniedError, InvalidError)):
        sandbox.start(f"SELECT * FROM {source}", Tables(lake), [param.format(secret=folder / "secret.csv")])


@pytest.mark.parametrize(
    "text",
    [
        "FROM read_csv('{folder}/secret.csv')",
        "FROM '/etc/passwd'",
        "FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/x.db' AS x",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "SET GLOBAL memory_limit = '1GB'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET allowed_directories = ['/']",
        "SET allowed_configs = ['threads']",
        "RESET lock_configuration",
        "FROM variable",
    ],
)
def test_the_engine_refuses_what_passed_the_lists(folder: Path, sandbox: Sandbox, text: str) -> None:
    with sandbox.bare_space() as space, pytest.raises(LakeletError):
        space.run(text.format(folder=folder))
    assert not (folder / "out.csv").exists()


def test_functions_that_grow_are_allowed_where_they_are_bounded(lake: Lake, sandbox: Sandbox) -> None:
    text = (
        "SELECT printf('%5d %s 50%%', 7, 'x') AS p, format('{:>4} {}', 'a', 9999) AS f, bitstring('1', 8)::VARCHAR AS b, "
        "lpad('x', 3, '-') AS l, range(-2, len([1]) + 1) AS r, list_sum(generate_series(1, 1000)) AS s, "
        "(SELECT count(*) FROM generate_series(DATE '2026-01-01', DATE '2026-03-01', INTERVAL 1 DAY)) AS days, "
        "(SELECT count(*) FROM range(3000000)) AS n, (SELECT max(range) FROM (VALUES (5)) t(n), range(n)) AS m"
    )
    assert sandbox.start(text, Tables(lake)).arrow().to_arrow().to_pylist() == [
        {
            "p": "    7 x 50%",
            "f": "   a 9999",
            "b": "00000001",
            "l": "--x",
            "r": [-2, -1, 0, 1],
            "s": 500500,
            "days": 60,
            "n": 3000000,
            "m": 4,
        }
    ]


def test_every_function_of_duckdb_is_on_a_list_or_refused(sandbox: Sandbox) -> None:
    with sandbox.bare_space() as space:
        functions = space.run("SELECT DISTINCT function_name, function_type FROM duckdb_functions()")
        allowed = FUNCTIONS | TABLE_FUNCTIONS
        assert len(functions) > 500
        for name, kind in functions:
            source = (
                f"FROM {quoted(name)}()" if kind in ("table", "table_macro", "pragma") else f"SELECT {quoted(name)}(1)"
            )
            listed = TABLE_FUNCTIONS if source.startswith("FROM") else allowed
            if name.lower() in listed:
                continue
            tree = space.tree(source)
            with pytest.raises((PermissionDeniedError, InvalidError)):
                check_tree(tree, Placed(source))


def test_queries_do_not_see_the_tables_of_others(lake: Lake, sandbox: Sandbox) -> None:
    first = sandbox.start("SELECT * FROM users", Tables(lake))
    for catalog in range(1, 6):
        with pytest.raises(PermissionDeniedError):
            sandbox.start(f"SELECT * FROM lakelet_{catalog}.default.users", Tables(lake))
    assert first.arrow().to_arrow().to_pylist() == [{"id": "a"}]


def test_the_time_zone_alone_can_be_changed(sandbox: Sandbox) -> None:
    with sandbox.bare_space() as space:
        space.run("SET TimeZone = 'Asia/Tokyo'")
        space.run("RESET TimeZone")
