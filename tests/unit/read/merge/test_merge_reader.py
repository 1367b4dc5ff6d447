"""Merging splits: against a dict of what each key's newest row is, and what a reader must not get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError, NotFoundError
from lakelet.model.schema_change.evolution import add_column, change_type, drop_column, rename_column
from lakelet.model.types import Atomic, Kind
from lakelet.predicate.row_filter import row_filter
from lakelet.predicate.tree import And, Comparison, InList, IsNull, Or, Predicate
from lakelet.read.merge.merge_reader import BUDGET_BYTES, MergeReader
from lakelet.storage.memory import MemoryStore
from tests.tiers.examples import examples
from tests.unit.read.key_value_table import FOLDER, KeyValueTable, Row, schema_of_columns

STREAMED = 1
BUDGETS = (BUDGET_BYTES, STREAMED)
INSERT, BEFORE, AFTER, DELETE = range(4)


def reader(
    table: KeyValueTable,
    columns: Sequence[str] | None = None,
    where: Predicate | pc.Expression | None = None,
    *,
    ordered: bool = False,
    budget_bytes: int = BUDGET_BYTES,
) -> MergeReader:
    schema = table.schema
    return MergeReader(
        table.home,
        schema,
        schema.names if columns is None else columns,
        row_filter(where, schema.fields),
        table.schema_of,
        ordered=ordered,
        budget_bytes=budget_bytes,
    )


def both_ways(found: MergeReader, table: KeyValueTable) -> list[dict[str, Any]]:
    """The rows of `table()`, which are those of `batches()`."""
    split = table.split()
    batches = list(found.batches([split]))
    assert all(batch.num_rows and batch.schema == found.schema for batch in batches)
    whole = found.table([split])
    assert whole.schema == found.schema
    rows: list[dict[str, Any]] = whole.to_pylist()
    assert sorted(map(repr, rows)) == sorted(repr(row) for batch in batches for row in batch.to_pylist())
    return rows


def simple(rows_of_files: Sequence[Sequence[tuple[int, int, Row]]], **options: str) -> KeyValueTable:
    table = KeyValueTable(schema_of_columns({"k": "BIGINT", "v": "STRING", "n": "INT"}, ["k"], **options))
    for number, rows in enumerate(rows_of_files):
        table.write(rows, thin=number % 2 == 1)
    return table


def row(key: int, value: str, number: int | None = None) -> Row:
    return {"k": key, "v": value, "n": number}


# ---------------------------------------------------------------- against a dict


@dataclass(frozen=True)
class Case:
    """Files in order of writing, each of (key, sequence, kind, version, n) in key order, and how they are stored."""

    files: list[list[tuple[tuple[int, str], int, int, int | None, int]]]
    thin: list[bool]
    formats: list[str]
    hidden: list[list[int]]
    sequence_field: bool
    descending: bool
    ignore_delete: bool
    known: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 5))
    keys = st.tuples(st.integers(-2, 6), st.sampled_from(["", "a", "ab", "b\x00", "ü"]))
    shuffled = draw(st.booleans())
    next_sequence, files = 0, []
    for _ in range(count):
        rows = []
        for key in sorted(draw(st.sets(keys, min_size=1, max_size=12)), key=lambda key: (key[0], key[1].encode())):
            sequence = draw(st.integers(0, 40)) * 5 + len(files) if shuffled else next_sequence
            next_sequence += 1
            version = draw(st.one_of(st.none(), st.integers(0, 3)))
            rows.append((key, sequence, draw(st.sampled_from([0, 0, 2, 1, 3])), version, draw(st.integers(0, 9))))
        files.append(rows)
    formats = st.sampled_from(["parquet", "parquet", "parquet", "orc", "avro"])
    return Case(
        files,
        thin=draw(st.lists(st.booleans(), min_size=count, max_size=count)),
        formats=draw(st.lists(formats, min_size=count, max_size=count)),
        hidden=[
            sorted(draw(st.sets(st.integers(0, len(rows) - 1), max_size=2))) if draw(st.booleans()) else []
            for rows in files
        ],
        sequence_field=draw(st.booleans()),
        descending=draw(st.booleans()),
        ignore_delete=draw(st.booleans()),
        known=draw(st.booleans()),
    )


def stored(case: Case) -> KeyValueTable:
    options = {"ignore__delete": "true"} if case.ignore_delete else {}
    if case.sequence_field:
        options |= {"sequence_field": "version"}
        options |= {"sequence_field_sort__order": "descending"} if case.descending else {}
    columns = {"version": "INT", "s": "STRING", "n": "INT", "k": "INT"}
    table = KeyValueTable(schema_of_columns(columns, ["k", "s"], **options))
    for place, rows in enumerate(case.files):
        file = table.write(
            [(sequence, kind, model_row(key, version, n)) for key, sequence, kind, version, n in rows],
            thin=case.thin[place],
            file_format=case.formats[place],
            group_rows=5,
            deletes_known=case.known,
        )
        if case.hidden[place]:
            table.hide(file, case.hidden[place])
    return table


def model_row(key: tuple[int, str], version: int | None, n: int) -> Row:
    return {"version": version, "s": key[1], "n": n, "k": key[0]}


def expected(case: Case) -> dict[tuple[int, str], Row]:
    """The newest row of each key, in key order."""
    best: dict[tuple[int, str], tuple[Any, int, Row]] = {}
    # Runs are ordered by their greatest sequence number, and ties go to the later run.
    for place, rows in enumerate(case.files):
        for position, (key, sequence, kind, version, n) in enumerate(rows):
            if position in case.hidden[place] or (case.ignore_delete and kind & 1):
                continue
            rank: tuple[Any, ...] = (sequence,)
            if case.sequence_field:
                newer = None if version is None else -version if case.descending else version
                rank = ((newer is not None, newer or 0), sequence)
            if key not in best or rank > best[key][0]:
                best[key] = (rank, kind, model_row(key, version, n))
    in_order = sorted(best.items(), key=lambda item: (item[0][0], item[0][1].encode()))
    return {key: values for key, (_, kind, values) in in_order if not kind & 1}


conditions: st.SearchStrategy[tuple[Predicate | pc.Expression, Any]] = st.sampled_from(
    [
        (Comparison("k", ">", pa.scalar(2, pa.int32())), lambda row: row["k"] > 2),
        (Comparison("n", ">", pa.scalar(4, pa.int32())), lambda row: row["n"] > 4),
        (IsNull("version"), lambda row: row["version"] is None),
        (
            And((Comparison("s", "=", pa.scalar("a")), Comparison("n", "<", pa.scalar(7, pa.int32())))),
            lambda row: row["s"] == "a" and row["n"] < 7,
        ),
        (
            Or((InList("k", pa.array([1, 4], pa.int32())), Comparison("n", "=", pa.scalar(3, pa.int32())))),
            lambda row: row["k"] in (1, 4) or row["n"] == 3,
        ),
        (pc.field("k") < 3, lambda row: row["k"] < 3),
        ((pc.field("k") < 3) & (pc.field("n") > 2), lambda row: row["k"] < 3 and row["n"] > 2),
    ]
)


@settings(max_examples=examples(120), deadline=None)
@given(
    case=cases(),
    condition=st.one_of(st.none(), conditions),
    columns=st.sampled_from([None, ["n"], ["k", "n"], ["n", "s"], ["version", "k", "s"]]),
    ordered=st.booleans(),
    budget=st.sampled_from([BUDGET_BYTES, 400, 4_000, STREAMED]),
)
def test_rows_are_those_of_a_dict(
    case: Case,
    condition: tuple[Predicate | pc.Expression, Any] | None,
    columns: list[str] | None,
    ordered: bool,
    budget: int,
) -> None:
    table = stored(case)
    where, matches = condition or (None, lambda row: True)
    rows = [values for values in expected(case).values() if matches(values)]
    names = columns or list(table.schema.names)
    wanted = [{name: values[name] for name in names} for values in rows]
    made = reader(table, columns, where, ordered=ordered, budget_bytes=budget)
    found = both_ways(made, table)
    if ordered:
        assert found == wanted
        assert [values for batch in made.batches([table.split()]) for values in batch.to_pylist()] == wanted
    else:
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    counted = reader(table, [], where, ordered=ordered, budget_bytes=budget)
    assert counted.table([table.split()]).num_rows == len(wanted)
    assert sum(batch.num_rows for batch in counted.batches([table.split()])) == len(wanted)


# ---------------------------------------------------------------- one by one


class TestWhichRowWins:
    @pytest.mark.parametrize("budget", BUDGETS)
    def test_the_greater_sequence_wins_whatever_the_order_of_files(self, budget: int) -> None:
        table = simple(
            [
                [(9, INSERT, row(1, "new")), (1, INSERT, row(2, "old"))],
                [(2, INSERT, row(1, "old")), (8, AFTER, row(2, "new"))],
            ]
        )
        found = both_ways(reader(table, ["k", "v"], ordered=True, budget_bytes=budget), table)
        assert found == [{"k": 1, "v": "new"}, {"k": 2, "v": "new"}]

    @pytest.mark.parametrize("budget", BUDGETS)
    def test_retracts_take_the_row_away(self, budget: int) -> None:
        table = simple(
            [
                [(key, INSERT, row(key, "a")) for key in range(4)],
                [(4, DELETE, row(1, "a")), (5, BEFORE, row(2, "a"))],
                [(6, INSERT, row(1, "again"))],
            ]
        )
        found = both_ways(reader(table, ["k", "v"], ordered=True, budget_bytes=budget), table)
        assert found == [{"k": 0, "v": "a"}, {"k": 1, "v": "again"}, {"k": 3, "v": "a"}]

    @pytest.mark.parametrize("budget", BUDGETS)
    def test_ignored_deletes_change_nothing(self, budget: int) -> None:
        files = [[(1, INSERT, row(1, "a"))], [(2, DELETE, row(1, "gone"))], [(3, DELETE, row(2, "never"))]]
        table = simple(files, ignore__delete="true")
        assert both_ways(reader(table, ["v"], budget_bytes=budget), table) == [{"v": "a"}]

    @pytest.mark.parametrize("order", ["ascending", "descending"])
    def test_rule_16_a_null_sequence_loses(self, order: str) -> None:
        files = [[(1, INSERT, row(1, "a", 5))], [(2, INSERT, row(1, "null"))], [(3, DELETE, row(1, "delete"))]]
        table = simple(files, sequence_field="n", sequence_field_sort__order=order)
        assert both_ways(reader(table, ["v"]), table) == [{"v": "a"}]

    @pytest.mark.parametrize("budget", BUDGETS)
    def test_a_range_of_sequences_that_cannot_be_is_not_trusted(self, budget: int) -> None:
        """pypaimon gives all but the first file of a large write the last number of the write as their least."""
        table = simple([[(5, INSERT, row(1, "old")), (6, INSERT, row(2, "old"))], [(8, INSERT, row(1, "new"))]])
        table.files[0] = replace(table.files[0], min_sequence=9, max_sequence=9)
        assert both_ways(reader(table, ["v"], ordered=True, budget_bytes=budget), table) == [{"v": "new"}, {"v": "old"}]

    @pytest.mark.parametrize("budget", BUDGETS)
    def test_retracts_that_pypaimon_did_not_count(self, budget: int) -> None:
        files = [[(1, INSERT, row(1, "+I")), (2, INSERT, row(2, "+I"))], [(3, DELETE, row(1, "-D"))]]
        table = simple(files, rowkind_field="v")
        table.files[1] = replace(table.files[1], delete_row_count=0)
        assert both_ways(reader(table, ["k"], budget_bytes=budget), table) == [{"k": 2}]

    def test_a_file_may_hold_a_key_twice(self) -> None:
        table = simple([[(1, INSERT, row(1, "a")), (2, INSERT, row(1, "b"))], [(0, INSERT, row(1, "c"))]])
        for budget in BUDGETS:
            assert both_ways(reader(table, ["v"], budget_bytes=budget), table) == [{"v": "b"}]

    def test_one_file_with_retracts_is_no_plain_file(self) -> None:
        table = simple([[(1, INSERT, row(1, "a")), (2, DELETE, row(2, "b")), (3, BEFORE, row(3, "c"))]])
        assert both_ways(reader(table, ["k"]), table) == [{"k": 1}]


class TestFilters:
    @pytest.mark.parametrize("budget", BUDGETS)
    def test_a_value_that_was_replaced_is_not_found(self, budget: int) -> None:
        table = simple([[(1, INSERT, row(1, "old"))], [(2, AFTER, row(1, "new"))]])
        where = Comparison("v", "=", pa.scalar("old"))
        assert both_ways(reader(table, where=where, budget_bytes=budget), table) == []
        where_expression = pc.field("v") == "old"
        assert both_ways(reader(table, where=where_expression, budget_bytes=budget), table) == []

    def test_a_condition_on_the_key_is_pushed_into_the_scan(self) -> None:
        table = simple([[(key, INSERT, row(key, "a")) for key in range(100)], [(200, INSERT, row(50, "b"))]])
        where = And((Comparison("k", "=", pa.scalar(50, pa.int64())), Comparison("v", ">", pa.scalar(""))))
        made = reader(table, ["v"], where)
        read = made._files.read(list_of_files(table), sequences=True, kinds=True, whole=True)
        assert [part.num_rows for part in read] == [1, 1]
        assert both_ways(made, table) == [{"v": "b"}]

    def test_row_groups_without_matching_keys_are_not_counted_as_held(self) -> None:
        table = KeyValueTable(schema_of_columns({"k": "BIGINT", "v": "STRING"}, ["k"]))
        table.write([(key, INSERT, {"k": key, "v": "a"}) for key in range(1_000)], group_rows=10)
        table.write([(2_000 + key, INSERT, {"k": key, "v": "b"}) for key in range(0, 1_000, 2)], group_rows=10)
        where = Comparison("k", ">=", pa.scalar(994, pa.int64()))
        made = reader(table, ["k", "v"], where, ordered=True, budget_bytes=10_000)
        (piece,) = made._cutter.pieces(table.split(), 10_000)
        assert piece.decoded_bytes < 10_000 < reader(table)._cutter.decoded_bytes(piece.sources[0])
        wanted = [{"k": key, "v": "ab"[key % 2 == 0]} for key in range(994, 1_000)]
        assert both_ways(made, table) == wanted
        streamed = reader(table, ["k", "v"], where, ordered=True, budget_bytes=STREAMED)
        assert both_ways(streamed, table) == wanted
        groups = streamed._files._matching_groups(list_of_files(table)[0])
        assert groups == [(99, 10)]

    def test_partition_columns_count_as_key(self) -> None:
        schema = schema_of_columns({"p": "STRING", "k": "INT", "v": "INT"}, ["p", "k"], partition=["p"])
        table = KeyValueTable(schema)
        table.write([(1, INSERT, {"p": "x", "k": 1, "v": 1})])
        table.write([(2, INSERT, {"p": "x", "k": 1, "v": 2})])
        where = And((Comparison("p", "=", pa.scalar("x")), Comparison("v", ">=", pa.scalar(1, pa.int32()))))
        assert both_ways(reader(table, ["v"], where), table) == [{"v": 2}]
        assert both_ways(reader(table, ["p"]), table) == [{"p": "x"}]


def list_of_files(table: KeyValueTable) -> list[Any]:
    from lakelet.read.split_files import files_of

    return list(files_of([table.split()]))


class TestEvolvedFiles:
    def evolved(self) -> KeyValueTable:
        """Renamed key and value, a widened, a dropped and an added column; each version's files overlap."""
        table = simple([[(key, INSERT, row(key, f"first {key}", key)) for key in range(4)]])
        schema = rename_column(rename_column(table.schema, "k", "id"), "v", "text")
        schema = change_type(schema, "n", Atomic(Kind.BIGINT))
        table.evolve(add_column(schema, "extra", Atomic(Kind.DOUBLE)))
        table.write([(10, AFTER, {"id": 1, "text": "second", "n": 2**40, "extra": 0.5})], file_format="orc")
        table.evolve(add_column(drop_column(table.schema, "extra"), "extra", Atomic(Kind.INT)))
        table.write([(11, AFTER, {"id": 2, "text": "third", "n": None, "extra": 7})], thin=True)
        return table

    @pytest.mark.parametrize("budget", BUDGETS)
    @pytest.mark.parametrize("ordered", [False, True])
    def test_files_of_older_schemas_merge_with_new_ones(self, budget: int, ordered: bool) -> None:
        table = self.evolved()
        found = both_ways(reader(table, ordered=ordered, budget_bytes=budget), table)
        assert sorted(found, key=lambda row: row["id"]) == [
            {"id": 0, "text": "first 0", "n": 0, "extra": None},
            {"id": 1, "text": "second", "n": 2**40, "extra": None},
            {"id": 2, "text": "third", "n": None, "extra": 7},
            {"id": 3, "text": "first 3", "n": 3, "extra": None},
        ]

    @pytest.mark.parametrize("budget", BUDGETS)
    def test_conditions_hold_for_the_names_of_now(self, budget: int) -> None:
        table = self.evolved()
        where = Comparison("id", ">=", pa.scalar(2, pa.int64()))
        found = both_ways(reader(table, ["text"], where, ordered=True, budget_bytes=budget), table)
        assert found == [{"text": "third"}, {"text": "first 3"}]

    def test_nanoseconds(self) -> None:
        table = KeyValueTable(schema_of_columns({"at": "TIMESTAMP(9)", "v": "INT"}, ["at"]))
        table.write([(1, INSERT, {"at": 5, "v": 1}), (2, INSERT, {"at": 6, "v": 2})])
        table.write([(3, INSERT, {"at": 6, "v": 3})])
        found = reader(table, ordered=True).table([table.split()])
        assert found.column("at").cast(pa.int64()).to_pylist() == [5, 6]
        assert found.column("v").to_pylist() == [1, 3]


class TestPieces:
    def test_sections_stay_apart_and_in_order(self) -> None:
        table = simple(
            [
                [(1, INSERT, row(1, "a")), (2, INSERT, row(9, "a"))],
                [(3, INSERT, row(20, "b")), (4, INSERT, row(29, "b"))],
                [(5, INSERT, row(40, "c")), (6, INSERT, row(49, "c"))],
                [(7, INSERT, row(45, "d"))],
                [(8, INSERT, row(9, "e"))],
            ]
        )
        for budget in (*BUDGETS, 300):
            found = both_ways(reader(table, ["k", "v"], ordered=True, budget_bytes=budget), table)
            assert [(one["k"], one["v"]) for one in found] == [
                (1, "a"),
                (9, "e"),
                (20, "b"),
                (29, "b"),
                (40, "c"),
                (45, "d"),
                (49, "c"),
            ]

    def test_a_large_section_of_one_run_is_read_as_it_is(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("lakelet.read.merge.pieces._RAW_ROWS", 2)
        table = simple(
            [
                [(1, INSERT, row(1, "a")), (2, INSERT, row(9, "a"))],
                [(3, INSERT, row(20, "b")), (4, INSERT, row(29, "b"))],
                [(5, INSERT, row(20, "c"))],
            ]
        )
        made = reader(table, ["k", "v"], ordered=True)
        assert [piece.split is not None for piece in made._cutter.pieces(table.split(), BUDGET_BYTES)] == [True, False]
        assert [one["v"] for one in both_ways(made, table)] == ["a", "a", "c", "b"]
        assert reader(table, []).table([table.split()]).num_rows == 4

    def test_several_splits_keep_their_order(self) -> None:
        first = simple([[(1, INSERT, row(5, "a"))], [(2, INSERT, row(5, "b"))]])
        second = simple([[(1, INSERT, row(1, "c")), (2, INSERT, row(2, "c"))], [(3, DELETE, row(2, ""))]])
        second.store = first.store
        made = reader(first, ["v"])
        split = first.split()
        assert made.table([split, split, split]).to_pylist() == [{"v": "b"}] * 3
        assert [one["v"] for batch in made.batches([split, split]) for one in batch.to_pylist()] == ["b", "b"]
        assert made.table([]).num_rows == 0
        assert list(made.batches([])) == []

    @pytest.mark.parametrize("budget", BUDGETS)
    def test_a_stream_may_be_left_early(self, budget: int) -> None:
        table = simple([[(key, INSERT, row(key, "a")) for key in range(500)], [(900, INSERT, row(7, "b"))]])
        stream: Iterator[pa.RecordBatch] = reader(table, budget_bytes=budget).batches([table.split()])
        assert next(stream).num_rows > 0
        stream.close()  # type: ignore[attr-defined]

    def test_long_runs_of_unlike_density_are_streamed(self) -> None:
        dense = [(key, INSERT, row(key, "old", key)) for key in range(5_000)]
        sparse = [(10_000 + key, INSERT, row(key, "new", key)) for key in range(0, 100_000, 37)]
        late = [(20_000 + key, DELETE, row(key, "")) for key in range(4_000, 4_100)]
        table = simple([dense, sparse, late])
        model = {key: values["v"] for _, _, values in (*dense, *sparse) for key in [values["k"]]}
        wanted = [(key, model[key]) for key in sorted(model) if not 4_000 <= key < 4_100]
        for budget in (20_000, 400_000):
            found = reader(table, ["k", "v"], ordered=True, budget_bytes=budget).batches([table.split()])
            assert [(one["k"], one["v"]) for batch in found for one in batch.to_pylist()] == wanted


@pytest.mark.parametrize("budget", BUDGETS)
class TestBrokenFiles:
    def table(self) -> tuple[KeyValueTable, str]:
        table = simple([[(1, INSERT, row(1, "a"))], [(2, INSERT, row(1, "b"))]])
        return table, f"{FOLDER}/{table.files[1].name}"

    def refused(self, table: KeyValueTable, budget: int, error: type[Exception], match: str) -> None:
        made = reader(table, budget_bytes=budget)
        with pytest.raises(error, match=match):
            made.table([table.split()])
        with pytest.raises(error, match=match):
            list(made.batches([table.split()]))

    def test_rule_20_a_file_that_vanished_is_an_expired_snapshot(self, budget: int) -> None:
        table, path = self.table()
        table.store.delete([path])
        self.refused(table, budget, NotFoundError, r"data-1.parquet is gone: snapshot 1 was expired")
        table.store.put(table.home.paths.snapshot(1), b"{}")
        self.refused(table, budget, CorruptionError, r"data-1.parquet is missing, although snapshot 1 names it")

    def test_bytes_that_make_no_sense(self, budget: int) -> None:
        table, path = self.table()
        whole = table.store.get(path)
        table.store.put(path, b"\0" * len(whole))
        self.refused(table, budget, CorruptionError, r"data-1\.parquet")
        table.store.put(path, whole[:-10])
        self.refused(table, budget, CorruptionError, r"data-1\.parquet has \d+ bytes; its manifest says \d+")

    def test_a_key_that_is_null(self, budget: int) -> None:
        table, path = self.table()
        other = KeyValueTable(schema_of_columns({"k": "BIGINT", "v": "STRING", "n": "INT"}, ["v"]))
        other.write([(1, INSERT, {"k": None, "v": "a", "n": 1})], thin=True)
        table.store.put(path, other.store.get(f"{FOLDER}/{other.files[0].name}"))
        self.refused(table, budget, CorruptionError, r"data-1\.parquet: key column 'k' holds NULL")

    def test_a_file_with_other_rows_than_its_manifest_says(self, budget: int) -> None:
        table, path = self.table()
        other = simple([[(1, INSERT, row(1, "a"))], [(2, INSERT, row(1, "b")), (3, INSERT, row(2, "b"))]])
        assert isinstance(table.store, MemoryStore)
        table.store.put(path, other.store.get(path))
        self.refused(table, budget, CorruptionError, r"data-1\.parquet.* manifest says 1 rows, found 2")
