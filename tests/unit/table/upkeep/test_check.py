"""A check finds every kind of damage, names the file and the rows it held; what is whole is found whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.catalog.lake import Lake
from lakelet.cli.main import main
from lakelet.model.damage import CheckProgress
from lakelet.storage.disk.local_store import LocalStore
from lakelet.table import Table
from tests.unit.stopped_table import LAYOUTS

COLUMNS = [("id", "BIGINT NOT NULL"), ("v", "STRING"), ("p", "INT"), ("x", "DOUBLE")]


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([None if one % 5 == 0 else f"value {one:05}" for one in ids], pa.string()),
            "p": pa.array([one % 2 for one in ids], pa.int32()),
            "x": pa.array([float("nan") if one % 7 == 0 else one / 3 for one in ids], pa.float64()),
        }
    )


def filled(folder: Path, layout: str, file_format: str = "parquet") -> Table:
    key, partitions, options = LAYOUTS[layout]
    lake = Lake(LocalStore(folder, durable=False))
    lake.create_database("d")
    chosen = {"file.format": file_format, "num-sorted-run.compaction-trigger": "4"} | options
    table = lake.create_table("d.t", COLUMNS, primary_key=key, partitioned_by=partitions, options=chosen)
    for number in range(3):
        table.write(rows(*range(number * 20, number * 20 + 30)))
    if key:
        table.delete(pa.table({"id": [3, 33]}))
        table.compact(full=True)
    else:
        table.delete(where="id IN (3, 33)")
    table.tags.create("t")
    table.branches.create("dev", tag="t")
    table.on_branch("dev").write(rows(100, 101))
    table.write(rows(1, 2, 200))
    table.analyze()
    return table


@pytest.mark.parametrize(
    ("layout", "file_format"),
    [
        *((layout, "parquet") for layout in LAYOUTS),
        ("append", "orc"),
        ("append", "avro"),
        ("keyed", "orc"),
        ("keyed", "avro"),
    ],
)
def test_a_whole_table_is_found_whole(tmp_path: Path, layout: str, file_format: str) -> None:
    table = filled(tmp_path, layout, file_format)
    told: list[CheckProgress] = []
    report = table.check(progress=told.append)
    assert report.damages == ()
    assert report.data_files == len(told) == told[-1].files_done == told[-1].files
    assert told[-1].bytes_done == report.bytes
    assert table.check(quick=True).is_sound
    for version in ({"version": 2}, {"tag": "t"}, {"branch": "dev"}):
        assert table.check(**version).is_sound  # type: ignore[arg-type]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    """Other bytes of the same length, all over the file."""
    data = bytearray(path.read_bytes())
    for place in range(0, len(data), 11):
        data[place] ^= 0x5A
    path.write_bytes(data)


def remove(path: Path) -> None:
    path.unlink()


FILES = {
    "data file": "bucket-*/data-*",
    "manifest": "manifest/manifest-[!l]*",
    "manifest list": "manifest/manifest-list-*",
    "index file": "index/index-*",
    "index manifest": "manifest/index-manifest-*",
    "statistics": "statistics/stat-*",
    "snapshot": "snapshot/snapshot-*",
    "tag": "tag/tag-*",
    "schema": "schema/schema-*",
}


@pytest.mark.parametrize("harm", [truncate, flip, remove], ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("kind", FILES)
def test_every_kind_of_damage_is_named(tmp_path: Path, kind: str, harm: Callable[[Path], None]) -> None:
    table = filled(tmp_path, "deletion vectors")
    if kind == "schema":
        table.set_options({"target-file-size": "1 mb"})
        table.write(rows(300))
    path = sorted((tmp_path / "d.db/t").glob(FILES[kind]))[0]
    if kind == "tag" and harm is remove:
        # A tag that was removed was never there.
        return
    if kind == "snapshot" and harm is remove:
        path = tmp_path / table.home.paths.snapshot(3)
    harm(path)
    damages = table.check().damages
    named = [damage for damage in damages if damage.path == str(path.relative_to(tmp_path))]
    assert named, damages
    assert named[0].kind == kind
    if kind == "data file":
        assert named[0].rows
        assert str(named[0].keys).startswith("(id) from (")
        assert (named[0].partition, named[0].bucket) == ("", 0)
    if kind == "data file" and harm is not flip:
        assert any(damage.path == named[0].path for damage in table.check(quick=True).damages)


@pytest.mark.parametrize("layout", ["append", "keyed", "crossing"])
def test_two_files_that_changed_places_are_named(tmp_path: Path, layout: str) -> None:
    """Their sizes are made equal in the manifests' eyes by swapping files that are as long as each other."""
    lake = Lake(LocalStore(tmp_path, durable=False))
    lake.create_database("d")
    key, partitions, options = LAYOUTS[layout]
    table = lake.create_table(
        "d.t", COLUMNS, primary_key=key, partitioned_by=partitions, options={"write-only": "true"} | options
    )
    table.write(rows(*range(1001, 1005)))
    table.write(rows(*range(2001, 2005)))
    paths = [tmp_path / path for path, _ in table.files()]
    by_size: dict[int, list[Path]] = {}
    for path in paths:
        by_size.setdefault(path.stat().st_size, []).append(path)
    one, other = next(pair[:2] for pair in by_size.values() if len(pair) > 1)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    found = {damage.path for damage in table.check().damages}
    assert found == {str(path.relative_to(tmp_path)) for path in (one, other)}


def test_counts_that_were_edited_are_named(tmp_path: Path) -> None:
    table = filled(tmp_path, "keyed")
    latest = table.latest_snapshot()
    assert latest is not None
    path = tmp_path / table.home.paths.snapshot(latest.id)
    text = json.loads(path.read_text())
    path.write_text(json.dumps(text | {"totalRecordCount": text["totalRecordCount"] + 1}))
    damages = table.check().damages
    assert [(one.kind, one.path) for one in damages] == [("snapshot", table.home.paths.snapshot(latest.id))]
    assert f"{text['totalRecordCount']}" in damages[0].problem


def test_the_command_line_ends_with_a_code_and_names_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = filled(tmp_path, "keyed")
    assert main(["check", "d.t", "--warehouse", str(tmp_path), "--json"]) == 0
    capsys.readouterr()
    path = tmp_path / table.files()[0][0]
    truncate(path)
    assert main(["check", "d.t", "--warehouse", str(tmp_path), "--json", "--quick"]) != 0
    assert path.name in capsys.readouterr().out
    found = table.check().damages
    rows_of = Lake(LocalStore(tmp_path)).sql("CALL sys.check('d.t')").rows()
    assert [row[2] for row in rows_of] == [damage.path for damage in found]
