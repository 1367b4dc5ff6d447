import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard

from lakelet import Lake, connect
from lakelet.errors import InvalidError
from lakelet.sql.files.export import Target
from tests.unit.cli.conftest import Run

QUERY = "SELECT id, note FROM shop.orders WHERE dt = 'a' ORDER BY id"
ROWS = [{"id": 0, "note": "n0"}, {"id": 1, "note": "again"}, {"id": 2, "note": "n2"}]


def exported(run: Run, path: Path, *arguments: str) -> bytes:
    (done,) = run("export", QUERY, str(path), *arguments, "--json").objects
    assert (done["rows"], done["bytes"]) == (3, path.stat().st_size)
    assert [other.name for other in path.parent.iterdir()] == [path.name]
    return path.read_bytes()


def test_csv(run: Run, shop: Lake, tmp_path: Path) -> None:
    text = b'"id","note"\n0,"n0"\n1,"again"\n2,"n2"\n'
    assert exported(run, tmp_path / "x.csv") == text
    assert gzip.decompress(exported(run, tmp_path / "x.csv", "--overwrite", "--compression", "gzip")) == text


def test_csv_as_it_is_wanted(run: Run, shop: Lake, tmp_path: Path) -> None:
    assert exported(run, tmp_path / "x.csv", "--no-header", "--delimiter", ";") == b'0;"n0"\n1;"again"\n2;"n2"\n'


def test_json(run: Run, shop: Lake, tmp_path: Path) -> None:
    assert json.loads(exported(run, tmp_path / "x.json")) == ROWS


def test_ndjson_compressed_as_its_name_ends(run: Run, shop: Lake, tmp_path: Path) -> None:
    packed = exported(run, tmp_path / "x.ndjson.zst")
    with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
        lines = reader.read().decode().splitlines()
    assert [json.loads(line) for line in lines] == ROWS


@pytest.mark.parametrize(("asked", "codec"), [((), "ZSTD"), (("--compression", "snappy"), "SNAPPY")])
def test_parquet(run: Run, shop: Lake, tmp_path: Path, asked: tuple[str, ...], codec: str) -> None:
    path = tmp_path / "x.parquet"
    exported(run, path, *asked)
    assert pq.read_table(path).to_pylist() == ROWS
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == codec


@pytest.mark.parametrize(("source", "rows"), [("shop.orders", 4), ("SHOP.Orders", 4), ("shop.orders$branch_dev", 4)])
def test_tables(run: Run, shop: Lake, tmp_path: Path, source: str, rows: int) -> None:
    assert run("export", source, str(tmp_path / "x.csv"), "--json").objects[0]["rows"] == rows


def test_system_tables(run: Run, shop: Lake, tmp_path: Path) -> None:
    assert run("export", "shop.orders$snapshots", str(tmp_path / "x.csv"), "--json").objects[0]["rows"] == 4


def test_to_standard_output(run: Run, shop: Lake) -> None:
    shown = run("export", QUERY, "-", "--format", "ndjson")
    assert [json.loads(line) for line in shown.out.splitlines()] == ROWS
    assert shown.err == ""


def test_what_is_there_stays_unless_it_is_to_go(run: Run, shop: Lake, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("mine", encoding="utf-8")
    shown = run("export", QUERY, str(path))
    assert (shown.code, shown.err.split(":")[0]) == (1, "AlreadyExistsError")
    assert path.read_text(encoding="utf-8") == "mine"
    assert run("export", QUERY, str(path), "--overwrite").code == 0


def test_a_failed_export_leaves_nothing(run: Run, shop: Lake, tmp_path: Path) -> None:
    late = "SELECT CASE WHEN n = 999999 THEN error('late') ELSE n END AS n FROM range(1000000) t(n)"
    assert run("export", late, str(tmp_path / "x.csv")).code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "form", "compression", "delimiter", "said"),
    [
        ("s3://b/x.csv", None, None, None, "a file of this machine"),
        ("x.csv", None, "snappy", None, "snappy goes with Parquet"),
        ("x.csv", None, None, "ab", "expected one sign"),
        ("x", None, None, None, "say --format"),
    ],
)
def test_what_cannot_be_written(
    path: str, form: str | None, compression: str | None, delimiter: str | None, said: str
) -> None:
    with pytest.raises(InvalidError, match=said):
        Target.of(path, form, compression, delimiter=delimiter, header=True, overwrite=False)


@pytest.mark.parametrize("inside", ["d.db/t/snapshot/snapshot-9.csv", "views/d/v.json", "catalogs/x.json"])
def test_no_file_is_written_among_those_of_the_lake(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    root = tmp_path / "wh"
    connect(str(root)).create_database("d")
    (root / inside).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(root)
    for path in (root / inside, tmp_path / "link" / inside, inside):
        shown = run("export", "SELECT 1 AS a", str(path), "-w", str(root))
        assert (shown.code, "among the files of the lake" in shown.err) == (1, True)
    assert not (root / inside).exists()
    assert run("export", "SELECT 1 AS a", str(root / "mine.csv"), "-w", str(root)).code == 0
