"""Writers, compactors and somebody who rescales, all at once on a local disk: no row is lost, duplicated, or in two layouts."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet import ConflictError, InvalidError, Table, connect
from lakelet.commit.metadata.manifests import live_entries, snapshot_manifests

WRITERS, WRITES, KEYS = 3, 12, 30
Values = dict[tuple[str, int], int]


def write(table: Table, number: int, model: Values) -> None:
    """Writes keys of its own, each time until the write is committed."""
    rng = random.Random(number)
    for turn in range(WRITES):
        ids = rng.sample(range(number * KEYS, (number + 1) * KEYS), 8)
        rows = {(rng.choice("ab"), id_): turn for id_ in ids}
        data = pa.table({"p": [p for p, _ in rows], "id": [id_ for _, id_ in rows], "v": list(rows.values())})
        while True:
            try:
                table.write(data)
            except (ConflictError, InvalidError) as error:
                # Its partition has its turn soon, or had it since this write began.
                if "buckets" not in str(error):
                    raise
                table.home.clock.sleep(0.01)
            else:
                break
        model |= rows


def rescale(table: Table) -> None:
    rng = random.Random(7)
    for _ in range(5):
        buckets = rng.randint(1, 5)
        while True:
            try:
                table.rescale(buckets)
            except ConflictError:
                # Where others change the same partitions each time it gives up, and says that it is to be repeated.
                continue
            break


def compact(table: Table) -> None:
    for turn in range(8):
        # Whoever compacts the same buckets again and again may give up; nothing is lost by it.
        with suppress(ConflictError):
            table.compact(full=turn % 3 == 0)


@pytest.mark.parametrize("buckets", ["2", "-2"], ids=["fixed", "postponed"])
def test_nothing_is_lost_or_doubled(tmp_path: Path, buckets: str) -> None:
    lake = connect(str(tmp_path))
    lake.create_database("d")
    table = lake.create_table(
        "d.t",
        [("id", "BIGINT"), ("p", "STRING"), ("v", "BIGINT")],
        primary_key=["id", "p"],
        partitioned_by=["p"],
        options={"bucket": buckets, "snapshot.num-retained.min": "1000"},
    )
    models: list[Values] = [{} for _ in range(WRITERS)]
    failures: list[BaseException] = []

    def guarded(work: Callable[[Table], None]) -> None:
        try:
            work(connect(str(tmp_path)).table("d.t"))
        except BaseException as error:
            failures.append(error)

    works: list[Callable[[Table], None]] = [
        *(lambda own, n=n: write(own, n, models[n]) for n in range(WRITERS)),  # type: ignore[misc]
        rescale,
        compact,
        compact,
    ]
    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    table.rescale(3)
    table.compact()
    expected = {key: value for model in models for key, value in model.items()}
    found = table.scan().to_arrow().to_pylist()
    assert {(row["p"], row["id"]): row["v"] for row in found} == expected
    assert len(found) == len(expected)
    for snapshot in table.snapshots():
        live = live_entries(table.home, snapshot_manifests(table.home, snapshot), columns=["_TOTAL_BUCKETS"])
        pairs = set(zip(*(live.column(name).to_pylist() for name in ("_PARTITION", "_TOTAL_BUCKETS")), strict=True))
        placed = [partition for partition, total in pairs if total > 0]
        assert len(placed) == len(set(placed)), f"snapshot {snapshot.id} has a partition in two layouts"
