"""Branches and tags of Iceberg tables."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from lakelet.errors import AlreadyExistsError, CommitUnknownError, ConflictError, InvalidError, NotFoundError
from lakelet.iceberg.branches import (
    create_branch,
    create_tag,
    drop_branch,
    drop_tag,
    fast_forward,
    rollback_to_snapshot,
)
from lakelet.iceberg.catalog.iceberg_catalog import IcebergCatalog
from lakelet.iceberg.table import IcebergTable
from tests.unit.iceberg.commit.tables import CatalogHooks, new_catalog, new_table, raising, write

COLUMNS = pa.schema([("id", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> IcebergCatalog:
    return new_catalog(tmp_path)


@pytest.fixture
def table(catalog: IcebergCatalog) -> IcebergTable:
    made = new_table(catalog, COLUMNS)
    write(made, [{"id": 1}])
    return made


def head(table: IcebergTable, name: str = "main") -> int:
    return table.reloaded().metadata.refs[name].snapshot_id


def test_names_are_made_and_dropped(table: IcebergTable) -> None:
    assert create_branch(table, "dev", keep=timedelta(days=1)) == head(table)
    assert table.reloaded().metadata.refs["dev"].max_ref_age_ms == 86_400_000
    assert create_tag(table, "v1") == head(table)
    assert create_tag(table, "v1", if_not_exists=True) == head(table)
    with pytest.raises(AlreadyExistsError, match="tag 'v1' exists"):
        create_branch(table, "v1", if_not_exists=True)
    with pytest.raises(NotFoundError, match="no branch 'v1'; there are dev, main"):
        drop_branch(table, "v1")
    assert drop_tag(table, "v1")
    assert not drop_tag(table, "v1", if_exists=True)
    assert drop_branch(table, "dev")
    assert set(table.reloaded().metadata.refs) == {"main"}


def test_an_empty_table_has_nothing_to_name(catalog: IcebergCatalog) -> None:
    empty = new_table(catalog, COLUMNS, name="shop.empty")
    with pytest.raises(InvalidError, match="no snapshot yet"):
        create_branch(empty, "dev")


def test_main_stays(table: IcebergTable) -> None:
    with pytest.raises(InvalidError, match="cannot be dropped"):
        drop_branch(table, "main")


def test_a_branch_moves_forward_only(table: IcebergTable) -> None:
    create_branch(table, "dev")
    write(table, [{"id": 2}], branch="dev")
    assert fast_forward(table, "main", "dev") == head(table, "dev") == head(table)
    assert fast_forward(table, "main", "dev") == head(table)
    write(table, [{"id": 3}], branch="dev")
    write(table, [{"id": 4}])
    with pytest.raises(ConflictError, match="did not grow out of"):
        fast_forward(table, "main", "dev")


def test_going_back_is_to_ones_own_past(table: IcebergTable) -> None:
    first = head(table)
    create_branch(table, "dev")
    made = write(table, [{"id": 2}], branch="dev")
    assert made is not None
    with pytest.raises(ConflictError, match="cannot go back"):
        rollback_to_snapshot(table, made.id)
    assert rollback_to_snapshot(table, first, branch="dev") == made.id
    assert head(table, "dev") == first


def test_somebody_who_was_first_is_no_reason_to_give_up(catalog: IcebergCatalog, table: IcebergTable) -> None:
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(CommitFailedException("updated by another process"))]
    create_branch(table, "dev")
    assert hooks.calls == 2
    assert head(table, "dev") == head(table)


def test_silence_is_told(catalog: IcebergCatalog, table: IcebergTable) -> None:
    hooks = CatalogHooks(catalog)
    hooks.before = [raising(CommitStateUnknownException("504"))]
    with pytest.raises(CommitUnknownError):
        create_branch(table, "dev")
