"""A table never gets a schema with which it cannot be written: what CREATE and ALTER accept, the next write can do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from lakelet.catalog.lake import Lake
from lakelet.commit.metadata.schemas import change_schema
from lakelet.errors import InvalidError
from lakelet.model.schema_change.evolution import add_column
from lakelet.model.type_parser import parse_type
from lakelet.options.option import KEPT, Option
from lakelet.options.table.table_options import TABLE_OPTIONS
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table

COLUMNS = [("id", "BIGINT"), ("p", "STRING"), ("v", "STRING")]
KEYED = {"bucket": "1"}
ROWS = [{"id": 1, "p": "2026-01-01", "v": "+I"}]
# Values of each kind that an option may take; whichever one it refuses is none that a write could meet.
VALUES = {
    "bool": ("true", "false"),
    "int": ("-1", "0", "1", "7"),
    "long": ("-1", "0", "1", "1000"),
    "float": ("0", "0.5", "2"),
    "size": ("0", "1", "1 kb", "8 mb"),
    "duration": ("0", "1 ms", "2 d"),
    "columns": ("v", "id"),
    "map": ("a:b",),
    "level map": ("0:avro", "5:orc", "0:none", "1:none", "1:lz4", "0:full"),
}
WORDS = (
    *("avro", "orc", "parquet", "zstd", "lz4", "snappy", "gzip", "none", "lzo", "brotli", "x", "v", "id", "1", "true"),
    *("input", "lookup", "full-compaction", "values-time", "update-time", "process-time", "watermark", "daily", "UTC"),
    *("yyyy-MM-dd", "$p", "first-row", "deduplicate", "truncate(4)", "Mars/Olympus", "2026-01-01 00:00:00"),
)


def lake() -> Lake:
    made = Lake(MemoryStore())
    made.create_database("d")
    return made


def create(columns: Any = COLUMNS, *, key: bool = False, **more: Any) -> Table:
    options: Mapping[str, str] = more.pop("options", {})
    keys = {"primary_key": ["id", "p"]} if key else {}
    return lake().create_table("d.t", columns, **keys, options=dict(options), **more)


def keys_of(option: Option[Any]) -> str:
    return option.name.replace("<column>", "v").replace("#", "x")


def spellings(option: Option[Any]) -> tuple[str, ...]:
    return VALUES.get(option.kind.name, WORDS)


@pytest.mark.parametrize("option", [one for one in TABLE_OPTIONS if one.effect is not KEPT], ids=lambda one: one.name)
def test_options_that_a_new_table_may_have_let_it_be_written(option: Option[Any]) -> None:
    for text in spellings(option):
        given = {keys_of(option): text}
        try:
            table = create(key=True, partitioned_by=["p"], options={**KEYED, **given})
        except InvalidError:
            continue
        if option.name.startswith(("scan.", "branch")):
            # They say what is read.
            continue
        try:
            table.write(ROWS)
        except InvalidError as error:
            raise AssertionError(f"{given} was accepted, and the write says {error}") from error


# What some format cannot hold: the columns, the option that names the format, and the words of the refusal.
UNFIT = [
    ([("id", "BIGINT"), ("p", "STRING"), ("a b", "INT")], "avro", "a b"),
    ([("id", "BIGINT"), ("p", "STRING"), ("1st", "INT")], "avro", "1st"),
    ([("id", "BIGINT"), ("p", "STRING"), ("t", "TIMESTAMP(9)")], "avro", "TIMESTAMP"),
    ([("id", "BIGINT"), ("p", "STRING"), ("t", "ARRAY<TIMESTAMP(9)>")], "avro", "TIMESTAMP"),
    ([("id", "BIGINT"), ("p", "STRING"), ("t", "TIME(6)")], "avro", "TIME"),
    ([("id", "BIGINT"), ("p", "STRING"), ("m", "MULTISET<INT>")], "avro", "MULTISET"),
    ([("id", "BIGINT"), ("p", "STRING"), ("r", "ROW<`x y` INT>")], "avro", "x y"),
]
WAYS = [{"file.format": "{}"}, {"file.format.per.level": "0:{}"}, {"file.format.per.level": "5:{}"}]


@pytest.mark.parametrize("way", WAYS, ids=["format", "level 0", "level 5"])
@pytest.mark.parametrize(("columns", "file_format", "words"), UNFIT)
def test_columns_that_the_files_cannot_hold(
    columns: list[tuple[str, str]], file_format: str, words: str, way: dict[str, str]
) -> None:
    options = {**KEYED, **{name: text.format(file_format) for name, text in way.items()}}
    with pytest.raises(InvalidError, match=words):
        create(columns, key=True, options=options)
    table = create([*columns[:2], ("v", "INT")], key=True, options=options)
    name, data_type = columns[2]
    with pytest.raises(InvalidError, match=words):
        table.add_column(name, data_type)
    table.write([{"id": 1, "p": "a", "v": 1}])
    other = create(columns, key=True, options=KEYED)
    with pytest.raises(InvalidError, match=words):
        other.set_options({key: text for key, text in options.items() if key not in KEYED})
    other.write([{"id": 1, "p": "a"}], missing="default")


def test_names_and_types_that_a_change_brings() -> None:
    table = create([("id", "BIGINT"), ("t", "TIMESTAMP(3)"), ("r", "ROW<a INT>")], options={"file.format": "avro"})
    for change in (
        lambda: table.rename_column("t", "the time"),
        lambda: table.rename_column("r.a", "a.b"),
        lambda: table.change_type("t", "TIMESTAMP(9)"),
        lambda: table.add_column("r.x y", "INT"),
        lambda: table.set_options({"file.compression": "lz4"}),
    ):
        with pytest.raises(InvalidError):
            change()
    assert table.schema.id == 0


@pytest.mark.parametrize(("file_format", "compression"), [("avro", "lz4"), ("orc", "brotli"), ("parquet", "lzo")])
@pytest.mark.parametrize("key", [False, True], ids=["append", "keyed"])
def test_compressions_that_the_files_cannot_have(file_format: str, compression: str, key: bool) -> None:
    options = {"file.format": file_format, **(KEYED if key else {})}
    with pytest.raises(InvalidError, match=compression):
        create(key=key, options={**options, "file.compression": compression})
    with pytest.raises(InvalidError, match=compression):
        create(key=key, options=options).set_options({"file.compression": compression})


def test_rows_that_wait_for_buckets_are_avro() -> None:
    with pytest.raises(InvalidError, match="lz4"):
        create(key=True, options={"bucket": "-2", "file.compression": "lz4"})


@pytest.mark.parametrize(
    ("producer", "options", "reason"),
    [
        ("input", {"merge-engine": "first-row"}, "expected 'none' or 'lookup' with 'merge-engine' = 'first-row'"),
        ("full-compaction", {"merge-engine": "first-row"}, "expected 'none' or 'lookup'"),
        (
            "full-compaction",
            {"deletion-vectors.enabled": "true"},
            "'input' or 'lookup' with 'deletion-vectors.enabled'",
        ),
        ("input", {"bucket": "-2"}, "rows that wait for their buckets"),
        ("lookup", {"bucket": "-2"}, "rows that wait for their buckets"),
        ("lookup", {"record-level.expire-time": "1 h", "record-level.time-field": "id"}, "record-level.expire-time"),
        ("lookup", {"changelog-producer.row-deduplicate-ignore-fields": "nope"}, "'nope' is not a column"),
    ],
)
def test_changelogs_that_could_not_be_written(producer: str, options: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidError, match=reason):
        create(key=True, options={**KEYED, **options, "changelog-producer": producer})
    if "merge-engine" not in options:
        later = {key: value for key, value in options.items() if key.startswith("changelog")}
        made = create(key=True, options={**KEYED, **{key: options[key] for key in options.keys() - later.keys()}})
        with pytest.raises(InvalidError, match=reason):
            made.set_options({**later, "changelog-producer": producer})


@pytest.mark.parametrize("producer", ["input", "lookup", "full-compaction"])
def test_changelogs_of_tables_without_a_key(producer: str) -> None:
    with pytest.raises(InvalidError, match="expected a table with a primary key"):
        create(key=False, options={"changelog-producer": producer})


@pytest.mark.parametrize(("old", "new"), [("lookup", "none"), ("none", "lookup"), ("full-compaction", "lookup")])
def test_folded_rows_stay_whole_or_in_parts(old: str, new: str) -> None:
    table = create(key=True, options={**KEYED, "merge-engine": "partial-update", "changelog-producer": old})
    with pytest.raises(InvalidError, match="cannot change between 'lookup' and others"):
        table.set_options({"changelog-producer": new})
    plain = create(key=True, options={**KEYED, "changelog-producer": old})
    plain.set_options({"changelog-producer": new})
    assert plain.options["changelog-producer"] == new


def test_a_table_that_another_engine_made_can_still_be_changed() -> None:
    table = create(key=True, options={**KEYED, "deletion-vectors.enabled": "true"})
    change_schema(
        table.home,
        lambda schema: replace(schema, options={**schema.options, "changelog-producer": "full-compaction"}),
    )
    table.change_comment("as Java made it")
    table.add_column("w", "INT")
    with pytest.raises(InvalidError, match="a b"):
        table.alter(
            lambda schema: table.with_options(
                add_column(schema, "a b", parse_type("INT")), {"changelog-producer": None, "file.format": "avro"}
            )
        )
    table.reset_options(["changelog-producer"])
    table.write(ROWS, missing="default")
