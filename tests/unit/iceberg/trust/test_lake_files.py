"""What statements remove: files below the lake's folder, whatever the metadata of a prepared table names."""

import json
from pathlib import Path

import pytest

import lakelet
from lakelet.errors import InvalidError


def prepared(tmp_path: Path) -> tuple[lakelet.Lake, Path]:
    """A lake with a table whose metadata also lists a file of the user's as an old metadata file."""
    mine = tmp_path / "mine.parquet"
    folder = tmp_path / "lake"
    lake = lakelet.connect(str(folder))
    lake.sql("CREATE DATABASE iceberg.db")
    lake.sql("CREATE TABLE iceberg.db.t AS SELECT 1 AS a")
    data = next((folder / "iceberg" / "db" / "t" / "data").rglob("*.parquet"))
    mine.write_bytes(data.read_bytes())
    metadata = max((folder / "iceberg").rglob("*.metadata.json"))
    found = json.loads(metadata.read_text())
    found["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": f"file://{mine}"}]
    found["properties"] |= {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "1",
    }
    metadata.write_text(json.dumps(found))
    return lakelet.connect(str(folder)), mine


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO iceberg.db.t VALUES (2)",
        "DELETE FROM iceberg.db.t",
        "ALTER TABLE iceberg.db.t ADD COLUMN b INT",
        "CALL sys.iceberg_expire_snapshots('iceberg.db.t')",
        "DROP TABLE iceberg.db.t",
        "DROP DATABASE iceberg.db CASCADE",
    ],
)
def test_files_of_the_user_stay(tmp_path: Path, text: str) -> None:
    lake, mine = prepared(tmp_path)
    lake.sql(text)
    if not text.startswith("DROP"):
        lake.sql("INSERT INTO iceberg.db.t (a) VALUES (3)")
    assert mine.exists()


class TestElsewhere:
    """A table that stands outside of the lake's folder, as whoever prepared the lake may have said."""

    @pytest.fixture
    def lake(self, tmp_path: Path) -> lakelet.Lake:
        lake = lakelet.connect(str(tmp_path / "lake"))
        lake.sql("CREATE DATABASE iceberg.db")
        (tmp_path / "home").mkdir()
        lake.sql(f"CREATE TABLE iceberg.db.t LOCATION 'file://{tmp_path}/home' AS SELECT 1 AS a")
        (tmp_path / "home" / "letter.txt").write_text("x")
        return lake

    def test_is_written_and_read(self, lake: lakelet.Lake) -> None:
        lake.sql("UPDATE iceberg.db.t SET a = 2")
        assert lake.sql("SELECT a FROM iceberg.db.t").rows() == [(2,)]

    def test_is_dropped_and_its_files_stay(self, lake: lakelet.Lake, tmp_path: Path) -> None:
        assert "its files stay" in str(lake.sql("DROP TABLE iceberg.db.t").message)
        assert list((tmp_path / "home").rglob("*.parquet"))

    def test_orphans_are_not_looked_for(self, lake: lakelet.Lake, tmp_path: Path) -> None:
        with pytest.raises(InvalidError, match="outside of the lake's folder: no files are removed there"):
            lake.sql("CALL sys.iceberg_remove_orphan_files('iceberg.db.t')")
        assert (tmp_path / "home" / "letter.txt").exists()


def test_a_folder_behind_a_link_is_outside(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path / "lake"))
    lake.sql("CREATE DATABASE iceberg.db")
    (tmp_path / "home").mkdir()
    (tmp_path / "lake" / "iceberg" / "link").symlink_to(tmp_path / "home")
    lake.sql(f"CREATE TABLE iceberg.db.t LOCATION 'file://{tmp_path}/lake/iceberg/link' AS SELECT 1 AS a")
    lake.sql("DROP TABLE iceberg.db.t")
    assert list((tmp_path / "home").rglob("*.parquet"))
