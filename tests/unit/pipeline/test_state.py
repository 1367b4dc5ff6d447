"""The state of a pipeline: generations that survive a crash in any order, and the lock."""

from pathlib import Path

import pytest

from lakelet.errors import ConflictError, CorruptionError, InvalidError
from lakelet.ids import RandomIds
from lakelet.pipeline.state import PipelineState
from lakelet.storage.open import open_store


def state(folder: Path) -> PipelineState:
    return PipelineState(open_store(str(folder), {}), RandomIds())


def test_a_refresh_is_marked_until_the_table_is_empty(tmp_path: Path) -> None:
    found = state(tmp_path)
    assert found.generation("Orders") is None
    first = found.begin("orders", "table-1", None)
    assert found.generation("ORDERS") == first

    def crash() -> str:
        assert found.generation("orders") != first
        raise InterruptedError

    with pytest.raises(InterruptedError):
        found.begin("orders", "table-1", crash)
    marked = found.generation("orders")
    assert marked is not None
    assert marked.refreshing
    done = found.finish("orders", marked, lambda: "table-2")
    assert found.generation("orders") == done
    assert (done.id, done.table, done.refreshing) == (marked.id, "table-2", False)


def test_names_become_folders(tmp_path: Path) -> None:
    found = state(tmp_path)
    made = found.begin("shop.my/.. orders", None, None)
    path = found.checkpoint("shop.my/.. orders", made, "..")
    assert Path(path).relative_to(tmp_path).parts[:2] == ("targets", "shop.my%2F..%20orders")
    assert Path(path).name == "%2E."
    with pytest.raises(InvalidError, match="too long"):
        found.generation("x" * 300)


def test_a_record_that_is_none(tmp_path: Path) -> None:
    found = state(tmp_path)
    found.store.put("targets/orders/generation.json", b"{}")
    with pytest.raises(CorruptionError, match="no record of a generation"):
        found.generation("orders")


def test_two_runs_at_once(tmp_path: Path) -> None:
    with state(tmp_path / "a b").locked("pipeline shop"):
        again = state(tmp_path / "a b").locked("pipeline shop")
        with pytest.raises(ConflictError, match="pipeline shop is being run by another process"), again:
            pass
        with state(tmp_path / "other").locked("pipeline other"):
            pass
    with state(tmp_path / "a b").locked("pipeline shop"):
        pass
