"""The merge specification of a table's schema."""

from lakelet.lsm.merge_spec import MergeSpec
from lakelet.model.type_parser import parse_type
from tests.unit.read.key_value_table import schema_of_columns


def test_the_spec_of_a_table() -> None:
    schema = schema_of_columns(
        {"p": "STRING NOT NULL", "k": "INT NOT NULL", "v": "BIGINT", "w": "INT"},
        ["p", "k"],
        partition=["p"],
        sequence_field="v,w",
        sequence_field_sort__order="descending",
        ignore__delete="true",
    )
    spec = MergeSpec.of(schema, drop_deletes=False)
    assert spec.key == (("k", parse_type("INT NOT NULL")),)
    assert [name for name, _ in spec.versions] == ["v", "w"]
    assert spec.deciding == ("k", "v", "w")
    assert (spec.descending, spec.ignore_delete, spec.drop_deletes, spec.partition) == (True, True, False, ("p",))
