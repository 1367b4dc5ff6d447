"""Who writes the changelog of a primary-key table (`changelog-producer`), and of which rows it has told.

    none               nobody; versions are compared
    input              the write, of its rows as they come
    lookup             the compaction that takes rows from level 0: old row of the key, new row of the key
    full-compaction    the compaction that takes rows to the top level, in the same way

A changelog that compaction makes tells of rows when they rise to the reported level: the state that those who follow the table
know is that of the files on this level and above. Pure functions of a table's schema.
"""

from __future__ import annotations

from collections.abc import Collection

from lakelet.errors import InvalidError
from lakelet.lsm.universal import UniversalPolicy
from lakelet.model.bucket_mode import BucketMode, bucket_mode
from lakelet.model.schema import TableSchema
from lakelet.options import (
    AGGREGATE_FUNCTION,
    CHANGELOG_PRODUCER,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS,
    DEFAULT_AGGREGATE_FUNCTION,
    DELETION_VECTORS_ENABLED,
    FIRST_ROW,
    FOLDING,
    FORCE_LOOKUP,
    MERGE_ENGINE,
    RECORD_LEVEL_EXPIRE_TIME,
    TableOptions,
)

NONE, INPUT, LOOKUP, FULL_COMPACTION = "none", "input", "lookup", "full-compaction"
# The functions that give something else where a value is folded with itself.
_COUNTING = frozenset(("sum", "product", "listagg", "collect", "nested_update"))


def changelog_producer(schema: TableSchema) -> str:
    """The producer of a table; none without a primary key."""
    return str(TableOptions(schema.options).get(CHANGELOG_PRODUCER)) if schema.primary_keys else NONE


def reported_level(options: TableOptions) -> int:
    """The level from which on a changelog has told of all rows."""
    match options.get(CHANGELOG_PRODUCER):
        case "lookup":
            return 1
        case "full-compaction":
            return UniversalPolicy.of(options).num_levels - 1
        case _:
            return 0


def check_changelog(schema: TableSchema) -> None:
    """InvalidError if the changelog that a table asks for cannot be made with its other options."""
    producer = changelog_producer(schema)
    if producer == NONE:
        return
    options = TableOptions(schema.options)
    asked = f"'{CHANGELOG_PRODUCER.name}' = '{producer}'"
    if options.get(MERGE_ENGINE) == FIRST_ROW and producer != LOOKUP:
        raise InvalidError(f"{asked}: expected 'none' or 'lookup' with 'merge-engine' = '{FIRST_ROW}'")
    if options.get(DELETION_VECTORS_ENABLED) and producer == FULL_COMPACTION:
        raise InvalidError(f"{asked}: expected 'none', 'input' or 'lookup' with '{DELETION_VECTORS_ENABLED.name}'")
    if bucket_mode(schema) is BucketMode.POSTPONE_MODE:
        raise InvalidError(f"{asked}: rows that wait for their buckets ('bucket' = '-2') have no changelog")
    if options.get(RECORD_LEVEL_EXPIRE_TIME) is not None and producer != INPUT:
        raise InvalidError(
            f"{asked}: its changelog would not tell of the rows that '{RECORD_LEVEL_EXPIRE_TIME.name}' drops; expected "
            "'none' or 'input'"
        )


def looks_up(options: TableOptions) -> bool:
    """Whether compaction looks up the old rows of what it takes from level 0, so that rows above it are whole."""
    return options.get(CHANGELOG_PRODUCER) == LOOKUP or bool(options.get(FORCE_LOOKUP))


def check_whole_rows(options: TableOptions, levels: Collection[int]) -> None:
    """InvalidError for files of one bucket on these levels if folding their rows would count values twice.

    Where Java looks up old rows, the rows that it puts on a level are whole, those of higher levels folded in, and of the levels
    above 0 it reads the lowest that has a key. Most functions give the same from whole rows; these do not. Lakelet compacts such
    a bucket as a whole, so that it has one level above 0.
    """
    if not looks_up(options) or len({level for level in levels if level > 0}) < 2:
        return
    if options.get(MERGE_ENGINE) not in FOLDING or options.get(DELETION_VECTORS_ENABLED):
        return
    functions = (*options.get_family(AGGREGATE_FUNCTION).values(), options.get(DEFAULT_AGGREGATE_FUNCTION))
    counting = sorted(_COUNTING.intersection(functions))
    if counting:
        raise InvalidError(
            f"a bucket has whole rows on several levels, as Java writes them with '{CHANGELOG_PRODUCER.name}' = '{LOOKUP}' or "
            f"'{FORCE_LOOKUP.name}', and "
            f"'{counting[0]}' would count their values twice: expected files on one level above 0, found {sorted(set(levels))}; "
            "compact the table in full with the engine that wrote it"
        )


def check_new_changelog(schema: TableSchema) -> None:
    """The same for options that are about to be set."""
    options = TableOptions(schema.options)
    producer = options.get(CHANGELOG_PRODUCER)
    if producer != NONE and not schema.primary_keys:
        raise InvalidError(f"'{CHANGELOG_PRODUCER.name}' = '{producer}': expected a table with a primary key")
    check_changelog(schema)
    ignored = options.get(CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS) or ()
    missing = [name for name in ignored if name not in schema.names]
    if missing:
        raise InvalidError(
            f"option '{CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS.name}': {missing[0]!r} is not a column"
        )
