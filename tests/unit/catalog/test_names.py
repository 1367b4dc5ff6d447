import pytest

from lakelet import Lake
from lakelet.catalog.names import LakeNames, TableName, matching, split_name
from lakelet.errors import InvalidError, NotFoundError
from lakelet.storage.memory import MemoryStore


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("t",), TableName("used", "t")),
        (("shop", "t"), TableName("shop", "t")),
        (("t$files",), TableName("used", "t", system="files")),
        (("shop", "t$FILES"), TableName("shop", "t", system="files")),
        (("t$branch_dev",), TableName("used", "t", "dev")),
        (("t$branch_Dev$files",), TableName("used", "t", "Dev", "files")),
    ],
)
def test_a_name_says_table_branch_and_system_table(parts: tuple[str, ...], expected: TableName) -> None:
    assert split_name(parts, "used") == expected


@pytest.mark.parametrize(
    "parts", [("t$",), ("$files",), ("t$branch_",), ("t$files$snapshots",), ("a", "b", "c"), ("t$$",)]
)
def test_other_names_are_refused(parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidError):
        split_name(parts, "used")


def test_case_counts_only_where_it_tells_names_apart() -> None:
    assert matching("T", ["t", "u"]) == "t"
    assert matching("T", ["T", "t"]) == "T"
    assert matching("tT", ["TT", "tt"]) is None
    assert matching("x", ["t"]) is None


@pytest.fixture
def names() -> LakeNames:
    lake = Lake(MemoryStore())
    lake.create_database("Shop")
    lake.create_table("Shop.Orders", [("id", "INT")])
    return LakeNames(lake)


def test_tables_are_found_in_any_case(names: LakeNames) -> None:
    assert names.open(TableName("shop", "ORDERS")).name == "Shop.Orders"
    assert names.find(TableName("shop", "other")) is None
    assert names.database("SHOP") == "Shop"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (TableName("Shop", "order"), "did you mean Orders"),
        (TableName("shp", "orders"), "did you mean Shop"),
        (TableName("default", "orders"), "there are Shop.Orders"),
        (TableName("Shop", "zzz"), "there are Orders"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is_alike(names: LakeNames, name: TableName, message: str) -> None:
    with pytest.raises(NotFoundError, match=message):
        names.open(name)


def test_a_table_of_another_database_is_suggested_where_no_database_is_named(names: LakeNames) -> None:
    names.lake.create_database("default")
    names.lake.create_table("default.others", [("id", "INT")])
    with pytest.raises(NotFoundError, match=r"there are Shop\.Orders"):
        names.open(TableName("default", "orders"))
    with pytest.raises(NotFoundError, match="did you mean others"):
        names.open(TableName("default", "other"))


def test_a_branch_that_is_not_there(names: LakeNames) -> None:
    with pytest.raises(NotFoundError, match="dev"):
        names.open(TableName("Shop", "Orders", "dev"))
