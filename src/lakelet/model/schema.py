"""A version of a table's schema, and the checks that every version must pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakelet.errors import InvalidError, NotFoundError
from lakelet.model.text import check_text
from lakelet.model.types import (
    STRINGS,
    TIMESTAMPS,
    Array,
    Atomic,
    DataType,
    Field,
    Kind,
    Map,
    Multiset,
    Row,
    renumber,
    with_nullable,
)
from lakelet.options import (
    BUCKET,
    IGNORE_DELETE,
    MERGE_ENGINE,
    RECORD_LEVEL_EXPIRE_TIME,
    RECORD_LEVEL_TIME_FIELD,
    ROWKIND_FIELD,
    SEQUENCE_FIELD,
    TableOptions,
)

SCHEMA_VERSION = 3
_SHOWN_COLUMNS = 8
# The first five are Paimon's internal columns, the others are Lakelet's.
SPECIAL_NAMES = ("_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID", "_row_kind", "__lakelet_row")
KEY_PREFIX = "_KEY_"
# The prefix of Lakelet's internal columns.
OWN_PREFIX = "__lakelet_"
# The types of a column that holds the time of a row.
ROW_TIMES = (Kind.INT, Kind.BIGINT, *TIMESTAMPS)


@dataclass(frozen=True, slots=True, repr=False)
class TableSchema:
    """Columns, keys and options of one schema version."""

    id: int
    fields: tuple[Field, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None
    time_ms: int
    version: int = SCHEMA_VERSION

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name} {field.type}" for field in self.fields[:_SHOWN_COLUMNS])
        more = len(self.fields) - _SHOWN_COLUMNS
        return f"TableSchema({self.id}, {shown}{f' and {more} more' if more > 0 else ''})"

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> Field:
        """The column of that name."""
        for field in self.fields:
            if field.name == name:
                return field
        raise NotFoundError(f"column {name!r} is not in the table; its columns are {', '.join(self.names)}")

    @property
    def partition_fields(self) -> tuple[Field, ...]:
        """The columns of the partition key, in key order."""
        return tuple(self.field(name) for name in self.partition_keys)

    @property
    def partition_types(self) -> tuple[DataType, ...]:
        """The types of the partition key."""
        return tuple(field.type for field in self.partition_fields)

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without the partition columns: it identifies the rows of one partition, and files are sorted by it."""
        return tuple(name for name in self.primary_keys if name not in self.partition_keys)

    @property
    def trimmed_key_fields(self) -> tuple[Field, ...]:
        """The columns of the trimmed primary key, in key order."""
        return tuple(self.field(name) for name in self.trimmed_primary_keys)

    @property
    def crosses_partitions(self) -> bool:
        """Whether a row may move between partitions, since the primary key does not hold all partition columns."""
        return bool(self.primary_keys) and not set(self.partition_keys) <= set(self.primary_keys)

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns whose hash decides the bucket: `bucket-key`, else the primary key without the partition."""
        text = self.options.get("bucket-key")
        if text:
            return tuple(name.strip() for name in text.split(","))
        return self.trimmed_primary_keys


def new_schema(
    columns: Sequence[Field],
    *,
    partition_keys: Sequence[str],
    primary_keys: Sequence[str],
    options: Mapping[str, str],
    comment: str | None,
    time_ms: int,
) -> TableSchema:
    """The first schema of a table: fields numbered from 0, primary-key columns made NOT NULL, everything checked."""
    fields: list[Field] = []
    next_id = 0
    for column in columns:
        own, next_id = next_id, next_id + 1
        inner, next_id = renumber(column.type, next_id)
        if column.name in primary_keys:
            inner = with_nullable(inner, False)
        fields.append(replace(column, id=own, type=inner))
    schema = TableSchema(
        0, tuple(fields), next_id - 1, tuple(partition_keys), tuple(primary_keys), dict(options), comment, time_ms
    )
    check_schema(schema)
    return schema


def check_schema(schema: TableSchema) -> None:
    """Raise InvalidError unless the schema is valid."""
    if not schema.fields:
        raise InvalidError("a table needs at least one column")
    _check_names(schema.names, "column")
    _check_comment(schema.comment, "comment of the table")
    for key, text in schema.options.items():
        check_text(text, f"option {key!r}")
    for field in schema.fields:
        _check_comment(field.description, f"comment of column {field.name!r}")
        if field.name in SPECIAL_NAMES or field.name.startswith((KEY_PREFIX, OWN_PREFIX)):
            raise InvalidError(f"column name {field.name!r} is reserved")
        _check_type(field.type, field.name)
    for role, keys in (("partition", schema.partition_keys), ("primary", schema.primary_keys)):
        _check_names(keys, f"{role} key column")
        for name in keys:
            if name not in schema.names:
                raise InvalidError(f"{role} key column {name!r} is not a column; there are {', '.join(schema.names)}")
            if not isinstance(schema.field(name).type, Atomic):
                raise InvalidError(
                    f"{role} key column {name!r} has the type {schema.field(name).type}; a key needs a type without children"
                )
    for name in schema.partition_keys:
        if name.startswith("."):
            raise InvalidError(
                f"partition key column {name!r}: expected a name that does not begin with '.', for folders are called after it, "
                "and those of such names are hidden"
            )
    if len(schema.partition_keys) == len(schema.fields):
        raise InvalidError("all columns are partition keys; at least one column must hold data")
    _check_bucket(schema)
    _check_primary_key(schema)
    check_row_time(schema)


def _check_primary_key(schema: TableSchema) -> None:
    """Primary keys must identify the rows of a partition, and options about rows of one key must name columns."""
    options = TableOptions(schema.options)
    keys, partitions = ", ".join(schema.primary_keys), ", ".join(schema.partition_keys)
    if schema.primary_keys and not schema.trimmed_primary_keys:
        raise InvalidError(
            f"the primary key ({keys}) consists of partition columns ({partitions}) alone: a partition would hold one row"
        )
    sequence = options.get(SEQUENCE_FIELD) or ()
    if schema.crosses_partitions:
        if options.get(BUCKET) != -1:
            raise InvalidError(
                f"the primary key ({keys}) lacks partition columns of ({partitions}), so that rows may change their partition: "
                f"that needs 'bucket' = -1, found {options.get(BUCKET)}"
            )
        if sequence:
            raise InvalidError(
                f"option 'sequence.field' cannot be used where the primary key ({keys}) lacks partition columns of ({partitions})"
            )
        if options.get(IGNORE_DELETE) and options.get(MERGE_ENGINE) == "deduplicate":
            raise InvalidError(
                f"option 'ignore-delete' keeps a row in its old partition when its key moves to another: it cannot be used where "
                f"the primary key ({keys}) lacks partition columns of ({partitions})"
            )
    for option, names in ((SEQUENCE_FIELD, sequence), (ROWKIND_FIELD, options.get(ROWKIND_FIELD))):
        given = (names,) if isinstance(names, str) else names or ()
        if given and not schema.primary_keys:
            raise InvalidError(f"option '{option.name}' needs a table with a primary key")
        if given:
            _check_names(given, f"'{option.name}' column")
        for name in given:
            if name not in schema.names:
                raise InvalidError(
                    f"option '{option.name}': {name!r} is not a column; there are {', '.join(schema.names)}"
                )
            data_type = schema.field(name).type
            if not isinstance(data_type, Atomic) or (option is ROWKIND_FIELD and data_type.kind not in STRINGS):
                expected = "text" if option is ROWKIND_FIELD else "a type without children"
                raise InvalidError(f"option '{option.name}': column {name!r} is {data_type}, expected {expected}")
    if sequence and options.get(MERGE_ENGINE) == "first-row":
        raise InvalidError("option 'sequence.field' cannot be used with 'merge-engine' = 'first-row'")


def check_row_time(schema: TableSchema) -> None:
    """Raise InvalidError unless the column by which rows expire, if one is set, holds a time."""
    options = TableOptions(schema.options)
    name = options.get(RECORD_LEVEL_TIME_FIELD)
    if name is None:
        if options.get(RECORD_LEVEL_EXPIRE_TIME) is not None:
            raise InvalidError(
                f"option '{RECORD_LEVEL_EXPIRE_TIME.name}' needs '{RECORD_LEVEL_TIME_FIELD.name}', the column that tells the age"
            )
        return
    if name not in schema.names:
        raise InvalidError(
            f"option '{RECORD_LEVEL_TIME_FIELD.name}': {name!r} is not a column; there are {', '.join(schema.names)}"
        )
    data_type = schema.field(name).type
    if not isinstance(data_type, Atomic) or data_type.kind not in ROW_TIMES:
        raise InvalidError(
            f"option '{RECORD_LEVEL_TIME_FIELD.name}': column {name!r} is {data_type}, expected INT, BIGINT or TIMESTAMP"
        )


def _check_bucket(schema: TableSchema) -> None:
    keys = schema.bucket_keys
    if "bucket-key" in schema.options:
        _check_names(keys, "bucket-key column")
        for name in keys:
            if name not in schema.names:
                raise InvalidError(
                    f"option 'bucket-key': {name!r} is not a column; there are {', '.join(schema.names)}"
                )
            if not isinstance(schema.field(name).type, Atomic):
                raise InvalidError(f"option 'bucket-key': {name!r} has the nested type {schema.field(name).type}")
            if name in schema.partition_keys:
                raise InvalidError(
                    f"option 'bucket-key': {name!r} is a partition column, which is the same for all rows of a partition"
                )
            if schema.primary_keys and name not in schema.primary_keys:
                raise InvalidError(
                    f"option 'bucket-key': {name!r} is not in the primary key ({', '.join(schema.primary_keys)}), so that rows "
                    "of one key could lie in two buckets"
                )
    if TableOptions(schema.options).get(BUCKET) == -1 and "bucket-key" in schema.options:
        raise InvalidError("option 'bucket-key' needs a fixed 'bucket'; found 'bucket' = -1")
    check_bucket_count(schema)


def check_bucket_count(schema: TableSchema) -> None:
    """Raise InvalidError unless the table's `bucket` option fits its keys."""
    buckets = TableOptions(schema.options).get(BUCKET)
    if buckets > 0 and not schema.bucket_keys:
        raise InvalidError(
            f"option 'bucket' is {buckets}, so 'bucket-key' must name the columns that decide the bucket"
        )
    if buckets == 0 or (buckets < -1 and not schema.primary_keys):
        raise InvalidError(f"option 'bucket': expected -1 or a number above 0 for this table, found {buckets}")


def _check_names(names: Sequence[str], role: str) -> None:
    seen: set[str] = set()
    for name in names:
        check_text(name, f"name of a {role}")
        if not name or not name.strip():
            raise InvalidError(f"a {role} has an empty name")
        if name in seen:
            raise InvalidError(f"{role} {name!r} is given twice")
        seen.add(name)


def _check_comment(comment: object, what: str) -> None:
    if comment is not None:
        check_text(comment, what)


def _check_type(data_type: DataType, where: str) -> None:
    match data_type:
        case Row(fields):
            if not fields:
                raise InvalidError(f"column {where!r}: a ROW needs at least one field")
            _check_names([field.name for field in fields], f"field of {where!r}")
            for field in fields:
                _check_comment(field.description, f"comment of column {where + '.' + field.name!r}")
                _check_type(field.type, f"{where}.{field.name}")
        case Array(element) | Multiset(element):
            _check_type(element, f"{where}.element")
        case Map(key, value):
            _check_type(key, f"{where}.key")
            _check_type(value, f"{where}.value")
        case Atomic(Kind.DECIMAL, precision, scale) if scale > precision:
            raise InvalidError(f"column {where!r}: DECIMAL scale {scale} exceeds its precision {precision}")
        case _:
            return
