"""Which columns an aggregate function takes, and what is wrong with its options if they do not fit the column."""

from __future__ import annotations

from lakelet.lsm.engine.aggregate.column_rule import ColumnRule
from lakelet.lsm.engine.aggregate.equal_values import has_codes
from lakelet.model.types import FLOATS, INTEGERS, MAX_LENGTH, Array, Atomic, DataType, Kind, Map, Row
from lakelet.options import DISTINCT, LIST_AGG_DELIMITER, NESTED_KEY, TIME_FIELD


def anything(data_type: DataType) -> bool:
    """Every type."""
    return True


def is_number(data_type: DataType) -> bool:
    """Numbers, also DECIMAL."""
    return isinstance(data_type, Atomic) and data_type.kind in (*INTEGERS, *FLOATS, Kind.DECIMAL)


def is_boolean(data_type: DataType) -> bool:
    """BOOLEAN."""
    return isinstance(data_type, Atomic) and data_type.kind is Kind.BOOLEAN


def is_comparable(data_type: DataType) -> bool:
    """Types whose values have an order."""
    return isinstance(data_type, Atomic) and data_type.kind is not Kind.BOOLEAN


def is_text(data_type: DataType) -> bool:
    """STRING: text of any length."""
    return isinstance(data_type, Atomic) and data_type.kind is Kind.VARCHAR and data_type.precision == MAX_LENGTH


def is_bytes(data_type: DataType) -> bool:
    """VARBINARY."""
    return isinstance(data_type, Atomic) and data_type.kind is Kind.VARBINARY


def is_array(data_type: DataType) -> bool:
    """ARRAY."""
    return isinstance(data_type, Array)


def is_array_of_rows(data_type: DataType) -> bool:
    """ARRAY of ROW."""
    return isinstance(data_type, Array) and isinstance(data_type.element, Row)


def is_map(data_type: DataType) -> bool:
    """MAP whose keys have an equality."""
    return isinstance(data_type, Map) and has_codes(data_type.key)


def is_map_of_rows(data_type: DataType) -> bool:
    """MAP whose values are rows of two fields or more."""
    return (
        is_map(data_type)
        and isinstance(data_type, Map)
        and isinstance(data_type.value, Row)
        and len(data_type.value.fields) > 1
    )


def delimiter_problem(rule: ColumnRule) -> str | None:
    """listagg splits at a delimiter."""
    if rule.settings.distinct and not rule.settings.delimiter:
        return f"'{LIST_AGG_DELIMITER.of(rule.column)}' has no characters, at which distinct texts would be split"
    return None


def elements_problem(rule: ColumnRule) -> str | None:
    """collect compares elements."""
    assert isinstance(rule.type, Array)
    if rule.settings.distinct and not has_codes(rule.type.element):
        return f"'{DISTINCT.of(rule.column)}' compares elements, but {rule.type.element} has no equality in Paimon"
    return None


def nested_problem(rule: ColumnRule) -> str | None:
    """The key of nested rows is in them."""
    assert isinstance(rule.type, Array)
    assert isinstance(rule.type.element, Row)
    option, types = NESTED_KEY.of(rule.column), {field.name: field.type for field in rule.type.element.fields}
    if rule.function == "nested_partial_update" and not rule.settings.nested_key:
        return f"it needs '{option}'"
    for name in rule.settings.nested_key:
        if name not in types:
            return f"'{option}': {name!r} is not in {rule.type}"
        if not isinstance(types[name], Atomic):
            return f"'{option}': {name!r} is {types[name]}, expected a type without children"
    return None


def time_problem(rule: ColumnRule) -> str | None:
    """The time of an entry is a text in its row."""
    assert isinstance(rule.type, Map)
    assert isinstance(rule.type.value, Row)
    fields = rule.type.value.fields
    wanted = rule.settings.time_field
    field = next((field for field in fields if field.name == wanted), None) if wanted else fields[-1]
    option = TIME_FIELD.of(rule.column)
    if field is None:
        return f"'{option}': {wanted!r} is not in {rule.type.value}"
    if not isinstance(field.type, Atomic) or field.type.kind not in (Kind.CHAR, Kind.VARCHAR):
        return f"'{option}': {field.name!r} is {field.type}, expected STRING, whose texts are compared"
    return None
