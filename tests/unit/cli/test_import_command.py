import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelet import Lake
from lakelet.errors import InvalidError
from lakelet.sql.files.file_formats import Source, format_of
from tests.unit.cli.conftest import Run

ROWS = [{"id": 1, "code": "007", "at": "2026-01-02"}, {"id": 2, "code": None, "at": None}]


def write_files(folder: Path) -> dict[str, str]:
    """The same rows in every format."""
    lines = [json.dumps(row) for row in ROWS]
    csv = "id,code,at\n1,007,2026-01-02\n2,,\n"
    texts = {
        "rows.csv": csv,
        "rows.tsv": csv.replace(",", "\t"),
        "rows.json": f"[{','.join(lines)}]",
        "rows.ndjson": "\n".join(lines),
        "rows.jsonl": "\n".join(lines) + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "rows.csv.gz").write_bytes(gzip.compress(csv.encode()))
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "rows.parquet")
    return {name: str(folder / name) for name in (*texts, "rows.csv.gz", "rows.parquet")}


@pytest.fixture
def lake(shop: Lake) -> Lake:
    shop.create_table("shop.codes", [("id", "BIGINT"), ("code", "STRING"), ("at", "STRING"), ("more", "INT")])
    return shop


@pytest.mark.parametrize(
    "name", ["rows.csv", "rows.tsv", "rows.json", "rows.ndjson", "rows.jsonl", "rows.csv.gz", "rows.parquet"]
)
def test_values_are_read_as_the_types_of_the_table(run: Run, lake: Lake, tmp_path: Path, name: str) -> None:
    files = write_files(tmp_path)
    (done,) = run("import", "shop.codes", files[name], "--json").objects
    assert (done["files"], done["rows"], done["snapshot"]) == (1, 2, 1)
    rows = lake.table("shop.codes").scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [{**row, "more": None} for row in ROWS]


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.ndjson", "rows.parquet"])
def test_a_table_is_made_from_what_a_file_holds(run: Run, shop: Lake, tmp_path: Path, name: str) -> None:
    files = write_files(tmp_path)
    arguments = ("--create", "--primary-key", "id", "--table-option", "bucket=1")
    run("import", "shop.fresh", files[name], *arguments, "--json").objects  # noqa: B018 - it checks the exit code.
    table = shop.table("shop.fresh")
    assert [field.name for field in table.schema.fields] == ["id", "code", "at"]
    assert table.schema.primary_keys == ("id",)
    assert table.options == {"bucket": "1"}
    assert table.scan().count() == 2


def test_a_column_that_changes_its_kind_far_down_is_seen(run: Run, shop: Lake, tmp_path: Path) -> None:
    file = tmp_path / "far.csv"
    file.write_text("n\n" + "1\n" * 50_000 + "x\n", encoding="utf-8")
    assert run("import", "shop.far", str(file), "--create").code == 0
    assert str(shop.table("shop.far").schema.field("n").type) == "STRING"
    assert shop.table("shop.far").scan().count() == 50_001


def test_many_files_are_one_commit(run: Run, lake: Lake, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part-{number}.csv").write_text(f"id\n{number}\n", encoding="utf-8")
    (done,) = run("import", "shop.codes", str(tmp_path / "part-*.csv"), "--json").objects
    assert (done["files"], done["rows"]) == (3, 3)
    assert [snapshot.id for snapshot in lake.table("shop.codes").snapshots()] == [1]


def test_overwriting(run: Run, lake: Lake, tmp_path: Path) -> None:
    files = write_files(tmp_path)
    for _ in range(2):
        run("import", "shop.codes", files["rows.csv"], "--mode", "overwrite")
    assert lake.table("shop.codes").scan().count() == 2


def test_csv_as_it_comes(run: Run, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "odd.csv"
    file.write_text("id;code\n1;-\n", encoding="utf-8")
    assert run("import", "shop.codes", str(file), "--delimiter", ";", "--null", "-").code == 0
    assert lake.table("shop.codes").scan(columns=["id", "code"]).to_arrow().to_pylist() == [{"id": 1, "code": None}]


def test_csv_without_names_is_read_in_the_order_of_the_table(run: Run, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "bare.csv"
    file.write_text("1,007\n2,008\n", encoding="utf-8")
    assert run("import", "shop.codes", str(file), "--no-header").code == 0
    rows = lake.table("shop.codes").scan(columns=["id", "code"]).to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "code": "007"}, {"id": 2, "code": "008"}]
    file.write_text("1,2,3,4,5\n", encoding="utf-8")
    assert "has 5 columns, the table has 4" in run("import", "shop.codes", str(file), "--no-header").err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,cod\n1,x\n", "column 'cod' of the file is not in the table; did you mean code?"),
        ("id\nx\n", "wrong.csv, line 2; Original Line: x; "),
    ],
)
def test_wrong_files_change_nothing(run: Run, lake: Lake, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "wrong.csv"
    file.write_text(text, encoding="utf-8")
    shown = run("import", "shop.codes", str(file))
    assert shown.code == 1
    assert said in shown.err
    assert shown.err.count("\n") == 1
    assert lake.table("shop.codes").latest_snapshot() is None


def test_a_failed_import_leaves_no_new_table(run: Run, shop: Lake, tmp_path: Path) -> None:
    file = tmp_path / "keys.csv"
    file.write_text("id,x\n1,a\n,b\n", encoding="utf-8")
    shown = run("import", "shop.keys", str(file), "--create", "--primary-key", "id", "--table-option", "bucket=1")
    assert shown.code == 1
    assert "id" in shown.err
    assert not shop.table_exists("shop.keys")


def test_a_table_that_is_there_is_not_made_again(run: Run, lake: Lake, tmp_path: Path) -> None:
    files = write_files(tmp_path)
    shown = run("import", "shop.codes", files["rows.csv"], "--create")
    assert (shown.code, shown.err.split(":")[0]) == (1, "AlreadyExistsError")
    assert lake.table_exists("shop.codes")


def test_formats_by_name() -> None:
    assert format_of("x/Y.CSV") == "csv"
    assert format_of("a.ndjson.zst") == "ndjson"
    assert format_of("s3://b/a.pq") == "parquet"
    with pytest.raises(InvalidError, match="say --format"):
        format_of("a.gz")


def test_files_of_two_formats_are_two_imports(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    with pytest.raises(InvalidError, match="csv and json"):
        Source.of([files["rows.csv"], files["rows.json"]], None, delimiter=None, header=True, null=None)


def test_names_with_quotes_are_read(run: Run, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "o'hara [1].csv"
    file.write_text("id\n7\n", encoding="utf-8")
    assert run("import", "shop.codes", str(file)).code == 0


def test_a_file_that_is_not_utf8_names_the_option(run: Run, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "latin.csv"
    file.write_bytes("id,code\n1,é\n".encode("latin-1"))
    assert "is not UTF-8: say its encoding, such as --encoding latin-1" in run("import", "shop.codes", str(file)).err
    assert run("import", "shop.codes", str(file), "--encoding", "latin-1").code == 0
    assert lake.table("shop.codes").scan(columns=["code"]).to_arrow()["code"].to_pylist() == ["é"]


def test_an_empty_text_is_null_only_where_that_is_said(run: Run, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "empty.csv"
    file.write_text('id,code\n1,""\n2,\n', encoding="utf-8")
    for arguments, codes in (((), ["", None]), (("--null", ""), [None, None]), (("--null", "-"), ["", ""])):
        assert run("import", "shop.codes", str(file), "--mode", "overwrite", *arguments).code == 0
        found = lake.table("shop.codes").scan(columns=["id", "code"]).to_arrow().sort_by("id")
        assert found["code"].to_pylist() == codes


def test_signs_of_other_dialects(run: Run, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "mysql.csv"
    file.write_text("id,code\n1,'it\\'s'\n", encoding="utf-8")
    assert run("import", "shop.codes", str(file), "--quote", "'", "--escape", "\\").code == 0
    assert lake.table("shop.codes").scan(columns=["code"]).to_arrow()["code"].to_pylist() == ["it's"]
    assert "--quote 'ab': expected one sign" in run("import", "shop.codes", str(file), "--quote", "ab").err


@pytest.mark.parametrize("value", ["null", "[]", "[null]", '{"a": null}', '{"a": {"b": null}}', '[{"a": [null]}]'])
def test_a_table_is_made_where_nothing_but_null_is_inside(run: Run, shop: Lake, tmp_path: Path, value: str) -> None:
    file = tmp_path / "nulls.ndjson"
    file.write_text(f'{{"id": 1, "u": {value}}}\n', encoding="utf-8")
    assert run("import", "shop.nulls", str(file), "--create").err == ""
    assert shop.table("shop.nulls").scan().to_arrow()["u"].to_pylist() == [json.loads(value)]


def test_a_database_that_is_not_there_is_named_with_what_makes_it(run: Run, lake: Lake, tmp_path: Path) -> None:
    files = write_files(tmp_path)
    shown = run("import", "nowhere.codes", files["rows.csv"])
    assert shown.code == 1
    assert "--create" in shown.err
    assert "CREATE DATABASE" in shown.err


def test_durations_of_files_are_whole_numbers(run: Run, lake: Lake, tmp_path: Path) -> None:
    file = tmp_path / "spans.parquet"
    pq.write_table(pa.table({"id": [1], "code": pa.array([5], pa.duration("us"))}), file)
    assert "column 'code' is STRING; the data has int64" in run("import", "shop.codes", str(file)).err
    assert run("import", "shop.spans", str(file), "--create").code == 0
    assert lake.table("shop.spans").scan().to_arrow()["code"].to_pylist() == [5]
