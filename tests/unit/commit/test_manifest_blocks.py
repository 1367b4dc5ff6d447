"""Plans that read only some blocks of a manifest find what plans that read all of it find."""

import pyarrow as pa
import pytest

from lakelet import Lake, Table
from lakelet.commit.metadata.manifests import read_manifest, snapshot_manifests
from lakelet.format.avro.container import read_header
from lakelet.format.manifest.block_directory import BLOCKS_KEY
from lakelet.storage.memory import MemoryStore

DAYS = 120
REGIONS = ("north", "south", None)


def rows_of(day: int | None, first: int) -> list[tuple[int | None, str | None, int]]:
    return [(day, region, first + place) for place, region in enumerate(REGIONS)]


def as_arrow(rows: list[tuple[int | None, str | None, int]]) -> pa.Table:
    days, regions, ids = zip(*rows, strict=True)
    return pa.table(
        {
            "day": pa.array(days, pa.int32()),
            "region": pa.array(regions, pa.string()),
            "id": pa.array(ids, pa.int64()),
        }
    )


@pytest.fixture(scope="module")
def table() -> Table:
    """One commit of 363 files in shuffled partitions, then the removal of some and a second file for others."""
    lake = Lake(MemoryStore())
    lake.create_database("d")
    made = lake.create_table("d.t", as_arrow(rows_of(1, 0)).schema, partitioned_by=["day", "region"])
    days = [*((number * 37) % DAYS for number in range(DAYS)), None]
    made.write(as_arrow([row for place, day in enumerate(days) for row in rows_of(day, 10 * place)]))
    made.write(as_arrow([(day, "north", 5000 + day) for day in range(0, DAYS, 10)]), mode="overwrite_partitions")
    made.write(as_arrow([(day, "south", 9000 + day) for day in range(DAYS)]))
    return made


def test_large_manifests_carry_a_directory(table: Table) -> None:
    snapshot = table.snapshots()[0]
    [manifest] = snapshot_manifests(table._home, snapshot)
    data = table._home.store.get(table._home.paths.manifest(manifest.name))
    assert BLOCKS_KEY in read_header(data, path="manifest").metadata
    assert read_manifest(table._home, manifest).num_rows == 3 * (DAYS + 1)


@pytest.mark.parametrize(
    "where",
    [
        "day = 30",
        "day = 30 AND region = 'north'",
        "day BETWEEN 17 AND 19",
        "day IN (3, 50, 119)",
        "day IS NULL",
        "day IS NULL AND region IS NULL",
        "region IS NULL AND day < 4",
        "region = 'south'",
        "day > 117 OR region IS NULL",
        "NOT (day < 115)",
        "day = 500",
    ],
)
def test_a_filtered_plan_finds_the_rows_that_match(table: Table, where: str) -> None:
    def order(rows: pa.Table) -> list[int]:
        return sorted(rows.column("id").to_pylist())

    everything = table.scan().to_duckdb()
    assert order(table.scan(where=where).to_arrow()) == order(everything.filter(where).to_arrow_table())


def test_a_filtered_plan_reads_few_entries(table: Table) -> None:
    plan = table.scan(where="day = 30").plan()
    assert plan.files == 4
    assert plan.files_total == 3 * (DAYS + 1) + DAYS
