"""Compaction finds old rows by key in order, in data files or in lookup files: the same rows, vectors and changelogs each way."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.compact.progress import CompactionProgress
from lakelet.read.lookup.block_cache import BLOCKS
from lakelet.read.serve import lookup_choice
from lakelet.read.serve.lookup_folder import lookup_folder
from tests.property.lookup_ways import WAYS, compact_by
from tests.tiers.examples import FIRST_SEED, examples
from tests.unit.compact.keyed_bucket import KeyedBucket

COLUMNS = (("id", "BIGINT"), ("v", "INT"), ("t", "STRING"), ("s", "INT"))
COUNT = 300
# A top level that outweighs what comes: it stays as it is, and compaction stops below it.
STAYING = {"num-sorted-run.compaction-trigger": "100", "compaction.size-ratio": "0"}
TABLES: dict[str, dict[str, str]] = {
    "vectors": {"deletion-vectors.enabled": "true"},
    "vectors of 64 bits, lookup": {
        "deletion-vectors.enabled": "true",
        "deletion-vectors.bitmap64": "true",
        "changelog-producer": "lookup",
    },
    "vectors, sequence": {"deletion-vectors.enabled": "true", "sequence.field": "s"},
    "first row": {"merge-engine": "first-row"},
    "first row, lookup": {"merge-engine": "first-row", "changelog-producer": "lookup"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup, sequence": {
        "changelog-producer": "lookup",
        "sequence.field": "s",
        "sequence.field.sort-order": "descending",
    },
    "lookup, folded": {"changelog-producer": "lookup", "merge-engine": "partial-update", "ignore-delete": "true"},
    "full-compaction": {"changelog-producer": "full-compaction"},
}


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of this test's lookup files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "lakelet" / "lookup"


def filled(options: dict[str, str]) -> KeyedBucket:
    bucket = KeyedBucket(COLUMNS, options={**STAYING, **options})
    bucket.write(*((number, 0, f"text {number}", 5) for number in range(COUNT)))
    bucket.table.compact(full=True)
    return bucket


def filled_and_marked(turns: int = 2) -> KeyedBucket:
    bucket = filled(TABLES["vectors of 64 bits, lookup"])
    for turn in range(turns):
        bucket.write((turn, turn + 1, "new", 5), (COUNT + turn, 1, "more", 5))
        bucket.table.compact()
    return bucket


def history(bucket: KeyedBucket, source: random.Random, *, deletes: bool) -> list[object]:
    """What some writes and compactions lead to: rows, vectors and changes after each, and how many keys were looked up."""
    shown: list[object] = []
    seen: list[CompactionProgress] = []
    for turn in range(5):
        ids = source.sample(range(COUNT + 20), source.randint(1, 25))
        rows = [(one, turn, source.choice(["a", None]), source.choice([1, 5, 9, None])) for one in ids]
        kinds = [source.choice(["+I", "+I", "-D"]) if deletes else "+I" for _ in ids]
        before = bucket.table.latest_snapshot()
        bucket.write(*rows, kinds=kinds)
        bucket.table.compact(full=turn == 3, progress=seen.append)
        after = bucket.table.latest_snapshot()
        assert before is not None
        assert after is not None
        changes = bucket.table.changes(before.id, after.id).to_pylist()
        shown.append((bucket.rows(), sorted(bucket.vectors().values(), key=repr), sorted(map(repr, changes))))
        if seen:
            assert seen[-1].found <= max(seen[-1].looked_up, 1) * 2
    return shown


@pytest.mark.parametrize("name", TABLES)
def test_each_way_gives_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path, name: str) -> None:
    deletes = "merge-engine" not in TABLES[name]
    for seed in range(FIRST_SEED, FIRST_SEED + examples(3)):
        found = {}
        for way in WAYS:
            compact_by(monkeypatch, way)
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
            BLOCKS.reset()
            found[way] = history(filled(TABLES[name]), random.Random(seed), deletes=deletes)
        assert all(one == found["in order"] for one in found.values()), seed
    if name not in ("lookup, folded", "full-compaction"):
        assert lookup_folder(str(cache)).names


def damage_one(cache: Path) -> None:
    for path in cache.glob("*/*.sst"):
        os.truncate(path, 40)


def remove_all(cache: Path) -> None:
    shutil.rmtree(cache)


def put_a_file_there(cache: Path) -> None:
    shutil.rmtree(cache)
    cache.write_text("no folder")


def nothing(cache: Path) -> None:
    """Leave it as it is."""


@pytest.mark.parametrize("harm", [damage_one, remove_all, put_a_file_there, nothing])
def test_the_folder_may_vanish_at_any_moment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path, harm: Callable[[Path], None]
) -> None:
    compact_by(monkeypatch, "lookup files")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bucket = filled_and_marked()
    assert lookup_folder(str(cache)).names
    harm(cache)
    BLOCKS.reset()
    seen: list[CompactionProgress] = []
    before = bucket.table.latest_snapshot()
    bucket.write((7, 9, "old", 5), (8, 9, "old", 5), (999, 9, "none", 5))
    made = bucket.table.compact(progress=seen.append)
    assert before is not None
    assert made is not None
    assert (seen[-1].looked_up, seen[-1].found) == (6, 4)
    rows = {row[0]: row for row in bucket.rows()}
    assert (rows[7], rows[999], len(rows)) == ((7, 9, "old", 5), (999, 9, "none", 5), COUNT + 3)
    changes = bucket.table.changes(before.id, made.id).to_pylist()
    assert [(row["_row_kind"], row["id"], row["v"]) for row in changes] == [
        ("-U", 7, 0), ("+U", 7, 9), ("-U", 8, 0), ("+U", 8, 9), ("+I", 999, 9),
    ]  # fmt: skip


def test_a_lookup_file_that_has_no_room_is_not_tried_again_soon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    compact_by(monkeypatch, "lookup files")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bucket = filled({**TABLES["vectors"], "lookup.cache-max-disk-size": "10 b"})
    monkeypatch.setattr(lookup_choice, "MAKING", 1)
    monkeypatch.setattr(lookup_choice, "KEY_CELLS", 0)
    for turn in range(3):
        bucket.write((turn, turn + 1, "new", 5))
        bucket.table.compact()
    assert len(bucket.rows()) == COUNT
    assert lookup_folder(str(cache)).names == []


@pytest.mark.parametrize("options", [{"lookup.cache-max-disk-size": "0 b"}, {"lookup.cache.bloom.filter.fpp": "2"}])
def test_without_lookup_files_data_files_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path, options: dict[str, Any]
) -> None:
    compact_by(monkeypatch, "lookup files")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bucket = filled({**TABLES["vectors"], **options})
    bucket.write((3, 1, "new", 5))
    bucket.table.compact()
    assert [row for row in bucket.rows() if row[1]] == [(3, 1, "new", 5)]
    assert len(bucket.rows()) == COUNT
    assert not cache.exists()


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro", "sst"])
def test_a_lookup_file_is_made_once_that_much_was_decoded(
    monkeypatch: pytest.MonkeyPatch, cache: Path, file_format: str
) -> None:
    monkeypatch.setattr(lookup_choice, "MAKING", 2)
    monkeypatch.setattr(lookup_choice, "KEY_CELLS", 0)
    bucket = filled({**TABLES["vectors of 64 bits, lookup"], "file.format": file_format})
    (large,) = bucket.files()
    made = []
    for turn in range(12):
        # What was decoded is not in memory any longer.
        BLOCKS.reset()
        bucket.write((turn, turn + 1, "new", 5))
        bucket.table.compact()
        made.append(any(name.startswith(f"{large.level}-") for name in lookup_folder(str(cache)).names))
    assert made[0] is False
    # Groups of blocks of an SST file cost little, and are not counted.
    assert made[-1] is (file_format != "sst")
    assert sorted(made) == made
    assert len(bucket.rows()) == COUNT


def test_a_schema_that_changed_is_looked_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = []
    for way in WAYS:
        compact_by(monkeypatch, way)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        bucket = filled_and_marked(1)
        table = bucket.table
        table.rename_column("v", "w")
        bucket.table.add_column("more", "INT")
        before = bucket.table.latest_snapshot()
        bucket.write((7, 9, "new", 5, 1), (299, 9, "new", 5, 1))
        made = bucket.table.compact()
        assert before is not None
        assert made is not None
        found.append(
            (bucket.rows(), list(bucket.vectors().values()), bucket.table.changes(before.id, made.id).to_pylist())
        )
    assert all(one == found[0] for one in found)
    assert [row["_row_kind"] for row in found[0][2]] == ["-U", "+U", "-U", "+U"]
