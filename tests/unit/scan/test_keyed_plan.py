"""Planning of primary-key tables: which files are merged, which are pruned, and which rows metadata alone counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.format.rows.binary_row_columns import bucket_of, hash_rows
from lakelet.lsm.engine.table_engine import ENGINES
from lakelet.model.manifest import EntryKind
from lakelet.model.schema import TableSchema, new_schema
from lakelet.model.schema_change.evolution import rename_column
from lakelet.model.snapshot import Snapshot
from lakelet.model.split import Split
from lakelet.model.type_parser import parse_type
from lakelet.model.types import Field
from lakelet.predicate.where import parse_where
from tests.tiers.examples import examples
from tests.unit.lsm.engine.column_fold import sums_by_name
from tests.unit.scan.keyed_manifests import KeyedManifests

COLUMNS = {"id": "BIGINT", "name": "STRING", "v": "INT", "day": "INT"}


def schema(key: Sequence[str] = ("id",), partition: Sequence[str] = (), **options: str) -> TableSchema:
    fields = [Field(0, name, parse_type(text)) for name, text in COLUMNS.items()]
    named = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    return new_schema(
        fields,
        partition_keys=partition,
        primary_keys=[*key, *partition],
        options={"bucket": "1", "source.split.open-file-cost": "1 b", **named},
        comment=None,
        time_ms=0,
    )


def shape(splits: Sequence[Split]) -> list[tuple[bool, list[str]]]:
    return [(split.needs_merge, [file.name for file in split.files]) for split in splits]


def plan(table: KeyedManifests, snapshot: Snapshot, where: Any = None) -> list[tuple[bool, list[str]]]:
    condition = parse_where(where, table.schema.fields) if isinstance(where, str) else where
    return shape(table.planner().plan(snapshot, condition).splits)


def names(table: KeyedManifests, snapshot: Snapshot, where: Any = None) -> set[str]:
    return {name for _, files in plan(table, snapshot, where) for name in files}


class TestSections:
    def test_files_that_do_not_overlap_are_raw(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(table.entry("b", [10], [19]), table.entry("a", [0], [9]))
        assert plan(table, snapshot) == [(False, ["a", "b"])]

    def test_files_that_share_keys_are_merged(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(table.entry("a", [0], [9]), table.entry("b", [9], [19]))
        assert plan(table, snapshot) == [(True, ["a", "b"])]

    @pytest.mark.parametrize("deletes", [1, None])
    def test_rule_12_files_with_retracts_or_an_unknown_number_are_merged(self, deletes: int | None) -> None:
        table = KeyedManifests(schema())
        assert plan(table, table.commit(table.entry("a", [0], [9], deletes=deletes))) == [(True, ["a"])]

    def test_buckets_and_partitions_are_on_their_own(self) -> None:
        table = KeyedManifests(schema(partition=["day"]))
        snapshot = table.commit(
            table.entry("a", [0], [9], partition=[1]),
            table.entry("b", [0], [9], partition=[2]),
            table.entry("c", [0], [9], partition=[1], bucket=1),
        )
        assert sorted(plan(table, snapshot)) == [(False, ["a"]), (False, ["b"]), (False, ["c"])]

    def test_a_section_is_never_cut(self) -> None:
        table = KeyedManifests(schema(source_split_target__size="150 b"))
        entries = [table.entry(str(i), [i], [i + 1], sequence=10 * i) for i in range(5)]
        assert plan(table, table.commit(*entries)) == [(True, ["1", "3", "0", "2", "4"])]

    def test_small_sections_share_a_split_up_to_the_target(self) -> None:
        table = KeyedManifests(schema(source_split_target__size="450 b"))
        entries = [table.entry(f"{i}{run}", [10 * i], [10 * i + 5]) for i in range(3) for run in "ab"]
        assert plan(table, table.commit(*entries)) == [(True, ["0a", "0b", "1a", "1b"]), (True, ["2a", "2b"])]

    def test_raw_files_are_cut_at_the_target(self) -> None:
        table = KeyedManifests(schema(source_split_target__size="250 b"))
        entries = [table.entry(str(i), [i], [i]) for i in range(5)]
        assert plan(table, table.commit(*entries)) == [(False, ["0", "1"]), (False, ["2", "3"]), (False, ["4"])]

    def test_large_raw_data_stays_raw_between_merges_and_a_little_joins_them(self) -> None:
        table = KeyedManifests(schema(source_split_target__size="1000 b"))
        entries = [
            table.entry("a", [0], [5]),
            table.entry("b", [5], [9]),
            table.entry("large", [10], [19], size=900),
            table.entry("c", [20], [25]),
            table.entry("d", [25], [29]),
            table.entry("little", [30], [39]),
            table.entry("e", [40], [45]),
            table.entry("f", [45], [49]),
        ]
        assert plan(table, table.commit(*entries)) == [
            (True, ["a", "b"]),
            (False, ["large"]),
            (True, ["c", "d", "little", "e", "f"]),
        ]

    def test_a_level_upgrade_counts_once(self) -> None:
        table = KeyedManifests(schema())
        table.commit(table.entry("a", [0], [9]))
        snapshot = table.commit(table.entry("a", [0], [9], kind=EntryKind.DELETE), table.entry("a", [0], [9], level=5))
        splits = table.planner().plan(snapshot).splits
        assert [(file.name, file.level) for split in splits for file in split.files] == [("a", 5)]


class TestHidden:
    def test_the_postpone_bucket_is_never_read(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(table.entry("a", [0], [9], bucket=-2), table.entry("b", [0], [9]))
        assert plan(table, snapshot) == [(False, ["b"])]
        assert table.planner().count(snapshot, None)[0] == 10

    @pytest.mark.parametrize("options", [{"deletion__vectors_enabled": "true"}, {"merge__engine": "first-row"}])
    def test_rule_18_level_0_waits_for_compaction(self, options: dict[str, str]) -> None:
        table = KeyedManifests(schema(**options))
        snapshot = table.commit(
            table.entry("a", [0], [9]), table.entry("b", [0], [9], level=1), table.entry("c", [5], [12], level=5)
        )
        assert plan(table, snapshot) == [(False, ["b", "c"])]
        assert table.planner().count(snapshot, None) == (20, table.planner().count(snapshot, None)[1])

    def test_retracts_beside_deletion_vectors_are_merged(self) -> None:
        table = KeyedManifests(schema(deletion__vectors_enabled="true"))
        snapshot = table.commit(
            table.entry("b", [0], [9], level=1, deletes=2),
            table.entry("c", [5], [12], level=5),
            table.entry("d", [20], [22], level=5, size=10**9),
        )
        assert plan(table, snapshot) == [(True, ["b", "c"]), (False, ["d"])]

    def test_deletion_vectors_are_counted_without_reading(self) -> None:
        table = KeyedManifests(schema(deletion__vectors_enabled="true"))
        table.vectors = {"b": 3, "c": None}
        snapshot = table.commit(table.entry("b", [0], [9], level=1), table.entry("c", [5], [12], level=5))
        known, rest = table.planner().count(snapshot, None)
        assert (known, shape(rest.splits)) == (7, [(False, ["c"])])
        assert [split.least_rows for split in table.planner().plan(snapshot).splits] == [7]


class TestKeyPruning:
    def test_single_files_are_left_out_by_the_first_key_column(self) -> None:
        table = KeyedManifests(schema(["id", "name"]))
        snapshot = table.commit(table.entry("a", [0, "x"], [9, "b"]), table.entry("b", [5, "a"], [20, "a"]))
        assert plan(table, snapshot, "id = 3") == [(False, ["a"])]
        assert plan(table, snapshot, "id = 7") == [(True, ["a", "b"])]
        assert plan(table, snapshot, "id > 20") == []
        # The names of the ends say nothing of the names between them.
        assert names(table, snapshot, "name = 'zzz'") == {"a", "b"}

    def test_the_next_column_is_bounded_where_the_first_is_constant(self) -> None:
        table = KeyedManifests(schema(["id", "name"]))
        snapshot = table.commit(table.entry("a", [1, "a"], [1, "f"]), table.entry("b", [1, "e"], [2, "z"]))
        assert names(table, snapshot, "id = 1 AND name = 'g'") == {"b"}
        assert names(table, snapshot, "name = 'g'") == {"b"}

    def test_key_statistics_bound_further_columns(self) -> None:
        table = KeyedManifests(schema(["id", "name"]))
        bounds = {"id": (0, 9), "name": ("b", "d")}
        snapshot = table.commit(table.entry("a", [0, "c"], [9, "c"], key_stats=bounds))
        assert names(table, snapshot, "name = 'c'") == {"a"}
        assert names(table, snapshot, "name = 'e'") == set()

    def test_value_statistics_of_key_columns_do_too(self) -> None:
        table = KeyedManifests(schema(["id", "name"]))
        snapshot = table.commit(
            table.entry("a", [0, "c"], [9, "c"], values={"name": ("b", "d")}), table.entry("b", [0, "c"], [9, "c"])
        )
        assert names(table, snapshot, "name = 'e'") == {"b"}

    def test_a_renamed_key_column_keeps_its_range(self) -> None:
        table = KeyedManifests(schema())
        table.commit(table.entry("a", [0], [9]))
        table.evolve(rename_column(table.schema, ("id",), "key"))
        snapshot = table.commit(table.entry("b", [5], [19]))
        assert names(table, snapshot, "key < 5") == {"a"}
        assert names(table, snapshot, "key > 9") == {"b"}

    def test_an_arrow_expression_over_the_key_prunes_single_files(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(table.entry("a", [0], [9]), table.entry("b", [5], [19]))
        assert plan(table, snapshot, pc.field("id") > 12) == [(False, ["b"])]

    def test_partition_and_key_in_one_condition(self) -> None:
        table = KeyedManifests(schema(partition=["day"]))
        snapshot = table.commit(
            *(table.entry(f"{day}{low}", [low], [low + 9], partition=[day]) for day in (1, 2) for low in (0, 10))
        )
        assert names(table, snapshot, "(day = 1 AND id = 3) OR (day = 2 AND id = 12)") == {"10", "210"}


class TestValuePruning:
    def test_rule_12_a_merged_section_goes_as_a_whole_or_stays(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(
            table.entry("old", [0], [9], values={"v": (1, 1)}), table.entry("new", [0], [9], values={"v": (2, 2)})
        )
        # Without the newer file the older rows would come to light.
        assert plan(table, snapshot, "v = 1") == [(True, ["old", "new"])]
        assert plan(table, snapshot, "v = 3") == []
        assert plan(table, snapshot, pc.field("v") == 1) == [(True, ["old", "new"])]
        assert plan(table, snapshot, pc.field("v") == 3) == []

    def test_raw_files_go_one_by_one(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(
            table.entry("a", [0], [9], values={"v": (1, 1)}), table.entry("b", [10], [19], values={"v": (2, 2)})
        )
        assert plan(table, snapshot, "v = 2") == [(False, ["b"])]

    def test_rule_12_folded_rows_are_never_pruned_by_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(
            table.entry("old", [0], [9], values={"v": (1, 1)}),
            table.entry("new", [0], [9], values={"v": (2, 2)}),
            table.entry("raw", [20], [29], values={"v": (1, 1)}),
        )
        assert names(table, snapshot, "v = 3") == set()
        monkeypatch.setitem(ENGINES, "deduplicate", sums_by_name)
        assert names(table, snapshot, "v = 3") == {"old", "new"}
        assert names(table, snapshot, "v = 3 AND id > 15") == set()

    def test_key_and_value_together(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(
            table.entry("a", [0], [9], values={"v": (1, 1)}), table.entry("b", [5], [19], values={"v": (2, 2)})
        )
        assert plan(table, snapshot, "id > 12 AND v = 2") == [(False, ["b"])]
        assert plan(table, snapshot, "id > 12 AND v = 1") == []
        assert plan(table, snapshot, "id > 7 AND v = 1") == [(True, ["a", "b"])]
        assert plan(table, snapshot, "id = 30 OR v = 1") == [(True, ["a", "b"])]

    def test_counts_come_from_raw_files_only(self) -> None:
        table = KeyedManifests(schema())
        snapshot = table.commit(
            table.entry("a", [0], [9], values={"v": (1, 1)}),
            table.entry("b", [5], [9], values={"v": (1, 1)}),
            table.entry("raw", [20], [29], values={"v": (1, 1)}, rows=7, size=10**9),
            table.entry("mixed", [30], [39], values={"v": (1, 5)}, size=10**9),
            table.entry("deletes", [40], [49], values={"v": (1, 1)}, deletes=1),
        )
        planner = table.planner()
        known, rest = planner.count(snapshot, parse_where("v = 1", table.schema.fields))
        assert known == 7
        assert shape(rest.splits) == [(True, ["a", "b"]), (False, ["mixed"]), (True, ["deletes"])]
        known, rest = planner.count(snapshot, parse_where("id BETWEEN 15 AND 35", table.schema.fields))
        assert (known, shape(rest.splits)) == (7, [(False, ["mixed"])])
        assert planner.count(snapshot, None)[0] == 17
        assert [split.least_rows for split in planner.plan(snapshot).splits] == [0, 7, 10, 0]


class TestBuckets:
    def test_equality_on_the_bucket_key_leaves_other_buckets_out(self) -> None:
        table = KeyedManifests(schema(bucket="4"))
        snapshot = table.commit(*(table.entry(str(b), [0], [99], bucket=b, buckets=4) for b in range(4)))
        for key in (1, 2, 3):
            home = int(bucket_of(hash_rows([pa.array([key])], [parse_type("BIGINT")]), 4)[0])
            assert names(table, snapshot, f"id = {key}") == {str(home)}
            assert names(table, snapshot, f"id IN ({key}) AND v = 1") == {str(home)}
        homes = bucket_of(hash_rows([pa.array([1, 2])], [parse_type("BIGINT")]), 4).tolist()
        assert names(table, snapshot, "id IN (1, 2)") == {str(home) for home in homes}
        assert names(table, snapshot, "id < 50") == {"0", "1", "2", "3"}

    def test_each_file_counts_its_own_buckets(self) -> None:
        table = KeyedManifests(schema(bucket="4"))
        snapshot = table.commit(
            *(table.entry(f"old{b}", [0], [99], bucket=b, buckets=2) for b in range(2)),
            *(table.entry(f"new{b}", [0], [99], bucket=b, buckets=4) for b in range(4)),
        )
        for key in range(20):
            hashes = hash_rows([pa.array([key])], [parse_type("BIGINT")])
            expected = {f"old{bucket_of(hashes, 2)[0]}", f"new{bucket_of(hashes, 4)[0]}"}
            assert names(table, snapshot, f"id = {key}") == expected

    def test_a_part_of_the_bucket_key_tells_nothing(self) -> None:
        table = KeyedManifests(schema(["id", "name"], bucket="4"))
        snapshot = table.commit(*(table.entry(str(b), [0, ""], [99, "z"], bucket=b, buckets=4) for b in range(4)))
        assert len(names(table, snapshot, "id = 1")) == 4
        assert len(names(table, snapshot, "id = 1 AND name IN ('a')")) == 1

    def test_dynamic_buckets_are_all_read(self) -> None:
        table = KeyedManifests(schema(bucket="-1"))
        snapshot = table.commit(*(table.entry(str(b), [0], [99], bucket=b, buckets=-1) for b in range(3)))
        assert names(table, snapshot, "id = 1") == {"0", "1", "2"}


FILES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, 3), st.integers(0, 3), st.sampled_from([0, 0, 1])),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(150), deadline=None)
@given(
    FILES,
    st.integers(0, 45),
    st.integers(0, 4),
    st.sampled_from(["id = {k}", "id < {k}", "v = {v}", "id > {k} AND v = {v}"]),
)
def test_rule_12_no_file_of_a_key_that_may_match_is_missing(
    files: list[tuple[int, int, int, int, int]], key: int, value: int, condition: str
) -> None:
    """Whatever is pruned: of every key that a planned file shares, either all files are there or no row can match."""
    table = KeyedManifests(schema(source_split_target__size="300 b"))
    entries = {
        str(number): table.entry(
            str(number), [low], [low + span], values={"v": (v, v + width)}, deletes=deletes, sequence=10 * number
        )
        for number, (low, span, v, width, deletes) in enumerate(files)
    }
    snapshot = table.commit(*entries.values())
    where = condition.format(k=key, v=value)
    splits = table.planner().plan(snapshot, parse_where(where, table.schema.fields)).splits
    home = {file.name: number for number, split in enumerate(splits) for file in split.files}
    assert len(home) == sum(len(split.files) for split in splits)
    ranges = {str(n): (low, low + span, v, v + width) for n, (low, span, v, width, _) in enumerate(files)}
    for one in range(60):
        holders = {name for name, (low, high, _, _) in ranges.items() if low <= one <= high}
        fits = {"id = {k}": one == key, "id < {k}": one < key, "v = {v}": True, "id > {k} AND v = {v}": one > key}
        if not fits[condition]:
            continue
        hit = "v =" not in condition or any(v <= value <= top for name in holders for _, _, v, top in [ranges[name]])
        if hit and holders:
            places = {home[name] for name in holders if name in home}
            if len(holders) > 1:
                # All files of the key, in one split, which merges.
                assert holders <= home.keys()
                assert len(places) == 1
                assert splits[places.pop()].needs_merge
            else:
                assert holders <= home.keys()
