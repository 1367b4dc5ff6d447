"""A backup in a bucket: copied, verified, and recovered into an empty warehouse; and a warehouse in a bucket, into a folder."""

import shutil
from pathlib import Path

import pytest

from lakelet.catalog import connect
from lakelet.service.backup.backups import Backups
from tests.services.server import S3Service
from tests.unit.service.backup.backed_up_lake import BY_DAY, COLUMNS, TABLE, events


@pytest.mark.parametrize("bucket_is", ["backup", "warehouse"])
def test_table_is_recovered_over_s3(s3_seaweedfs: S3Service, tmp_path: Path, bucket_is: str) -> None:
    in_bucket = connect(s3_seaweedfs.url(f"backup-{bucket_is}"), s3_seaweedfs.options)
    on_disk = connect(tmp_path / "lake")
    lake, backup = (on_disk, in_bucket) if bucket_is == "backup" else (in_bucket, on_disk)
    lake.create_database("default")
    table = lake.create_table(TABLE, COLUMNS, **BY_DAY)  # type: ignore[arg-type]
    table.write(events("a", "b"))
    backups = Backups(lake, backup)
    backups.trigger(TABLE)
    lake.sql("ALTER TABLE default.events ADD COLUMN more BIGINT")
    table.write(events("c", day=1), missing="default")
    assert backups.trigger(TABLE).files == 1
    rows = table.scan().to_arrow().sort_by("id")
    assert backup.table(TABLE).scan().to_arrow().sort_by("id").equals(rows)
    assert not backups.verify(TABLE).problems
    if bucket_is == "backup":
        shutil.rmtree(tmp_path / "lake" / "default.db" / "events")
    else:
        lake.drop_table(TABLE)
    assert backups.recover(TABLE).restored
    assert lake.table(TABLE).scan().to_arrow().sort_by("id").equals(rows)
    assert not lake.table(TABLE).check().damages
