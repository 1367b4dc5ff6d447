from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.errors import CorruptionError
from lakelet.lsm import sort_fold, union_kernels
from lakelet.lsm import winners as winners_module
from lakelet.lsm.key_words import Words
from lakelet.lsm.winners import SortedRun, sort_and_fold, winners
from tests.tiers.examples import examples
from tests.unit.lsm.key_model import words_of

LOOPS = (
    union_kernels.heads_loop,
    union_kernels.newer_wins_loop,
    union_kernels.compared_loop,
    union_kernels.radix_loop,
    union_kernels.gather_bits_loop,
)


@pytest.fixture(params=["numba", "numpy"], autouse=True, scope="module")
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test of this file runs compiled and in numpy, with stretches and levels so small that there are several."""
    with pytest.MonkeyPatch.context() as patch:
        for loop in LOOPS:
            if request.param == "numba":
                loop.load()
            else:
                patch.setattr(loop, "enabled", False)
        patch.setattr(winners_module, "_STRETCH_ROWS", 12)
        patch.setattr(winners_module, "_STRETCH_ROWS_PER_RUN", 1)
        patch.setattr(sort_fold, "_LEXSORT_BELOW", 3)
        yield


def key_rows(words: Words) -> list[tuple[int, ...]]:
    return [tuple(row) for row in words.tolist()]


def modelled(runs: list[SortedRun]) -> dict[tuple[int, ...], int]:
    """The winner of each key, told row by row."""
    best: dict[tuple[int, ...], tuple[tuple[int, ...], int]] = {}
    number = 0
    for run in runs:
        for place, key in enumerate(key_rows(run.words)):
            version = tuple(run.versions[place].tolist()) if run.versions is not None else ()
            rank = (*version, int(run.sequences[place]), number)
            if not (run.absent is not None and run.absent[place]) and (key not in best or rank > best[key][0]):
                best[key] = (rank, number)
            number += 1
    return {key: row for key, (_, row) in sorted(best.items())}


def check(runs: list[SortedRun]) -> None:
    expected = modelled(runs)
    assert winners(runs, ordered=True).tolist() == list(expected.values())
    assert winners(runs).tolist() == sorted(expected.values())


SMALL_WORD = st.integers(0, 3)
WORD = st.sampled_from((0, 1, 2, 3, 2**63, 2**63 + 1, 2**64 - 1, 0xABCD_0000_0000_0000)) | st.integers(0, 2**64 - 1)


@st.composite
def sorted_runs(draw: st.DrawFn) -> list[SortedRun]:
    width, version_width = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    shared = draw(st.integers(0, width - 1))
    # Keys that share whole words, or leading bits, so that heads begin anywhere in a word.
    word = draw(st.sampled_from((WORD, SMALL_WORD)))
    key = st.tuples(*([st.just(7)] * shared), *([word] * (width - shared)))
    pool = draw(st.lists(key, min_size=1, max_size=12, unique=True))
    unique, with_absent = draw(st.booleans()), draw(st.booleans())
    overlapping = draw(st.booleans())
    starts = draw(st.permutations(range(draw(st.integers(1, 6)))))
    runs = []
    for start in starts:
        keys = sorted(draw(st.lists(st.sampled_from(pool), max_size=15, unique=unique)))
        count = len(keys)
        words = np.array(keys, np.uint64).reshape(count, width)
        low = 0 if overlapping else start * 100
        sequences = draw(st.lists(st.integers(low, low + 9), min_size=count, max_size=count))
        versions = st.lists(st.integers(0, 2), min_size=count * version_width, max_size=count * version_width)
        runs.append(
            SortedRun(
                words,
                np.array(sequences, np.int64),
                np.array(draw(versions), np.uint64).reshape(count, version_width) if version_width else None,
                np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
                if with_absent
                else None,
            )
        )
    return runs


@given(sorted_runs())
@settings(max_examples=examples(100), deadline=None)
def test_winners_are_those_of_the_model(runs: list[SortedRun]) -> None:
    check(runs)


@given(sorted_runs())
@settings(max_examples=examples(50), deadline=None)
def test_runs_that_lie_in_one_array_give_the_same(runs: list[SortedRun]) -> None:
    joined = np.concatenate([run.words for run in runs])
    joined.flags.writeable = False
    ends = np.cumsum([len(run.words) for run in runs])
    for place, (run, end) in enumerate(zip(runs, ends, strict=True)):
        words = joined[end - len(run.words) : end]
        runs[place] = SortedRun(words, run.sequences, run.versions, run.absent)
    check(runs)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("overlapping", [False, True])
def test_many_rows(width: int, overlapping: bool) -> None:
    random = np.random.default_rng(4)
    runs = []
    for place in range(5):
        words = random.integers(0, 2**64 - 1, (3000, width), np.uint64)
        # The first word has few values, so that heads meet.
        words[:, 0] &= np.uint64(0x0F000F)
        if runs:
            words[:2000] = runs[-1].words[:2000]
        order = np.lexsort(words.T[::-1])
        sequences = random.integers(0, 50, 3000) if overlapping else random.permutation(3000) + place * 3000
        runs.append(SortedRun(words[order], sequences))
    check(runs)


def test_keys_that_differ_only_behind_their_heads() -> None:
    older = SortedRun(np.array([(1, 0), (2, 1), (2, 2)], np.uint64), np.arange(3))
    newer = SortedRun(np.array([(2, 2), (2, 3), (3, 3)], np.uint64), np.arange(3, 6))
    assert winners([older, newer], ordered=True).tolist() == [0, 1, 3, 4, 5]


def test_rule_5_a_newer_run_may_hold_an_older_row() -> None:
    first = SortedRun(words_of([1, 2]), np.array([7, 1]))
    second = SortedRun(words_of([1, 2]), np.array([5, 6]))
    assert winners([first, second]).tolist() == [0, 3]


def test_ties_go_to_the_later_run_and_row() -> None:
    run = SortedRun(words_of([1, 1, 2]), np.array([3, 3, 3]))
    assert winners([run, run], ordered=True).tolist() == [4, 5]
    assert winners([run]).tolist() == [1, 2]


def test_ties_go_to_the_later_run_where_ranges_only_touch() -> None:
    wide = SortedRun(words_of([1, 2]), np.array([5, 9]))
    narrow = SortedRun(words_of([1]), np.array([5]))
    assert winners([wide, narrow]).tolist() == [1, 2]
    assert winners([narrow, wide]).tolist() == [1, 2]


def test_sequences_below_zero() -> None:
    runs = [SortedRun(words_of([1]), np.array([sequence])) for sequence in (-1, -(2**63), 0, -2)]
    assert winners(runs).tolist() == [2]
    assert winners([SortedRun(words_of([1, 1, 1]), np.array([-1, 4, -9]))]).tolist() == [1]


def test_nothing_at_all() -> None:
    empty = SortedRun(words_of([]), np.empty(0, np.int64))
    gone = SortedRun(words_of([4]), np.array([1]), absent=np.array([True]))
    for runs in ([], [empty], [empty, empty], [gone], [empty, gone, gone]):
        assert winners(runs).tolist() == []
        assert winners(runs, ordered=True).tolist() == []
    assert winners([empty, SortedRun(words_of([4]), np.array([1])), gone], ordered=True).tolist() == [0]


@pytest.mark.parametrize("width", [1, 2])
def test_a_run_out_of_order_is_corrupt(width: int) -> None:
    good = SortedRun(words_of([1, 2, 3], width), np.arange(3))
    bad = SortedRun(words_of([1, 3, 2], width), np.arange(3))
    with pytest.raises(CorruptionError, match="run 1"):
        winners([good, bad])


# ---------------------------------------------------------------- sort_and_fold


def folded(words: Words, versions: Words | None) -> list[int]:
    return list(modelled([SortedRun(words, np.zeros(len(words), np.int64), versions)]).values())


@given(st.data())
@settings(max_examples=examples(100), deadline=None)
def test_sort_and_fold_is_that_of_the_model(data: st.DataObject) -> None:
    width, version_width = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 2))
    pool = data.draw(st.lists(st.tuples(*([WORD] * width)), min_size=1, max_size=20, unique=True))
    rows = data.draw(st.lists(st.sampled_from(pool), max_size=60))
    if data.draw(st.booleans()):
        rows.sort()
    words = np.array(rows, np.uint64).reshape(len(rows), width)
    count = len(rows) * version_width
    cells = data.draw(st.lists(st.integers(0, 2) | WORD, min_size=count, max_size=count))
    versions = np.array(cells, np.uint64).reshape(len(rows), version_width) if version_width else None
    assert sort_and_fold(words, versions).tolist() == folded(words, versions)


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("values", [2, 300, 2**40])
@pytest.mark.parametrize("versioned", [False, True])
def test_sort_and_fold_of_many_rows(width: int, values: int, versioned: bool) -> None:
    random = np.random.default_rng(values)
    words = random.integers(0, values, (6000, width)).astype(np.uint64) * np.uint64(0x10_0001)
    versions = random.integers(0, 3, (6000, 1)).astype(np.uint64) if versioned else None
    assert sort_and_fold(words, versions).tolist() == folded(words, versions)
