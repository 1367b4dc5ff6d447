"""Checks and repairs as operations."""

import pytest

from lakelet.errors import NotFoundError
from lakelet.model.damage import CheckProgress
from lakelet.operations.check import Check, check
from lakelet.storage.memory import MemoryStore
from lakelet.table import Table
from tests.unit.versioned_table import data_files


def test_a_whole_table_has_no_damage(table: Table) -> None:
    seen: list[CheckProgress] = []
    (found,) = check([table], Check(), seen.append)
    assert (found.table, found.report.versions, found.report.damages) == ("d.t", 3, ())
    assert seen


def test_damage_is_reported_by_table(table: Table, store: MemoryStore) -> None:
    store.delete([next(one for one in sorted(data_files(store)) if "/bucket-" in one)])
    (found,) = check([table], Check(quick=True))
    assert [one.kind for one in found.report.damages] == ["data file"]
    with pytest.raises(NotFoundError):
        check([table], Check(tag="none"))
