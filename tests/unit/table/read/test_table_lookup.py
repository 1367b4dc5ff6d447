"""`table.lookup()`: rows of a pinned snapshot from local lookup files, which may vanish or break at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakelet
from lakelet import InvalidError, Lake, Table
from lakelet.errors import NotFoundError
from lakelet.format.sst import sst_reader
from lakelet.format.sst.point_loops import row_loop, text_loop
from lakelet.format.sst.sst_reader import SstReader
from lakelet.read.lookup.block_cache import BLOCKS
from lakelet.read.serve import serving_reader
from lakelet.read.serve.lookup_folder import lookup_folder
from lakelet.storage.memory import MemoryStore
from tests.crash.warehouse import SteppingClock

COLUMNS = [("id", "BIGINT NOT NULL"), ("name", "STRING"), ("v", "INT")]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    BLOCKS.clear()
    yield
    BLOCKS.clear()


@pytest.fixture(autouse=True, params=["compiled", "decoded"])
def _way_to_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are found by compiled loops, and where there are none in decoded blocks."""
    for loop in (row_loop, text_loop):
        if request.param == "compiled":
            loop.load_if_enabled()
        else:
            monkeypatch.setattr(loop, "enabled", False)
            monkeypatch.setattr(loop, "compiled", None)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lakelet.connect(str(tmp_path / "warehouse"))
    lake.create_database("d")
    return lake


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"id": number, "name": f"name {number}", "v": number % 7} for number in range(first, first + count)]


def make(lake: Lake, **options: str) -> Table:
    chosen = {"bucket": "2", **{key.replace("_", "."): text for key, text in options.items()}}
    return lake.create_table("d.t", COLUMNS, primary_key=["id"], options=chosen)


def local_files(tmp_path: Path) -> list[Path]:
    return sorted(tmp_path.glob("cache/lakelet/lookup/*/*.sst"))


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rows_by_key(lake: Lake, tmp_path: Path, file_format: str) -> None:
    table = lake.create_table("d.t", COLUMNS, primary_key=["id"], options={"bucket": "2", "file.format": file_format})
    table.write(rows(300))
    table.write([{"id": 5, "name": "newer", "v": None}])
    table.delete([{"id": 6}])
    with table.lookup() as lookup:
        assert lookup.get({"id": 5}) == {"id": 5, "name": "newer", "v": None}
        assert lookup.get({"id": 6}) is None
        assert lookup.get({"id": -1}) is None
        assert lookup.get({"id": 7}, columns=["v"]) == {"v": 0}
        found = lookup.get_many(pa.table({"id": [7, 6, 5, 7, 999]}), columns=["id"])
        assert found == [{"id": 7}, None, {"id": 5}, {"id": 7}, None]
        assert lookup.get_many([]) == []
        assert lookup.scan({"id": 4}, {"id": 8}).column("id").to_pylist() == [4, 5, 7]
        assert lookup.scan().num_rows == 299
    names = [path.name for path in local_files(tmp_path)]
    assert names
    for name in names:
        level, sequence, unique = name.removesuffix(".sst").split("-")
        assert (level, len(sequence), len(unique)) == ("0", 5, 8)


def test_a_handle_is_pinned_until_it_is_refreshed(lake: Lake) -> None:
    table = make(lake)
    table.write(rows(3))
    with table.lookup() as lookup:
        first = lookup.snapshot
        table.write([{"id": 1, "name": "newer", "v": 0}, {"id": 9, "name": "new", "v": 0}])
        table.compact(full=True)
        assert lookup.get({"id": 1}) == {"id": 1, "name": "name 1", "v": 1}
        assert (lookup.get({"id": 9}), lookup.snapshot) == (None, first)
        assert lookup.refresh() == table.latest_snapshot() == lookup.snapshot
        assert lookup.get({"id": 1}) == {"id": 1, "name": "newer", "v": 0}
        assert lookup.get({"id": 9}) == {"id": 9, "name": "new", "v": 0}
    with table.lookup(version=1) as old:
        assert old.get({"id": 9}) is None
        assert old.refresh() == first
        assert old.get({"id": 1}) == {"id": 1, "name": "name 1", "v": 1}


def test_an_alter_is_seen_after_a_refresh(lake: Lake) -> None:
    table = make(lake)
    table.write(rows(3))
    with table.lookup() as lookup:
        table.rename_column("name", "NAME")
        table.change_type("v", "BIGINT")
        table.add_column("name", "STRING")
        assert lookup.get({"id": 1}) == {"id": 1, "name": "name 1", "v": 1}
        lookup.refresh()
        assert lookup.get({"id": 1}) == {"id": 1, "NAME": "name 1", "v": 1, "name": None}
        assert lookup.get_many([{"id": 1}], columns=["name"]) == [{"name": None}]


def test_names_that_differ_in_case(lake: Lake) -> None:
    columns = [("Id", "STRING NOT NULL"), ("id", "STRING NOT NULL"), ("V", "INT"), ("v", "INT")]
    table = lake.create_table("d.T", columns, primary_key=["id", "Id"], options={"bucket": "3"})
    lower = lake.create_table("d.t", columns, primary_key=["id", "Id"], options={"bucket": "3"})
    table.write([{"Id": "a", "id": "b\x00", "V": 1, "v": 2}, {"Id": "b\x00", "id": "a", "V": 3, "v": 4}])
    lower.write([{"Id": "a", "id": "b\x00", "V": 5, "v": 6}])
    with table.lookup() as lookup, lower.lookup() as other:
        assert lookup.get({"Id": "a", "id": "b\x00"}) == {"Id": "a", "id": "b\x00", "V": 1, "v": 2}
        assert lookup.get({"Id": "b\x00", "id": "a"}) == {"Id": "b\x00", "id": "a", "V": 3, "v": 4}
        assert other.get({"Id": "a", "id": "b\x00"}) == {"Id": "a", "id": "b\x00", "V": 5, "v": 6}
        assert other.get({"Id": "b\x00", "id": "a"}) is None
        assert lookup.scan({"id": "a"}, {"id": "b"}).column("V").to_pylist() == [3]


def test_partitions_in_the_key(lake: Lake) -> None:
    columns = [("dt", "STRING NOT NULL"), ("id", "INT NOT NULL"), ("v", "INT")]
    options = {"bucket": "2"}
    table = lake.create_table("d.t", columns, primary_key=["dt", "id"], partitioned_by=["dt"], options=options)
    table.write([{"dt": f"d{number % 3}", "id": number, "v": number} for number in range(30)])
    table.delete([{"dt": "d1", "id": 4}])
    with table.lookup() as lookup:
        assert lookup.get({"dt": "d2", "id": 5}) == {"dt": "d2", "id": 5, "v": 5}
        assert lookup.get({"dt": "d1", "id": 5}) is None
        assert lookup.get({"dt": "d1", "id": 4}) is None
        assert lookup.scan({"dt": "d1"}, {"dt": "d2"}).column("id").to_pylist() == [1, 7, 10, 13, 16, 19, 22, 25, 28]
        assert lookup.scan({"dt": "d2", "id": 20}).column("id").to_pylist() == [20, 23, 26, 29]
        assert lookup.scan(prefix={"dt": "d"}, end={"dt": "d0", "id": 7}).column("id").to_pylist() == [0, 3, 6]


def test_rows_marked_by_deletion_vectors(lake: Lake) -> None:
    table = make(lake, **{"deletion-vectors.enabled": "true"})
    table.write(rows(100))
    with table.lookup() as lookup:
        assert lookup.get({"id": 50}) is not None
        table.delete([{"id": 50}, {"id": 51}])
        table.write([{"id": 52, "name": "newer", "v": 1}])
        assert lookup.get({"id": 50}) is not None
        lookup.refresh()
        assert [row and row["name"] for row in lookup.get_many([{"id": number} for number in range(49, 54)])] == [
            "name 49",
            None,
            None,
            "newer",
            "name 53",
        ]
        assert (lookup.get({"id": 50}), lookup.scan().num_rows) == (None, 98)


def test_many_keys_again_and_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that calls have asked for all blocks of are held whole: no block is decoded any more, and rows are the same."""
    table = make(lake)
    table.write(rows(2000))
    table.write([{"id": 5, "name": "newer", "v": None}])
    table.delete([{"id": 7}])
    wanted = [{"id": number} for number in range(-3, 2003)]
    scanned = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    expected = [scanned.get(key["id"]) for key in wanted]
    with table.lookup() as lookup:
        assert lookup.get_many(wanted) == expected
        assert lookup.get_many(wanted) == expected
        monkeypatch.setattr(SstReader, "_block", lambda *_: pytest.fail("a block is read"))
        assert lookup.get_many(wanted) == expected
        assert lookup.get_many([{"id": 5}, {"id": 7}, {"id": 9999}]) == [expected[8], None, None]


def test_lookup_files_that_are_gone_are_made_anew(lake: Lake, tmp_path: Path) -> None:
    table = make(lake)
    table.write(rows(300))
    with table.lookup() as lookup:
        assert lookup.get({"id": 5}) == rows(300)[5]
        for path in local_files(tmp_path):
            path.unlink()
            (path.parent / "LOCK").unlink(missing_ok=True)
            path.parent.rmdir() if not list(path.parent.iterdir()) else None
        BLOCKS.clear()
        assert [lookup.get({"id": number}) for number in range(300)] == rows(300)
        assert len(local_files(tmp_path)) == 2


def test_lookup_files_that_are_damaged_are_made_anew(lake: Lake, tmp_path: Path) -> None:
    table = make(lake)
    table.write(rows(300))
    with table.lookup() as lookup:
        assert lookup.get_many(rows(300)) == rows(300)
        for damage in (b"", b"LSST" + b"\0" * 500, None):
            for path in local_files(tmp_path):
                data = bytearray(path.read_bytes())
                data[60] ^= 0xFF
                path.write_bytes(bytes(data) if damage is None else damage)
            BLOCKS.clear()
            assert lookup.get_many(rows(300)) == rows(300)
            BLOCKS.clear()
            assert [lookup.get({"id": number}) for number in range(300)] == rows(300)
            assert lookup.scan().num_rows == 300


def test_files_stay_within_the_disk_limit(lake: Lake, tmp_path: Path) -> None:
    table = make(lake)
    table.write(rows(2000))
    with table.lookup() as lookup:
        assert lookup.scan().num_rows == 2000
        sizes = [path.stat().st_size for path in local_files(tmp_path)]
    table.set_options({"lookup.cache-max-disk-size": f"{max(sizes)} b", "lookup.cache-spill-compression": "zstd"})
    with table.lookup(folder=tmp_path / "small") as lookup:
        for number in range(0, 2000, 97):
            assert lookup.get({"id": number}) == rows(2000)[number]
            assert sum(path.stat().st_size for path in (tmp_path / "small").glob("*/*.sst")) <= max(sizes)
    table.set_options({"lookup.cache-max-disk-size": "100 b"})
    with table.lookup() as lookup, pytest.raises(InvalidError, match=r"lookup\.cache-max-disk-size"):
        lookup.get_many(rows(2000))


def test_files_are_dropped_when_nobody_uses_them(tmp_path: Path) -> None:
    clock = SteppingClock()
    lake = Lake(MemoryStore("aging"), clock=clock)
    lake.create_database("d")
    table, other = make(lake), lake.create_table("d.u", COLUMNS, primary_key=["id"], options={"bucket": "1"})
    table.write(rows(20))
    other.write(rows(20))
    with table.lookup() as lookup, other.lookup() as second:
        assert lookup.scan().num_rows == 20
        assert len(local_files(tmp_path)) == 2
        clock.sleep(3601)
        assert second.get({"id": 1}) == rows(20)[1]
        assert len(local_files(tmp_path)) == 1
        assert lookup.get_many(rows(20)) == rows(20)


def test_a_snapshot_that_expired_is_told(lake: Lake) -> None:
    table = make(lake)
    table.write(rows(20))
    with table.lookup() as lookup, table.lookup() as warm:
        assert warm.scan().num_rows == 20
        lookup_folder("unused").reset()
        table.write(rows(20), mode="overwrite")
        table.expire_snapshots(retain_last=1)
        # What was looked up before is still there, as every handle of this process sees.
        assert lookup.get({"id": 3}) == rows(20)[3]
    with pytest.raises(NotFoundError):
        table.lookup(version=1)


def test_threads_share_a_handle(lake: Lake) -> None:
    table = make(lake)
    table.write(rows(500))
    wrong: list[object] = []
    start = threading.Barrier(6)
    with table.lookup() as lookup:

        def read(seed: int) -> None:
            start.wait()
            for number in range(seed, 500, 7):
                found = lookup.get({"id": number})
                # Rows are only ever changed to these values, a commit at a time.
                if found is None or found["name"] not in (f"name {number}", "newer"):
                    wrong.append(found)
                if number % 50 == seed:
                    lookup.refresh()

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(5)]
        for thread in threads:
            thread.start()
        start.wait()
        for number in range(0, 500, 100):
            table.write([{"id": number, "name": "newer", "v": 0}])
        for thread in threads:
            thread.join()
        assert wrong == []
        lookup.refresh()
        assert lookup.get({"id": 100}) == {"id": 100, "name": "newer", "v": 0}


def test_folders_of_processes_that_are_gone_are_removed(lake: Lake, tmp_path: Path) -> None:
    table = make(lake)
    table.write(rows(20))
    script = (
        "import lakelet, sys, time\n"
        f"t = lakelet.connect({str(tmp_path / 'warehouse')!r}).table('d.t')\n"
        "l = t.lookup()\n"
        "assert l.scan().num_rows == 20\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        theirs = local_files(tmp_path)
        with table.lookup() as lookup:
            assert lookup.scan().num_rows == 20
        assert len(theirs) == 2
        assert set(theirs) < set(local_files(tmp_path))
        other.send_signal(signal.SIGKILL)
        other.wait()
        with table.lookup(folder=tmp_path / "cache" / "lakelet" / "lookup") as lookup:
            lookup_folder(str(tmp_path / "cache" / "lakelet" / "lookup")).reset()
            assert lookup.scan().num_rows == 20
        assert not set(theirs) & set(local_files(tmp_path))
    finally:
        other.kill()
        other.wait()
        for stream in (other.stdin, other.stdout):
            if stream is not None:
                stream.close()


def test_a_forked_process_has_files_of_its_own(lake: Lake, tmp_path: Path) -> None:
    table = make(lake)
    table.write(rows(20))
    with table.lookup() as lookup:
        assert lookup.get({"id": 3}) == rows(20)[3]
        before = local_files(tmp_path)
        child = os.fork()
        if child == 0:
            os._exit(0 if lookup.get({"id": 3}) == rows(20)[3] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert set(before) <= set(local_files(tmp_path))
        assert lookup.scan().num_rows == 20


def test_what_is_refused(lake: Lake, tmp_path: Path) -> None:
    table = make(lake)
    table.write(rows(3))
    lookup = table.lookup()
    with pytest.raises(InvalidError, match="expected a mapping"):
        lookup.get(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="'id' is missing"):
        lookup.get({"name": "x"})
    with pytest.raises(InvalidError, match="id"):
        lookup.get({"id": None})
    with pytest.raises(InvalidError, match="first columns of the key"):
        lookup.scan({"v": 1})
    with pytest.raises(InvalidError, match="end: expected a mapping"):
        lookup.scan(end=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidError, match="id"):
        lookup.scan({"id": "no number"})
    with pytest.raises(lakelet.LakeletError, match="nothing"):
        lookup.get({"id": 1}, columns=["nothing"])
    lookup.close()
    for call in (lambda: lookup.get({"id": 1}), lookup.refresh, lookup.scan, lambda: lookup.get_many([{"id": 1}])):
        with pytest.raises(InvalidError, match="closed"):
            call()
    for folder in ("", 5, "s3://bucket/x"):
        with pytest.raises(InvalidError, match="folder"):
            table.lookup(folder=folder)  # type: ignore[arg-type]
    append = lake.create_table("d.a", COLUMNS)
    with pytest.raises(InvalidError, match="no primary key"):
        append.lookup()
    table.branches.create("b")
    table.set_options({"scan.fallback-branch": "b"})
    with pytest.raises(InvalidError, match=r"scan\.fallback-branch"):
        table.lookup()
    other = lake.create_table(
        "d.z", COLUMNS, primary_key=["id"], options={"bucket": "1", "lookup.cache-spill-compression": "gzip"}
    )
    other.write(rows(1))
    with other.lookup() as lookup, pytest.raises(InvalidError, match="gzip"):
        lookup.get({"id": 0})


def test_a_table_without_a_snapshot_has_no_rows(lake: Lake) -> None:
    table = make(lake)
    with table.lookup() as lookup:
        assert (lookup.get({"id": 1}), lookup.get_many([{"id": 1}]), lookup.scan().num_rows) == (None, [None], 0)
        table.write(rows(2))
        lookup.refresh()
        assert lookup.get({"id": 1}) == rows(2)[1]


def test_many_keys_are_those_of_get(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several files, retracts, ties, deletion vectors, NULLs, duplicates and absent keys."""
    columns = [
        ("id", "INT NOT NULL"),
        ("t", "STRING"),
        ("d", "DOUBLE"),
        ("b", "BYTES"),
        ("l", "ARRAY<INT>"),
        ("s", "SMALLINT"),
    ]
    for name, options in (("a", {}), ("b", {"deletion-vectors.enabled": "true"}), ("c", {"merge-engine": "first-row"})):
        table = lake.create_table(f"d.{name}", columns, primary_key=["id"], options={"bucket": "1", **options})
        for turn in range(3):
            table.write(
                [
                    {"id": n, "t": None if n % 5 == 0 else f"ü{n}-{turn}", "d": n / 3, "b": b"x" * n, "l": [n], "s": -n}
                    for n in range(turn, 200, turn + 1)
                ]
            )
        if name != "c":
            table.delete([{"id": n} for n in range(0, 200, 7)])
        wanted = [{"id": n} for n in (*range(-3, 203), 5, 5)]
        scanned = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
        expected = [scanned.get(key["id"]) for key in wanted]
        with table.lookup() as lookup:
            lookup.get_many(wanted)
            assert lookup.get_many(wanted) == expected
            with monkeypatch.context() as patch:
                patch.setattr(SstReader, "found_rows", lambda *_: pytest.fail("rows go the long way"))
                assert lookup.get_many(wanted) == expected
                assert lookup.get_many(wanted, columns=["l", "id"]) == [
                    row and {"l": row["l"], "id": row["id"]} for row in expected
                ]
                assert lookup.get_many([]) == []
            found = lookup.get_many([{"id": 1, "t": "ignored"}, {"id": 2.0}])
            assert found == [table.get({"id": 1}), table.get({"id": 2})]


@pytest.mark.parametrize("bucket", ["1", "2"])
@pytest.mark.parametrize("compacted", [False, True])
def test_ranges_over_many_blocks(lake: Lake, bucket: str, compacted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file or several, cut into pieces wherever: every bound gives the rows between, once and in order."""
    monkeypatch.setattr(sst_reader, "_READ_AHEAD_BYTES", 2000)
    monkeypatch.setattr(serving_reader, "_SCAN_ROWS", 150)
    options = {"bucket": bucket, "sst.block-size": "500 b", "num-sorted-run.compaction-trigger": "99"}
    table = lake.create_table("d.t", COLUMNS, primary_key=["id"], options=options)
    table.write(rows(1000))
    table.write([{"id": number, "name": "newer", "v": None} for number in range(0, 1000, 3)])
    table.delete([{"id": number} for number in range(0, 1000, 7)])
    if compacted:
        table.compact(full=True)
    expected = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    with table.lookup() as lookup:
        for low, high in (
            (None, None),
            (0, 1000),
            (1, 2),
            (400, 401),
            (399, 777),
            (-5, 3),
            (990, 2000),
            (7, 7),
            (9, 3),
        ):
            start, end = (None if one is None else {"id": one} for one in (low, high))
            wanted = [
                expected[number]
                for number in sorted(expected)
                if (low is None or number >= low) and (high is None or number < high)
            ]
            assert lookup.scan(start, end).to_pylist() == wanted
        assert lookup.scan(columns=["v"]).column_names == ["v"]
