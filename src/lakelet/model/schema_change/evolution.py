"""Schema changes as pure functions: the schema before, the change, the schema after or the reason why not.

A change is allowed if every old file stays readable by field id. A column is identified by its name or, inside nested types, by
a dotted path in which `element` is the element of an ARRAY and `key` and `value` those of a MAP:
`address.city`, `items.element.price`, `labels.value.since`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakelet.errors import AlreadyExistsError, InvalidError, NotFoundError
from lakelet.model.default_expressions import default_expression_key
from lakelet.model.literals import parse_literal
from lakelet.model.schema import TableSchema, check_schema
from lakelet.model.schema_change.nested_evolution import evolved_type
from lakelet.model.text import check_text
from lakelet.model.types import Array, DataType, Field, Map, Multiset, Row, renumber, with_nullable
from lakelet.options import SEQUENCE_GROUP, TableOptions

Path = str | Sequence[str]
Fields = tuple[Field, ...]


def add_column(
    schema: TableSchema,
    path: Path,
    data_type: DataType,
    *,
    default: str | None = None,
    comment: str | None = None,
    after: str | None = None,
    first: bool = False,
) -> TableSchema:
    """Add a column; rows written before have NULL in it."""
    parents, name = _split(schema, path, new=True)
    if not data_type.nullable:
        raise InvalidError(
            f"column {name!r}: a column added to a table must be nullable, for rows written before have NULL in it"
        )
    if default is not None:
        if parents:
            raise InvalidError(
                f"column {_text(path)!r}: only a column of its own can have a default, not a field inside another"
            )
        parse_literal(default, data_type, f"default of column {name!r}")
    own = schema.highest_field_id + 1
    numbered, next_id = renumber(data_type, own + 1)
    field = Field(own, name, numbered, comment, default)

    def insert(fields: Fields) -> Fields:
        if any(existing.name == name for existing in fields):
            raise AlreadyExistsError(f"column {_text(path)!r} exists")
        place = _place(fields, after=after, first=first)
        if (
            place is None
            and not parents
            and schema.options.get("add-column-before-partition", "false").lower() == "true"
        ):
            places = [index for index, existing in enumerate(fields) if existing.name in schema.partition_keys]
            place = min(places, default=None)
        place = len(fields) if place is None else place
        return (*fields[:place], field, *fields[place:])

    changed = replace(_at(schema, parents, insert), highest_field_id=next_id - 1)
    check_schema(changed)
    return changed


def rename_column(schema: TableSchema, path: Path, new_name: str) -> TableSchema:
    """Rename a column; its values stay."""
    parents, name = _split(schema, path)
    if not parents:
        _refuse_key(schema, name, "renamed", (schema.partition_keys, "partition"))

    def rename(fields: Fields) -> Fields:
        if new_name != name and any(field.name == new_name for field in fields):
            raise AlreadyExistsError(f"column {new_name!r} exists")
        return tuple(replace(field, name=new_name) if field.name == name else field for field in fields)

    changed = _at(schema, parents, rename)
    if not parents:
        keys = tuple(new_name if key == name else key for key in schema.primary_keys)
        changed = replace(changed, primary_keys=keys, options=_renamed_options(schema, name, new_name))
    check_schema(changed)
    return changed


def drop_column(schema: TableSchema, path: Path) -> TableSchema:
    """Drop a column; its id is never reused, so old values do not reappear in a new column of that name."""
    parents, name = _split(schema, path)
    if not parents:
        _refuse_key(
            schema,
            name,
            "dropped",
            (schema.partition_keys, "partition"),
            (schema.primary_keys, "primary"),
            (schema.bucket_keys, "bucket"),
        )

        _refuse_grouped(schema, name)

    def drop(fields: Fields) -> Fields:
        if len(fields) == 1:
            raise InvalidError(f"column {_text(path)!r} is the only one and cannot be dropped")
        return tuple(field for field in fields if field.name != name)

    changed = _at(schema, parents, drop)
    if not parents:
        options = {key: text for key, text in schema.options.items() if _option_column(key, schema.names) != name}
        changed = replace(changed, options=options)
    check_schema(changed)
    return changed


def change_type(schema: TableSchema, path: Path, data_type: DataType) -> TableSchema:
    """Widen a column's type; nullability stays as it is unless the new type is spelt NOT NULL. Inside a nested type
    `nested_evolution` says what may change."""
    parents, name = _split(schema, path)
    if not parents:
        _refuse_key(
            schema,
            name,
            "changed",
            (schema.partition_keys, "partition"),
            (schema.primary_keys, "primary"),
            (schema.bucket_keys, "bucket"),
        )

    next_id = schema.highest_field_id + 1

    def change(field: Field) -> Field:
        nonlocal next_id
        if not data_type.nullable and field.type.nullable:
            raise InvalidError(f"column {_text(path)!r} is nullable and cannot become NOT NULL: rows may hold NULL")
        changed, next_id = evolved_type(field.type, data_type, _text(path), next_id)
        return replace(field, type=with_nullable(changed, field.type.nullable))

    return replace(_change_field(schema, path, change), highest_field_id=next_id - 1)


def change_nullability(schema: TableSchema, path: Path, *, nullable: bool) -> TableSchema:
    """Make a column nullable; the reverse is refused."""
    parents, name = _split(schema, path)
    if nullable and not parents:
        _refuse_key(schema, name, "made nullable", (schema.primary_keys, "primary"))

    def change(field: Field) -> Field:
        if field.type.nullable and not nullable:
            raise InvalidError(f"column {_text(path)!r} is nullable and cannot become NOT NULL: rows may hold NULL")
        return replace(field, type=with_nullable(field.type, nullable))

    return _change_field(schema, path, change)


def change_comment(schema: TableSchema, path: Path, comment: str | None) -> TableSchema:
    """Change the comment of a column."""
    return _change_field(schema, path, lambda field: replace(field, description=comment))


def change_default(schema: TableSchema, path: Path, default: str | None) -> TableSchema:
    """Change the default of a column, for rows written from now on."""
    parents, name = _split(schema, path)
    if parents:
        raise InvalidError(
            f"column {_text(path)!r}: only a column of its own can have a default, not a field inside another"
        )

    def change(field: Field) -> Field:
        if default is not None:
            parse_literal(default, field.type, f"default of column {name!r}")
        return replace(field, default=default)

    return _change_field(_without_expression(schema, name), path, change)


def change_default_expression(schema: TableSchema, path: Path, expression: str) -> TableSchema:
    """Set a default expression of a column, for rows written from now on; its syntax is not checked here."""
    parents, name = _split(schema, path)
    if parents:
        raise InvalidError(
            f"column {_text(path)!r}: only a column of its own can have a default, not a field inside another"
        )
    changed = _change_field(schema, path, lambda field: replace(field, default=None))
    return replace(changed, options={**changed.options, default_expression_key(name): expression})


def move_column(schema: TableSchema, path: Path, *, after: str | None = None, first: bool = False) -> TableSchema:
    """Move a column to another position among its siblings."""
    parents, name = _split(schema, path)
    if not first and after is None:
        raise InvalidError(f"column {_text(path)!r}: say where to move it, first or after which column")
    if after == name:
        raise InvalidError(f"column {_text(path)!r} cannot be moved after itself")

    def move(fields: Fields) -> Fields:
        moved = next(field for field in fields if field.name == name)
        others = tuple(field for field in fields if field.name != name)
        place = _place(others, after=after, first=first)
        assert place is not None
        return (*others[:place], moved, *others[place:])

    return _at(schema, parents, move)


def change_options(schema: TableSchema, changes: Mapping[str, str | None]) -> TableSchema:
    """Set options, or remove those whose value is None."""
    merged = {**schema.options, **changes}
    changed = replace(schema, options={key: text for key, text in merged.items() if text is not None})
    check_schema(changed)
    return changed


def change_table_comment(schema: TableSchema, comment: str | None) -> TableSchema:
    """Change the comment of the table."""
    changed = replace(schema, comment=comment)
    check_schema(changed)
    return changed


def _without_expression(schema: TableSchema, name: str) -> TableSchema:
    """Remove the default expression of a column."""
    key = default_expression_key(name)
    return replace(schema, options={other: text for other, text in schema.options.items() if other != key})


def _split(schema: TableSchema, path: Path, *, new: bool = False) -> tuple[tuple[str, ...], str]:
    """The parents and the name of a column; text with dots is a path unless a column has that very name."""
    if isinstance(path, str):
        parts = (path,) if path in schema.names or "." not in path else tuple(path.split("."))
    else:
        parts = tuple(path)
    if not parts or not all(check_text(part, f"column path {path!r}") for part in parts):
        raise InvalidError(f"column path {path!r} has an empty part")
    if not new:
        _find(schema.fields, parts, path)
    return parts[:-1], parts[-1]


def _find(fields: Fields, parts: Sequence[str], path: Path) -> Fields:
    """The fields themselves, if the path leads to one of them or to something inside one."""
    if not parts:
        raise NotFoundError(
            f"column {_text(path)!r} is what an ARRAY, MULTISET or MAP holds, and no field of its own; its fields are "
            f"{', '.join(field.name for field in fields)}"
        )
    found = next((field for field in fields if field.name == parts[0]), None)
    if found is None:
        raise NotFoundError(
            f"column {_text(path)!r} is not in the table; at {parts[0]!r} there are {', '.join(f.name for f in fields)}"
        )
    if len(parts) > 1:
        _descend(found.type, parts[1:], path, lambda fields, rest: _find(fields, rest, path))
    return fields


def _text(path: Path) -> str:
    return path if isinstance(path, str) else ".".join(path)


def _place(fields: Fields, *, after: str | None, first: bool) -> int | None:
    if first:
        return 0
    if after is None:
        return None
    for index, field in enumerate(fields):
        if field.name == after:
            return index + 1
    raise NotFoundError(
        f"column {after!r}, after which to put it, is not among {', '.join(field.name for field in fields)}"
    )


def _refuse_key(schema: TableSchema, name: str, done: str, *keys: tuple[Sequence[str], str]) -> None:
    for columns, role in keys:
        if name in columns:
            raise InvalidError(f"column {name!r} belongs to the {role} key and cannot be {done}")


def _change_field(schema: TableSchema, path: Path, change: Callable[[Field], Field]) -> TableSchema:
    parents, name = _split(schema, path)
    changed = _at(
        schema, parents, lambda fields: tuple(change(field) if field.name == name else field for field in fields)
    )
    check_schema(changed)
    return changed


def _at(schema: TableSchema, parents: Sequence[str], change: Callable[[Fields], Fields]) -> TableSchema:
    """The schema with `change` applied to the fields below `parents`."""

    def go(fields: Fields, parts: Sequence[str]) -> Fields:
        if not parts:
            return change(fields)
        if all(field.name != parts[0] for field in fields):
            raise NotFoundError(
                f"column {'.'.join(parents)!r} is not in the table; at {parts[0]!r} there are {', '.join(f.name for f in fields)}"
            )
        return tuple(
            replace(field, type=_descend(field.type, parts[1:], parents, go)) if field.name == parts[0] else field
            for field in fields
        )

    return replace(schema, fields=go(schema.fields, parents))


def _descend(
    data_type: DataType, parts: Sequence[str], path: Path, go: Callable[[Fields, Sequence[str]], Fields]
) -> DataType:
    """The type with `go` applied to the fields of the ROW that `parts` lead to."""
    match data_type:
        case Row(fields):
            return replace(data_type, fields=go(fields, parts))
        case Array(element) | Multiset(element) if parts and parts[0] == "element":
            return replace(data_type, element=_descend(element, parts[1:], path, go))
        case Map(_, value) if parts and parts[0] == "value":
            return replace(data_type, value=_descend(value, parts[1:], path, go))
        case Map(key) if parts and parts[0] == "key":
            return replace(data_type, key=_descend(key, parts[1:], path, go))
        case _:
            inside = f" {'.'.join(parts)!r}" if parts else "s inside it"
            raise NotFoundError(f"column {_text(path)!r} is {data_type}, which has no field{inside}")


# Options whose text names columns.
COLUMN_OPTIONS = (
    "bucket-key",
    "sequence.field",
    "rowkind.field",
    "record-level.time-field",
    "partial-update.remove-record-on-sequence-group",
)


def _option_column(key: str, names: Sequence[str]) -> str | None:
    """The column that an option is about; of `a` and `a.b`, `fields.a.b.stats-mode` is about the latter."""
    return max((name for name in names if key.startswith(f"fields.{name}.")), key=len, default=None)


def _renamed_options(schema: TableSchema, old: str, new: str) -> dict[str, str]:
    renamed = {}
    for key, text in schema.options.items():
        group = SEQUENCE_GROUP.member(key)
        if group is not None:
            renamed[SEQUENCE_GROUP.of(_renamed_list(group, old, new))] = _renamed_list(text, old, new)
        elif _option_column(key, schema.names) == old:
            renamed[f"fields.{new}." + key.removeprefix(f"fields.{old}.")] = text
        elif key in COLUMN_OPTIONS:
            renamed[key] = _renamed_list(text, old, new)
        else:
            renamed[key] = text
    return renamed


def _renamed_list(text: str, old: str, new: str) -> str:
    return ",".join(new if name.strip() == old else name.strip() for name in text.split(","))


def _refuse_grouped(schema: TableSchema, name: str) -> None:
    """Refuse to drop a column of a sequence group: the others would follow another order, or none."""
    for key, members in TableOptions(schema.options).get_family(SEQUENCE_GROUP).items():
        if name in (*(part.strip() for part in key.split(",")), *(members or ())):
            raise InvalidError(f"column {name!r} is in the option '{SEQUENCE_GROUP.of(key)}' and cannot be dropped")
