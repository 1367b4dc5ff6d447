"""Commands as they are typed: what they write, in both forms, and how they end."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from lakelet import Lake
from lakelet.cli import commands, main
from lakelet.cli.commands import query
from lakelet.cli.output.result_forms import FORMS
from tests.unit.cli.conftest import Ran, Run

ORDERS = "shop.orders"


def words(text: str) -> str:
    return " ".join(text.split())


# ---------------------------------------------------------------- the command line itself


def test_every_command_has_the_options_of_all() -> None:
    found = commands()
    assert {"sql", "shell", "tables", "describe", "inspect", "history", "files", "import", "export", "demo"} <= set(
        found
    )
    for name, options in found.items():
        assert {"--warehouse", "--option", "--json", "--debug"} <= set(options), name


@pytest.mark.parametrize("name", [(), *((name,) for name in commands())])
def test_help(run: Run, name: tuple[str, ...]) -> None:
    shown = run(*name, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert f"Usage: lakelet {' '.join(name)}".strip() in words(shown.out)


def test_without_a_command_there_is_help(run: Run) -> None:
    shown = run()
    assert (shown.code, shown.err) == (2, "")
    assert shown.out == run("--help").out


def test_the_version(run: Run) -> None:
    shown = run("--version")
    assert re.fullmatch(r"lakelet \d+\.\d+\.\d+\n", shown.out)
    assert shown.code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tabels",), "Did you mean 'tables'?"),
        (("tables", "--jsn"), "No such option: --jsn"),
        (("tables", "--option", "x"), "expected KEY=VALUE, found 'x'"),
        (("compact", ORDERS, "--partition", "x"), "expected COLUMN=VALUE, found 'x'"),
        (("sql", "SELECT 1", "--param", "x"), "expected NAME=VALUE, found 'x'"),
        (("sql", "SELECT 1", "--limit", "-1"), "'--limit'"),
        (("sql", "SELECT 1", "--output", "xml"), "'--output'"),
        (("inspect", ORDERS, "colour"), "'colour' is not one of schema"),
        (("inspect", "colour", ORDERS), "'colour' is not one of schema"),
        (("inspect", "schema"), "the table is missing"),
        (("inspect", "file", ORDERS), "the name of the file is missing"),
        (("inspect", "options", ORDERS, "x"), "inspect options takes no name"),
        (("import", ORDERS, "x.csv", "--primary-key", "id"), "with --create only"),
        (("demo", "--rows", "x"), "'--rows'"),
        (("demo", "--engine", "flink"), "'--engine'"),
    ],
)
def test_senseless_command_lines_end_with_2(run: Run, arguments: tuple[str, ...], said: str) -> None:
    shown = run(*arguments)
    assert (shown.code, shown.out) == (2, "")
    assert said in words(shown.err)


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (("tables", "shp"), "NotFoundError", "did you mean shop?"),
        (("tables", "--option", "s3.endpont=x"), "InvalidError", "s3.endpoint"),
        (("describe", "shop.order"), "NotFoundError", "did you mean orders?"),
        (("describe", "orders"), "NotFoundError", "there are shop.orders"),
        (("describe", "a.b.c"), "InvalidError", "found 3 parts"),
        (("describe", "shop.orders$files"), "InvalidError", "is a system table"),
        (("inspect", "bogus"), "NotFoundError", "'bogus' is not one of schema, schemas"),
        (("inspect", "snapshot", "shop.order"), "NotFoundError", "did you mean orders?"),
        (("inspect", "snapshot", ORDERS, "99"), "NotFoundError", "99"),
        (("inspect", "snapshot", ORDERS, "x"), "InvalidError", "expected the number"),
        (("inspect", "manifest", ORDERS, "manifest-x-0"), "NotFoundError", "is in no snapshot"),
        (("inspect", "file", ORDERS, "data-x.parquet"), "NotFoundError", "none of the live files"),
        (("files", ORDERS, "--version", "99"), "NotFoundError", "99"),
        (("sql", ""), "InvalidError", "there is no statement"),
        (("sql", "-f", "/nowhere/x.sql"), "NotFoundError", "/nowhere/x.sql"),
        (("sql", "SELECT 1", "--database", "shp"), "NotFoundError", "did you mean shop?"),
        (("sql", "SELECT $a"), "InvalidError", "parameter $a has no value"),
        (("sql", "SELECT 1", "--param", "a=1"), "InvalidError", "no statement has a parameter $a"),
        (("import", ORDERS, "/nowhere/*.csv"), "NotFoundError", "no file is there for '/nowhere/*.csv'"),
        (("export", "shop.ordes", "/tmp/x.csv"), "NotFoundError", "did you mean orders?"),
        (("export", ORDERS, "/nowhere/x.csv"), "NotFoundError", "folder '/nowhere' is not there"),
        (("export", ORDERS, "/tmp/x.xml"), "InvalidError", "say --format"),
        (("compact", "shop.none"), "NotFoundError", "shop.none"),
        (("expire", ORDERS, "--older-than", "x"), "InvalidError", "older_than"),
    ],
)
def test_errors_are_one_line_and_end_with_1(
    run: Run, shop: Lake, arguments: tuple[str, ...], kind: str, said: str
) -> None:
    shown = run(*arguments)
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(f"{kind}: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err
    told = run(*arguments, "--json")
    assert (told.code, told.out) == (1, "")
    reported = json.loads(told.err)
    assert reported["error"] == kind
    assert said in reported["message"]


def test_a_defect_is_one_line_and_a_trace_only_if_asked_for(
    run: Run, shop: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oh")

    monkeypatch.setattr("lakelet.cli.look.describe.list_tables", broken)
    shown = run("tables")
    assert shown == Ran(1, "", "InternalError: KeyError: 'oh' (this is a defect of Lakelet; --debug shows where)\n")
    assert "Traceback" in run("tables", "--debug").err
    assert json.loads(run("tables", "--json").err)["hint"].startswith("this is a defect")


def test_ctrl_c_ends_quietly(run: Run, shop: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lakelet.cli.look.describe.list_tables", interrupted)
    assert run("tables") == Ran(130, "", "")


# ---------------------------------------------------------------- looking


def test_tables(run: Run, shop: Lake) -> None:
    row = {"database": "shop", "table": "orders", "snapshot": 4, "records": 4}
    for arguments in ((), ("shop",), ("SHOP",)):
        (found,) = run("tables", *arguments, "--json").objects
        assert found["rows"] == [row]
    assert "│ shop     │ orders │        4 │       4 │" in run("tables").out


def test_the_warehouse_may_be_given(run: Run, shop: Lake) -> None:
    assert run("tables", "--warehouse", "memory://another", "--json").objects[0]["rows"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("tables",),
        ("describe", "a.b"),
        ("history", "a.b"),
        ("inspect", "schema", "a.b"),
        ("files", "a.b"),
        ("compact", "a.b"),
        ("expire", "a.b"),
        ("orphans", "a.b"),
        ("export", "a.b", "-"),
        ("import", "a.b", __file__, "--format", "csv"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_a_warehouse_that_is_not_there_is_not_an_empty_one(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    shown = run(*arguments, "--warehouse", str(tmp_path / "typo"))
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(f"NotFoundError: there is no warehouse at {tmp_path}/typo")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_a_warehouse(run: Run, tmp_path: Path) -> None:
    assert run("tables", "--warehouse", str(tmp_path)).code == 0


def test_describe(run: Run, shop: Lake) -> None:
    (found,) = run("describe", ORDERS, "--json").objects
    assert found["primary_key"] == ["id", "dt"]
    assert [column["name"] for column in found["columns"]] == ["id", "dt", "amount", "note"]
    shown = run("describe", ORDERS).out
    for said in ("shop.orders: what was sold", "primary key, partition", "DECIMAL(10, 2)", "bucket: 1", "files: 2"):
        assert said in shown


def test_describe_a_branch(run: Run, shop: Lake) -> None:
    assert run("describe", "shop.orders$branch_dev", "--json").objects[0]["snapshot_id"] == 2


@pytest.mark.parametrize(
    ("what", "members"),
    [
        ("schema", {"id", "column", "type", "default", "comment"}),
        ("schemas", {"schema", "time", "columns", "names"}),
        ("snapshots", {"snapshot", "kind", "time", "records", "change", "schema", "user"}),
        ("manifests", {"manifest", "list", "bytes", "added", "deleted", "schema"}),
        ("files", {"file", "rows", "bytes", "level", "schema"}),
        ("tags", {"tag", "snapshot", "time"}),
        ("branches", {"branch"}),
    ],
)
def test_inspecting_lists(run: Run, shop: Lake, what: str, members: set[str]) -> None:
    found = run("inspect", what, ORDERS, "--json").objects[0]
    assert set(found["rows"][0]) == members
    # The table may come first.
    assert run("inspect", ORDERS, what, "--json").objects[0] == found
    assert run("inspect", what, ORDERS).code == 0


def test_inspect_a_schema(run: Run, shop: Lake) -> None:
    shop.table(ORDERS).add_column("more", "INT")
    assert len(run("inspect", ORDERS, "--json").objects[0]["rows"]) == 5
    assert len(run("inspect", "schema", ORDERS, "0", "--json").objects[0]["rows"]) == 4


def test_inspect_options(run: Run, shop: Lake) -> None:
    assert run("inspect", "options", ORDERS, "--json").objects == [{"title": ORDERS, "bucket": "1"}]


def test_inspect_a_snapshot_its_manifests_and_lists(run: Run, shop: Lake) -> None:
    newest, manifests = run("inspect", "snapshot", ORDERS, "--json").objects
    assert (newest["id"], newest["commit_kind"]) == (4, "COMPACT")
    first, _ = run("inspect", "snapshot", ORDERS, "1", "--json").objects
    assert (first["id"], first["commit_kind"], first["delta_record_count"]) == (1, "APPEND", 3)
    (listed,) = run("inspect", "manifest", ORDERS, newest["delta_manifest_list"], "--json").objects
    deltas = [row["manifest"] for row in manifests["rows"] if row["list"] == "delta"]
    assert [row["manifest"] for row in listed["rows"]] == deltas
    (entries,) = run("inspect", "manifest", ORDERS, deltas[0], "--json").objects
    assert {row["kind"] for row in entries["rows"]} == {"ADD", "DELETE"}
    assert {row["partition"] for row in entries["rows"]} <= {"dt=a", "dt=b"}


def test_inspect_an_index_manifest(run: Run, warehouse: str, shop: Lake) -> None:
    table = shop.create_table(
        "shop.marked",
        [("id", "BIGINT NOT NULL"), ("n", "INT")],
        primary_key=["id"],
        options={"bucket": "1", "deletion-vectors.enabled": "true"},
    )
    table.write([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
    table.compact(full=True)
    table.write([{"id": 1, "n": 5}])
    name = next(snapshot.index_manifest for snapshot in reversed(table.snapshots()) if snapshot.index_manifest)
    (found,) = run("inspect", "manifest", "shop.marked", name, "--json").objects
    assert [(row["bucket"], row["index"]) for row in found["rows"]] == [(0, "DELETION_VECTORS")]


def test_inspect_a_file(run: Run, shop: Lake) -> None:
    path, _ = next((path, file) for path, file in shop.table(ORDERS).files() if "dt=a" in path)
    about, footer, schema, groups = run("inspect", "file", ORDERS, path.rsplit("/", 1)[-1], "--json").objects
    assert (about["title"], about["rows"], about["level"], about["made by"]) == (path, 3, 5, "compaction")
    assert (about["least key"], about["greatest key"]) == ("id=0", "id=2")
    assert footer["row groups"] == 1
    assert "id" in {row["column"] for row in schema["rows"]}
    notes = next(row for row in groups["rows"] if row["column"] == "note")
    assert (notes["least"], notes["greatest"], notes["nulls"]) == ("again", "n2", 0)
    assert run("inspect", "file", ORDERS, path).code == 0


def test_inspect_file_of_an_sst_file(run: Run, shop: Lake) -> None:
    options = {"bucket": "1", "file.format": "sst", "file.compression": "lz4"}
    table = shop.create_table("shop.served", [("id", "BIGINT"), ("v", "STRING")], primary_key=["id"], options=options)
    table.write([{"id": number, "v": "x"} for number in range(30)])
    ((path, _),) = table.files()
    about, footer, schema = run("inspect", "file", "shop.served", path.rsplit("/", 1)[-1], "--json").objects
    assert (about["rows"], footer["rows"], footer["compression"], footer["data blocks"]) == (30, 30, "lz4", 1)
    assert [one["column"] for one in schema["rows"]] == ["id", "v"]


def test_history_for_programs(run: Run, shop: Lake) -> None:
    rows = run("history", ORDERS, "--json").objects[0]["rows"]
    assert [(row["snapshot"], row["kind"], row["change"]) for row in rows] == [
        (4, "COMPACT", -1),
        (3, "APPEND", 1),
        (2, "APPEND", 1),
        (1, "APPEND", 3),
    ]
    assert [(row["tags"], row["branches"]) for row in rows] == [([], []), ([], []), (["eod"], ["dev"]), ([], [])]


def test_history_as_a_picture(run: Run, shop: Lake) -> None:
    shown = run("history", ORDERS).out.splitlines()
    assert shown[0] == "shop.orders, branch main"
    assert [line[0] for line in shown[1:]] == ["●", "│", "●", "│", "●", "│", "●"]
    assert "−1" in shown[1]
    assert shown[5].endswith("◀ tag eod, branch dev")
    assert "+3" in shown[7]
    assert all(" records " in line for line in shown[1::2])
    assert shown[7].endswith("  " + "█" * 12)
    assert run("history", ORDERS, "--limit", "1").out.endswith("┊ 3 older; --limit 0 shows all\n")


def test_history_shows_what_only_a_tag_keeps(run: Run, shop: Lake) -> None:
    shop.table(ORDERS).expire_snapshots(1)
    shown = run("history", ORDERS).out.splitlines()
    assert [line[0] for line in shown[1:]] == ["●", "┊", "○"]
    assert shown[3].endswith("(expired, kept by the tag)")
    rows = run("history", ORDERS, "--json").objects[0]["rows"]
    assert [(row["snapshot"], row["expired"]) for row in rows] == [(4, False), (2, True)]


def test_history_of_nothing(run: Run, shop: Lake) -> None:
    shop.create_table("shop.empty", [("a", "INT")])
    assert run("history", "shop.empty").out == "shop.empty has no snapshot yet\n"


def test_files(run: Run, shop: Lake) -> None:
    assert len(run("files", ORDERS, "--json").objects[0]["rows"]) == 2
    assert len(run("files", ORDERS, "--version", "1", "--json").objects[0]["rows"]) == 1


def test_files_as_a_tree(run: Run, shop: Lake) -> None:
    shop.table(ORDERS).write([{"id": 5, "dt": "a", "amount": None, "note": None}])
    rows = run("files", ORDERS, "--tree", "--json").objects[0]["rows"]
    assert [(row["partition"], row["bucket"], row["level"], row["files"], row["rows"]) for row in rows] == [
        ("dt=a", 0, 0, 1, 1),
        ("dt=a", 0, 5, 1, 3),
        ("dt=b", 0, 5, 1, 1),
    ]
    shown = run("files", ORDERS, "--tree").out.splitlines()
    assert shown[0].startswith("shop.orders  3 files")
    assert shown[1].startswith("├── dt=a  2 files")
    assert shown[2].startswith("│   └── bucket 0  2 files")
    assert shown[3].startswith("│       ├── level 0  █")
    assert ".parquet" in shown[4]


# ---------------------------------------------------------------- keeping in shape


def test_compact_expire_and_orphans(run: Run, shop: Lake) -> None:
    shop.table(ORDERS).write([{"id": 5, "dt": "a", "amount": None, "note": None}])
    (done,) = run("compact", ORDERS, "--full", "--partition", "dt=a", "--json").objects
    assert (done["snapshot"], done["files before"], done["files after"]) == (6, 3, 2)
    assert "nothing to do" in run("compact", ORDERS, "--full", "--partition", "dt=a").out
    (would,) = run("expire", ORDERS, "--retain-last", "1", "--dry-run", "--json").objects
    assert (would["snapshots"], would["from"], would["to"]) == (5, 1, 5)
    (gone,) = run("expire", ORDERS, "--retain-last", "1", "--json").objects
    assert gone["snapshots"] == 5
    (found,) = run("orphans", ORDERS, "--older-than", "0s", "--dry-run", "--json").objects
    assert found["files"] == 0


# ---------------------------------------------------------------- SQL


def test_sql_in_every_form(run: Run, shop: Lake) -> None:
    assert set(FORMS) == {form.value for form in query.Form}
    statement = "SELECT id FROM shop.orders ORDER BY id"
    assert run("sql", statement, "--output", "csv").out == '"id"\n0\n1\n2\n10\n'
    assert run("sql", statement, "--json").objects == [{"rows": [{"id": 0}, {"id": 1}, {"id": 2}, {"id": 10}]}]
    assert "│ 10 │" in run("sql", statement).out


def test_sql_of_several_statements(run: Run, warehouse: str) -> None:
    shown = run("sql", "CREATE DATABASE shop; USE shop; CREATE TABLE t (a INT); SELECT count(*) AS n FROM t", "--json")
    assert shown.objects[-1] == {"rows": [{"n": 0}]}
    assert len(shown.objects) == 4


def test_sql_stops_at_the_first_error_which_has_its_place(run: Run, shop: Lake) -> None:
    shown = run("sql", "SELECT 1 AS a;\n  SELEC 2;\nSELECT 3", "--output", "csv")
    assert (shown.code, shown.out) == (1, '"a"\n1\n')
    said = shown.err.splitlines()
    assert said[0].startswith("SqlError: line 2, column 3: ")
    assert said[1:] == ["    SELEC 2;", "    ^"]
    reported = json.loads(run("sql", "SELECT 1;\n  SELEC 2", "--json").err)
    assert (reported["error"], reported["line"], reported["column"]) == ("SqlError", 2, 3)


def test_an_unknown_table_is_pointed_at(run: Run, shop: Lake) -> None:
    shown = run("sql", "SELECT 1;\nSELECT *\nFROM shop.ordes", "--output", "csv")
    said = shown.err.splitlines()
    assert said[0].startswith("UnknownNameError: line 3, column 6: ")
    assert said[0].endswith("did you mean orders?")
    assert said[1:] == ["  FROM shop.ordes", "       ^"]


def test_sql_from_a_file_and_from_standard_input(
    run: Run, shop: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.sql"
    file.write_text("SELECT 'ä' AS a;\n-- done\n", encoding="utf-8")
    assert run("sql", "-f", str(file), "-t", "csv").out == '"a"\n"ä"\n'
    assert run("sql", "-f", str(file), "SELECT 2 AS b", "-t", "csv").out == '"a"\n"ä"\n"b"\n2\n'
    for arguments in ((), ("-",)):
        monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 3 AS c"))
        assert run("sql", *arguments, "-t", "csv").out == '"c"\n3\n'


def test_sql_with_parameters_and_a_database(run: Run, shop: Lake) -> None:
    shown = run(
        "sql", "SELECT note FROM orders WHERE id = $id AND dt = $dt", "-p", "id=2", "-p", "dt=a", "-d", "shop", "--json"
    )
    assert shown.objects == [{"rows": [{"note": "n2"}]}]


def test_the_same_code_comes_back_to_the_caller() -> None:
    assert main(["--version"]) == 0


def test_temporary_tables_of_one_run(run: Run, shop: Lake) -> None:
    text = "CREATE TEMP TABLE t AS SELECT id FROM shop.orders WHERE id = 1; INSERT INTO t VALUES (70); SELECT max(id) AS s FROM t"
    assert run("sql", text, "--json").objects[-1] == {"rows": [{"s": 70}]}
    assert run("sql", "SELECT * FROM t").code == 1
