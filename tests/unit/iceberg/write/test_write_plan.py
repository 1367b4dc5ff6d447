"""The write plan, and what is refused before any writer begins."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform, UnknownTransform
from pyiceberg.types import LongType, NestedField, StringType

from lakelet.errors import InvalidError
from lakelet.iceberg.transforms import transform_of
from lakelet.iceberg.write.write_plan import write_plan
from tests.unit.iceberg.ice_tables import JOB, ice_table, spec_of, written

_SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "s", StringType()))


def test_goes_to_executors(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _SCHEMA, spec_of((2, IdentityTransform(), "s")))
    with table.library.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "b")
    plan = write_plan(table.reloaded(), JOB)
    assert plan.io is plan.io
    assert plan.spec is plan.spec
    sent = pickle.dumps(plan)
    assert len(sent) < 4_000
    found = pickle.loads(sent)
    assert found == plan
    assert sorted(found.partition_specs_json) == [0, 1]
    assert (found.partition_spec_id, [field.name for field in found.spec.fields]) == (1, ["s", "b"])
    assert (found.file_format, found.compression, found.target_file_size) == ("parquet", "zstd", 512 << 20)
    assert found.location == f"file://{tmp_path}/db/t"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _SCHEMA)
    table.library.io.properties["s3.secret-access-key"] = "hush"
    assert "hush" not in repr(write_plan(table, JOB))


def test_options_of_one_write(tmp_path: Path) -> None:
    table = ice_table(tmp_path, _SCHEMA, properties={"write.parquet.compression-codec": "gzip"})
    assert write_plan(table, JOB).compression == "gzip"
    plan = write_plan(table, JOB, {"write.parquet.compression-codec": "Snappy", "write.target-file-size-bytes": "7"})
    assert (plan.compression, plan.target_file_size) == ("snappy", 7)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("write.format.default", "orc", "only Parquet is written"),
        ("write.parquet.compression-codec", "lzo", "expected one of zstd.*found 'lzo'"),
        ("write.parquet.compression-level", "high", "expected a number, found 'high'"),
        ("write.target-file-size-bytes", "0", "expected a number from 1 on, found '0'"),
        ("write.parquet.row-group-limit", "many", "expected a number from 1 on, found 'many'"),
        ("write.metadata.metrics.default", "all", "found 'all'"),
        ("write.parquet.bloom-filter-fpp.column.s", "2", "expected a number between 0 and 1, found '2'"),
    ],
)
def test_properties_that_make_no_sense(tmp_path: Path, name: str, text: str, message: str) -> None:
    properties = {name: text, "write.parquet.bloom-filter-enabled.column.s": "true"}
    table = ice_table(tmp_path, _SCHEMA)
    with pytest.raises(InvalidError, match=f"table ice.db.t.*{name}.*{message}"):
        write_plan(table, JOB, properties)


def test_transforms_that_are_not_known() -> None:
    field = spec_of((2, UnknownTransform("zorder[3]"), "z")).fields[0]
    with pytest.raises(InvalidError, match=r"partition field 'z': transform 'zorder\[3\]' is not known"):
        transform_of(field, StringType())
    field = spec_of((2, BucketTransform(2**31), "z")).fields[0]
    with pytest.raises(InvalidError, match="expected a number from 1 to 2147483647"):
        transform_of(field, StringType())


def test_parquet_is_written_as_asked(tmp_path: Path) -> None:
    properties = {
        "write.parquet.compression-codec": "gzip",
        "write.parquet.compression-level": "9",
        "write.parquet.bloom-filter-enabled.column.s": "true",
        "write.parquet.page-row-limit": "10",
    }
    plain = {key: text for key, text in properties.items() if "bloom" not in key}
    made = []
    for name, asked in (("bloom", properties), ("plain", plain)):
        (tmp_path / name).mkdir()
        batch = pa.record_batch({"id": range(50), "s": ["x"] * 50})
        made += written(ice_table(tmp_path / name, _SCHEMA, properties=asked), [batch])
    data, other = made
    metadata = pq.read_metadata(data.file_path.removeprefix("file://"))
    assert {metadata.row_group(0).column(at).compression for at in range(2)} == {"GZIP"}
    assert data.file_size > other.file_size, "the filter takes place"


def test_repeating_columns_get_a_dictionary(tmp_path: Path) -> None:
    [data] = written(ice_table(tmp_path, _SCHEMA), [pa.record_batch({"id": range(500), "s": ["x", "y"] * 250})])
    group = pq.read_metadata(data.file_path.removeprefix("file://")).row_group(0)
    assert [group.column(at).has_dictionary_page for at in range(2)] == [False, True]
