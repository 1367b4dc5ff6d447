"""Partition terms and the specs made of them."""

from pathlib import Path

import pytest
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, ListType, LongType, NestedField, StringType, StructType, TimestampType

from lakelet.errors import InvalidError
from lakelet.iceberg.schema.alteration import PartitionChange, alter_partitioning
from lakelet.iceberg.schema.partition_terms import PartitionTerm, new_spec, shown_terms
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.ice_tables import ice_table

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "ts", TimestampType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "n", StructType(NestedField(5, "a", StringType()))),
    NestedField(6, "l", ListType(7, LongType())),
    NestedField(8, "d", DoubleType()),
)
DAYS, HOURS, BUCKET = (
    PartitionTerm(("ts",), "day"),
    PartitionTerm(("ts",), "hour"),
    PartitionTerm(("id",), "bucket[16]"),
)


def shown(spec: PartitionSpec) -> list[tuple[int, int, str, str]]:
    return [(field.source_id, field.field_id, str(field.transform), field.name) for field in spec.fields]


def changed(
    table: IcebergTable, *, dropped: tuple[PartitionTerm | str, ...] = (), added: tuple[PartitionTerm, ...] = ()
) -> IcebergTable:
    after = alter_partitioning(table, lambda _: PartitionChange(dropped, added))
    assert after is not None
    return after


def test_names_of_a_new_table() -> None:
    terms = [
        PartitionTerm(("s",)),
        DAYS,
        BUCKET,
        PartitionTerm(("n", "a"), "truncate[4]"),
        PartitionTerm(("id",), "truncate[10]", "tens"),
    ]
    assert shown(new_spec(SCHEMA, terms)) == [
        (3, 1000, "identity", "s"),
        (2, 1001, "day", "ts_day"),
        (1, 1002, "bucket[16]", "id_bucket"),
        (5, 1003, "truncate[4]", "n.a_trunc"),
        (1, 1004, "truncate[10]", "tens"),
    ]
    assert [str(term) for term in terms] == ["s", "days(ts)", "bucket(16, id)", "truncate(4, n.a)", "truncate(10, id)"]


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ([PartitionTerm(("s",), "day")], r"days\(s\): column 's' is string, of which there is no day"),
        ([PartitionTerm(("d",), "bucket[4]")], "column 'd' is double"),
        ([PartitionTerm(("l",))], "column 'l' is list<long>"),
        ([PartitionTerm(("l", "element"))], "partitioned by columns, and by fields of a ROW"),
        ([PartitionTerm(("id",), "bucket[0]")], "from 1 on, found 0"),
        ([DAYS, HOURS], "field 'ts_day' already tells as much of ts"),
        ([BUCKET, BUCKET], "field 'id_bucket' already tells"),
        ([BUCKET, PartitionTerm(("s",), "bucket[16]", "id_bucket")], "called 'id_bucket' is there already"),
        ([PartitionTerm(("id",), "bucket[16]", "s")], "name that exists in schema: s"),
    ],
)
def test_refused_of_a_new_table(terms: list[PartitionTerm], reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        new_spec(SCHEMA, terms)


class TestChanges:
    def test_three_specs_and_back_to_the_first(self, tmp_path: Path) -> None:
        table = ice_table(tmp_path, SCHEMA, new_spec(SCHEMA, [DAYS]))
        table = changed(table, dropped=("ts_day",), added=(HOURS,))
        assert (table.spec_id, shown(table.metadata.spec())) == (1, [(2, 1001, "hour", "ts_hour")])
        table = changed(table, added=(BUCKET,))
        # Not the name that a new table gives it.
        assert shown(table.metadata.spec())[1] == (1, 1002, "bucket[16]", "id_bucket_16")
        assert [str(term) for term in shown_terms(table)] == ["hours(ts)", "bucket(16, id)"]
        table = changed(table, dropped=(HOURS, "id_bucket_16"), added=(DAYS,))
        # The field of old has its old id, and the spec is the first one.
        assert (table.spec_id, shown(table.metadata.spec())) == (0, [(2, 1000, "day", "ts_day")])

    def test_a_name_that_is_free_again(self, tmp_path: Path) -> None:
        table = ice_table(tmp_path, SCHEMA, new_spec(SCHEMA, [DAYS]))
        table = changed(table, dropped=("ts_day",), added=(PartitionTerm(("ts",), "hour", "ts_day"),))
        assert shown(table.metadata.spec()) == [(2, 1001, "hour", "ts_day")]

    def test_version_1_keeps_a_void_field(self, tmp_path: Path) -> None:
        table = ice_table(tmp_path, SCHEMA, new_spec(SCHEMA, [DAYS, BUCKET]), properties={"format-version": "1"})
        table = changed(table, dropped=(DAYS,))
        assert shown(table.metadata.spec()) == [(2, 1000, "void", "ts_day"), (1, 1001, "bucket[16]", "id_bucket")]
        table = changed(table, added=(DAYS,))
        assert shown(table.metadata.spec())[0] == (2, 1000, "void", "ts_day_1000")
        assert shown(table.metadata.spec())[2] == (2, 1002, "day", "ts_day")
        assert [str(term) for term in shown_terms(table)] == ["bucket(16, id)", "days(ts)"]

    def test_nothing_to_do(self, tmp_path: Path) -> None:
        table = ice_table(tmp_path, SCHEMA, new_spec(SCHEMA, [DAYS]))
        assert alter_partitioning(table, lambda _: PartitionChange(["ts_day"], [DAYS])) is None

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (PartitionChange(["ts_hour"]), "no partition field 'ts_hour'; there are ts_day"),
            (PartitionChange([HOURS]), r"no partition field 'hours\(ts\)'; there are ts_day"),
            (PartitionChange([], [DAYS]), "partitioned by it already, as field 'ts_day'"),
            (PartitionChange([], [PartitionTerm(("id",), "bucket[2]", "ts_day")]), "called 'ts_day' is there already"),
            (PartitionChange([], [PartitionTerm(("id",), "bucket[2]", "s")]), "name that exists in schema"),
        ],
    )
    def test_refused(self, tmp_path: Path, change: PartitionChange, reason: str) -> None:
        table = ice_table(tmp_path, SCHEMA, new_spec(SCHEMA, [DAYS]))
        with pytest.raises(InvalidError, match=reason):
            alter_partitioning(table, lambda _: change)
        assert table.reloaded().spec_id == 0
