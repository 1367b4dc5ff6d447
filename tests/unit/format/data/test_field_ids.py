"""Field ids in data files, by the rule that Java Paimon follows."""

import pyarrow as pa

from lakelet.format.data.field_ids import schema_with_ids
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field, Row, renumber

BASE = 536_870_911


def ids(field: pa.Field) -> dict[str, int]:
    """Every path inside a field with its id."""
    found = {field.name: int(field.metadata[b"PARQUET:field_id"])}
    kind = field.type
    inner = []
    if pa.types.is_map(kind):
        inner = [kind.key_field, kind.item_field]
    elif pa.types.is_list(kind):
        inner = [kind.value_field]
    elif pa.types.is_struct(kind):
        inner = list(kind)
    for child in inner:
        found |= {f"{field.name}.{path}": number for path, number in ids(child).items()}
    return found


def of(text: str, number: int = 3) -> dict[str, int]:
    (field,) = schema_with_ids([Field(number, "c", renumber(parse_type(text), 100)[0])])
    return ids(field)


def test_columns_and_members_of_rows_have_their_own() -> None:
    assert of("INT") == {"c": 3}
    assert of("ROW<a INT, b ROW<d INT>>") == {"c": 3, "c.a": 100, "c.b": 102, "c.b.d": 101}


def test_elements_keys_and_values_have_derived_ones() -> None:
    own = 3 * 1024
    assert of("ARRAY<INT>") == {"c": 3, "c.element": BASE + own + 1}
    assert of("MAP<STRING, INT>") == {"c": 3, "c.key": BASE - own - 1, "c.value": BASE + own + 1}
    assert of("MULTISET<STRING>") == {"c": 3, "c.key": BASE - own - 1, "c.value": BASE + own + 1}


def test_depth_counts_from_the_enclosing_field() -> None:
    own = 3 * 1024
    found = of("ARRAY<MAP<STRING, ARRAY<INT>>>")
    assert found == {
        "c": 3,
        "c.element": BASE + own + 1,
        "c.element.key": BASE - own - 2,
        "c.element.value": BASE + own + 2,
        "c.element.value.element": BASE + own + 3,
    }
    inside = of("ROW<a ARRAY<INT>>")
    assert inside["c.a.element"] == BASE + inside["c.a"] * 1024 + 1


def test_nullability_stays() -> None:
    row = renumber(parse_type("ROW<a INT NOT NULL>"), 10)[0]
    assert isinstance(row, Row)
    (field,) = schema_with_ids([Field(1, "c", row)])
    assert field.nullable
    assert not field.type.field("a").nullable
    (mapped,) = schema_with_ids([Field(1, "c", parse_type("MAP<STRING, INT NOT NULL>"))])
    assert not mapped.type.key_field.nullable
    assert not mapped.type.item_field.nullable
