from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.iceberg.scan import scan_of
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.ice_tables import ice_table, spec_of

_SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", StringType()), NestedField(3, "d", DoubleType()))


def _appended(table: IcebergTable, *rows: tuple[int | None, str | None, float | None]) -> IcebergTable:
    columns = zip(*rows, strict=True)
    kinds = (pa.int64(), pa.string(), pa.float64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    table.library.append(pa.table(arrays, names=["id", "p", "d"]))
    return table.reloaded()


@pytest.fixture
def table(tmp_path: Path) -> IcebergTable:
    """Three partitions, and one row without."""
    spec = spec_of((2, IdentityTransform(), "p"))
    made = ice_table(tmp_path, _SCHEMA, spec, properties={"format-version": "2"})
    return _appended(made, (1, "a", 0.5), (2, "b", 1.5), (3, "c", None), (4, None, 2.5))


def _count(table: IcebergTable, where: str | None) -> tuple[int, int, int]:
    plan = scan_of(table, where=where).plan
    return len(plan.files), plan.manifests_read, plan.files_total


@pytest.mark.parametrize(
    ("where", "files"),
    [
        *((None, 4), ("p = 'a'", 1), ("p > 'a'", 2), ("p IS NULL", 1), ("p IS NOT NULL", 3), ("p LIKE 'c%'", 1)),
        *(("id = 2", 1), ("id > 2", 2), ("id IN (1, 4)", 2), ("d IS NULL", 1), ("d < 1", 1), ("p <> 'a'", 3)),
        *(("id = 1 AND p = 'b'", 0), ("id = 1 OR p = 'b'", 2), ("NOT (p = 'a')", 3), ("lower(p) = 'a'", 4)),
    ],
)
def test_files_are_left_out(table: IcebergTable, where: str | None, files: int) -> None:
    assert _count(table, where)[0] == files


def test_manifests_are_left_out(table: IcebergTable) -> None:
    table = _appended(table, (9, "z", 9.0))
    assert _count(table, "p = 'z'") == (1, 1, 5)
    assert _count(table, "p > 'zz'") == (0, 0, 5)
    assert _count(table, "id >= 9") == (1, 2, 5)


def test_files_of_several_specs(table: IcebergTable) -> None:
    with table.library.update_spec() as update:
        update.remove_field("p")
        update.add_field("id", BucketTransform(4), "id_bucket")
    table = _appended(table.reloaded(), (2, "a", 0.5), (50, "b", 0.5))
    assert _count(table, "p = 'a'")[0] == 2
    assert _count(table, "id = 2")[0] == 2
    assert {file.spec_id for file in scan_of(table, where="id = 2").files} == {0, 1}


def test_tables_of_version_1(tmp_path: Path) -> None:
    made = ice_table(tmp_path, _SCHEMA, properties={"format-version": "1"})
    made = _appended(_appended(made, (1, "a", 0.5)), (2, "b", None))
    files = scan_of(made, where="id = 2").files
    assert [(file.row_count, file.sequence_number) for file in files] == [(1, 0)]
    with made.library.transaction() as change:
        change.upgrade_table_version(2)
    upgraded = _appended(made.reloaded(), (3, "c", None))
    assert sorted(file.sequence_number for file in scan_of(upgraded).files) == [0, 0, 1]


def _manifest(table: IcebergTable) -> Path:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    (manifest,) = snapshot.manifests(table.library.io)
    return Path(manifest.manifest_path.removeprefix("file://"))


def test_a_manifest_that_is_gone(table: IcebergTable) -> None:
    path = _manifest(table)
    path.unlink()
    with pytest.raises(
        NotFoundError, match=rf"table ice.db.t: file://{path} is gone: its snapshot may have been expired"
    ):
        scan_of(table)


def test_a_manifest_that_is_damaged(table: IcebergTable) -> None:
    path = _manifest(table)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CorruptionError, match=path.name):
        scan_of(table)
    path.write_bytes(b"nonsense")
    with pytest.raises(CorruptionError, match=path.name):
        scan_of(table)
