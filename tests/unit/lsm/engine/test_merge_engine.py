"""Select engines as values: what they allow, what they refuse, and that they are picklable."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from lakelet.errors import InvalidError
from lakelet.lsm.engine.merge_engine import DEDUPLICATE, FIRST_ROW, NO_SHORTCUTS, MergeEngine, SelectEngine, Shortcuts
from tests.unit.lsm.engine.column_fold import ColumnFold

RETRACTS = np.array([0, 2, 3], np.int8)


@pytest.mark.parametrize("engine", [DEDUPLICATE, FIRST_ROW])
def test_select_engines_move_no_value(engine: SelectEngine) -> None:
    assert engine.shortcuts == Shortcuts(positions=True, value_pruning=True)
    assert engine.columns_for(["a", "b"]) == ("a", "b")
    engine.check_kinds(np.array([0, 2], np.int8))


def test_the_first_row_of_a_key_is_never_taken_away() -> None:
    DEDUPLICATE.check_kinds(RETRACTS)
    with pytest.raises(InvalidError, match=r"row 2 takes a row away.*'merge-engine' = 'first-row'.*ignore-delete"):
        FIRST_ROW.check_kinds(RETRACTS)


def test_a_fold_allows_no_shortcut() -> None:
    engine: MergeEngine = ColumnFold(("a",))
    assert engine.shortcuts == NO_SHORTCUTS == Shortcuts(positions=False, value_pruning=False)


@pytest.mark.parametrize("engine", [DEDUPLICATE, FIRST_ROW, ColumnFold(("a",), removes_zeros=True)])
def test_engines_travel_to_executors(engine: MergeEngine) -> None:
    assert pickle.loads(pickle.dumps(engine)) == engine
