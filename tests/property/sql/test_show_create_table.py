"""SHOW CREATE TABLE gives a statement that makes the same table, whatever its names, types, comments and options are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet import Lake
from lakelet.model.schema import SPECIAL_NAMES, TableSchema
from lakelet.model.types import Array, Atomic, DataType, Field, Kind, Map, Multiset, Row, with_nullable
from lakelet.sql.session import Session
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples

_LETTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from("`'\"\\;-/*$.,()<>:?%_ \n\tAb1é"), st.sampled_from("ab")
)
TEXTS = st.one_of(
    st.text(_LETTERS, max_size=12),
    st.sampled_from(["", "it's", "--", "/*", "*/", "`", '"', "$$", "x'00'", "E'\\n'", "NOT NULL", "DEFAULT 5"]),
)
NAMES = st.one_of(
    st.text(_LETTERS, min_size=1, max_size=8).filter(lambda name: bool(name.strip())),
    st.sampled_from(
        ["primary", "key", "comment", "order", "select", "partition", "constraint", "not", "row", "unique"]
    ),
).filter(lambda name: name not in SPECIAL_NAMES and not name.startswith("_KEY_"))
ATOMICS = st.one_of(
    st.sampled_from(
        [
            Atomic(kind)
            for kind in (
                Kind.BOOLEAN,
                Kind.TINYINT,
                Kind.SMALLINT,
                Kind.INT,
                Kind.BIGINT,
                Kind.FLOAT,
                Kind.DOUBLE,
                Kind.DATE,
            )
        ]
    ),
    st.builds(
        Atomic,
        st.sampled_from([Kind.CHAR, Kind.VARCHAR, Kind.BINARY, Kind.VARBINARY]),
        st.sampled_from([1, 7, 2**31 - 1]),
    ),
    st.builds(
        Atomic,
        st.sampled_from([Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ]),
        st.integers(0, 9),
    ),
    st.integers(1, 38).flatmap(lambda p: st.builds(lambda s: Atomic(Kind.DECIMAL, p, s), st.integers(0, p))),
)


def nullable(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return st.builds(with_nullable, types, st.booleans())


def rows(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    members = st.tuples(NAMES, inner, st.none() | TEXTS)
    # Queries tell names apart without regard to case, so a statement takes no two that differ only in it.
    return st.lists(members, min_size=1, max_size=3, unique_by=lambda member: member[0].lower()).map(
        lambda found: Row(tuple(Field(-1, name, data_type, comment) for name, data_type, comment in found))
    )


TYPES = st.recursive(
    nullable(ATOMICS),
    lambda inner: nullable(
        st.one_of(st.builds(Array, inner), st.builds(Multiset, inner), st.builds(Map, inner, inner), rows(inner))
    ),
    max_leaves=6,
)
DEFAULTS = {
    Kind.BOOLEAN: ["true", "FALSE", "1"],
    Kind.INT: ["0", "-17", "007"],
    Kind.BIGINT: ["9223372036854775807", " 5"],
    Kind.DOUBLE: ["1.5", "-2", "1e10", "NaN", ".5"],
    Kind.VARCHAR: ["", "'", "NULL"],
    Kind.DATE: ["2026-01-01"],
}
EXPRESSIONS = {
    Kind.INT: ["CAST(random() AS INT)", "(1) + random()::INT -- one"],
    Kind.VARCHAR: ["uuid()", "'it''s' || uuid()", "CURRENT_DATE"],
    Kind.DATE: ["current_date", "( today() + 1 )", "(today())"],
    Kind.TIMESTAMP: ["now()", "current_timestamp"],
    Kind.DOUBLE: ["- random()", "CASE WHEN random() > 0.5 THEN 1 ELSE 2 END"],
}
OPTIONS = {
    "bucket": ["-1"],
    # Avro files cannot hold every name and type that is drawn here.
    "file.format": ["orc", "parquet"],
    "manifest.format": ["avro", "json"],
    "target-file-size": ["1 mb", "128MB"],
    "write-only": ["true", "false"],
    "partition.default-name": ["__NONE__", "it's"],
    "commit.user-prefix": ["me", "'", '"'],
}


@st.composite
def columns(draw: st.DrawFn) -> list[Field]:
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique_by=str.lower))
    fields = []
    for name in names:
        data_type = draw(TYPES)
        fits = (
            DEFAULTS.get(data_type.kind, [])
            if isinstance(data_type, Atomic) and (data_type.kind is not Kind.VARCHAR or data_type.precision > 3)
            else []
        )
        default = draw(st.none() | st.sampled_from(fits)) if fits else None
        fields.append(Field(-1, name, data_type, draw(st.none() | TEXTS), default))
    return fields


@st.composite
def expressions(draw: st.DrawFn, fields: list[Field]) -> dict[str, str]:
    """Options that give some columns an expression as their default."""
    found = {}
    for field in fields:
        kind = field.type.kind if isinstance(field.type, Atomic) else None
        fits = (
            [] if kind is None or (kind is Kind.VARCHAR and field.type.precision < 100) else EXPRESSIONS.get(kind, [])
        )
        if field.default is None and fits and draw(st.booleans()):
            found[f"fields.{field.name}.default-expression"] = draw(st.sampled_from(fits))
    return found


@st.composite
def tables(draw: st.DrawFn) -> Lake:
    fields = draw(columns())
    keyable = [field.name for field in fields if isinstance(field.type, Atomic)]
    # Folders of partitions are named after their columns, and hidden ones are nobody's data.
    shown = [name for name in keyable if not name.startswith(".")]
    partition_keys = (
        draw(st.lists(st.sampled_from(shown), unique=True, max_size=1)) if len(keyable) > 1 and shown else []
    )
    others = [name for name in keyable if name not in partition_keys]
    primary_keys = draw(st.lists(st.sampled_from(others), unique=True, max_size=2)) if others else []
    options = {key: draw(st.sampled_from(values)) for key, values in OPTIONS.items() if draw(st.booleans())}
    options |= draw(expressions(fields))
    lake = Lake(MemoryStore())
    lake.create_database("d")
    lake.create_table(
        "d.t",
        fields,
        primary_key=[*primary_keys, *(partition_keys if primary_keys else [])],
        partitioned_by=partition_keys,
        options=options,
        comment=draw(st.none() | TEXTS),
    )
    return lake


def timeless(lake: Lake) -> TableSchema:
    return replace(lake.table("d.t").schema, time_ms=0)


@settings(max_examples=examples(150), deadline=None)
@given(tables())
def test_the_statement_makes_the_same_table(lake: Lake) -> None:
    [(text,)] = Session(lake).run("SHOW CREATE TABLE d.t").rows()
    again = Lake(MemoryStore())
    again.create_database("d")
    Session(again).run(text)
    assert timeless(again) == timeless(lake)


@settings(max_examples=examples(50), deadline=None)
@given(tables())
def test_a_table_like_another_is_the_same(lake: Lake) -> None:
    before = timeless(lake)
    session = Session(lake)
    session.run("CREATE TABLE d.u LIKE d.t")
    session.run("DROP TABLE d.t")
    session.run("ALTER TABLE d.u RENAME TO t")
    assert timeless(lake) == before
