"""Partitions with their counts and bounds are those of the store, however the version came to be."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import lakelet
from lakelet.catalog.lake import Lake
from lakelet.catalog.metadata_cache import native_partitions

NAME = "d.t"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = lakelet.connect(str(tmp_path))
    found.create_database("d")
    found.create_table(NAME, [("p", "STRING"), ("v", "INT")], partitioned_by=["p"])
    return found


def write(lake: Lake, values: range, mode: str = "append") -> None:
    lake.table(NAME).write([{"p": f"{value % 7}", "v": value} for value in values], mode=mode)


@pytest.mark.parametrize("seed", range(3))
def test_partitions_after_any_change_are_those_that_a_fresh_cache_computes(
    lake: Lake, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    write(lake, range(20))
    for _ in range(16):
        first = rng.randrange(100)
        match rng.choice(["append", "append", "append", "delete", "overwrite", "rollback", "schema"]):
            case "append":
                write(lake, range(first, first + rng.randrange(1, 5)))
            case "delete":
                lake.table(NAME).delete(where=f"v % 5 = {first % 5}")
            case "overwrite":
                write(lake, range(first, first + 2), "overwrite_partitions")
            case "rollback" if len(lake.table(NAME).snapshots()) > 2:
                lake.table(NAME).rollback(lake.table(NAME).snapshots()[-2].id)
            case _:
                lake.sql(f"ALTER TABLE {NAME} ALTER COLUMN v TYPE BIGINT")
        lake.cache.refresh_table(NAME)
        cached, fresh = (one.cache.get_partitions(NAME) for one in (lake, lakelet.connect(str(tmp_path))))
        assert cached is not None
        assert cached == fresh
        assert list(cached.partitions) == list(fresh.partitions)


def test_a_commit_has_only_its_own_partitions_computed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    write(lake, range(70))
    lake.cache.get_partitions(NAME)
    computed: list[int] = []
    compute = native_partitions._partition_bounds

    def counted(rows: Any, bounds: Any) -> Any:
        computed.append(len(rows))
        return compute(rows, bounds)

    monkeypatch.setattr(native_partitions, "_partition_bounds", counted)
    write(lake, range(3, 5))
    found = lake.cache.get_partitions(NAME)
    assert found is not None
    # Two partitions, of two files each by now.
    assert computed == [2, 2]
    assert [found.partitions[f"p={number}"].file_count for number in (2, 3, 4, 5)] == [1, 2, 2, 1]
    assert {one.record_count for one in found.partitions.values()} == {10, 11}
