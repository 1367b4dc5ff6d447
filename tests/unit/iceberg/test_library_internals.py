"""pyiceberg's private names that are used exist in the installed version."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.transforms import UnknownTransform
from pyiceberg.types import IntegerType, NestedField, StructType

from lakelet.iceberg import library_internals
from lakelet.iceberg.library_internals import (
    fields_by_id,
    import_catalog,
    parents_by_id,
    replace_file_io,
    unknown_transform_name,
)

SCHEMA = Schema(
    NestedField(1, "a", IntegerType()),
    NestedField(2, "s", StructType(NestedField(3, "b", IntegerType(), required=False)), required=False),
)


def test_columns_by_id_with_those_inside_of_others() -> None:
    assert {number: field.name for number, field in fields_by_id(SCHEMA).items()} == {1: "a", 2: "s", 3: "b"}
    assert parents_by_id(SCHEMA) == {3: 2}


def test_transforms_and_catalogs_by_name(tmp_path: Path) -> None:
    assert unknown_transform_name(UnknownTransform("zorder")) == "zorder"
    assert import_catalog("ice", "nowhere.Catalog", {}) is None
    catalog = load_catalog("ice", type="in-memory", warehouse=str(tmp_path))
    replace_file_io(catalog, lambda *_, **__: pytest.fail("asked for files"))
    catalog.create_namespace("shop")
    with pytest.raises(BaseException, match="asked for files"):
        catalog.create_table("shop.orders", SCHEMA)


def test_no_other_module_knows_them() -> None:
    inside = Path(library_internals.__file__)
    private = ("._lazy_id_to", "._update_and_stage_table", "._delete_old_metadata", "_import_catalog", "._apply(")
    for path in inside.parents[1].rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path == inside or not [name for name in private if name in text], path
