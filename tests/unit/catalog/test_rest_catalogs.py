"""Which of a program's catalogs a table is published in: that of the address, and no other."""

from __future__ import annotations

import pickle

import pytest

from lakelet import InvalidError, Lake
from lakelet.catalog.rest_catalogs import GivenRestCatalogs
from lakelet.storage.memory import MemoryStore

TABLE = {"metadata.iceberg.storage": "rest-catalog", "metadata.iceberg.rest.uri": "http://a.example/ice"}


def given(**properties: str) -> GivenRestCatalogs:
    options = {f"catalog.{key.replace('__', '.')}": text for key, text in properties.items()}
    return GivenRestCatalogs(MemoryStore(), options)


@pytest.mark.parametrize("uri", ["http://a.example/ice", "HTTP://A.example:80/ice/", "http://a.example/ice//"])
def test_an_address_is_the_same_however_it_is_spelled(uri: str) -> None:
    given(prod__uri="http://a.example/ice").check(uri, None)


@pytest.mark.parametrize(
    "uri",
    ["https://a.example/ice", "http://a.example:81/ice", "http://a.example", "http://b.example/ice", "a.example/ice"],
)
def test_another_address_is_refused(uri: str) -> None:
    with pytest.raises(InvalidError, match="not among those of this program"):
        given(prod__uri="http://a.example/ice", other__uri="nowhere", bad__uri="http://a:x").check(uri, None)


def test_a_catalog_of_another_kind_is_none() -> None:
    with pytest.raises(InvalidError, match="not among those"):
        given(prod__uri="http://a.example/ice", prod__type="hive").check("http://a.example/ice", None)


def test_a_warehouse_chooses() -> None:
    two = given(
        a__uri="http://a.example", a__warehouse="one", b__uri="http://a.example", b__warehouse="two", b__type="REST"
    )
    two.check("http://a.example", "two")
    with pytest.raises(InvalidError, match="catalogs a and b of this program are both"):
        two.check("http://a.example", None)
    with pytest.raises(InvalidError, match="with the warehouse 'three'"):
        two.check("http://a.example", "three")


def test_a_table_gets_such_options_from_a_program_that_gives_the_catalog_alone() -> None:
    store = MemoryStore()
    stranger = Lake(store)
    stranger.create_database("d")
    with pytest.raises(InvalidError, match="not among those of this program"):
        stranger.create_table("d.t", [("id", "INT")], options=TABLE)
    own = Lake(store, options={"catalog.prod.uri": "http://a.example/ice", "catalog.prod.token": "secret"})
    table = own.create_table("d.t", [("id", "INT")], options=TABLE)
    with pytest.raises(InvalidError, match="not among those of this program"):
        stranger.table("d.t").set_options({"metadata.iceberg.rest.uri": "http://b.example"})
    # What else is set is not the catalog's matter.
    stranger.table("d.t").set_options({"write-only": "true"})
    home = table.home
    assert home.rest_catalogs is not None
    assert pickle.loads(pickle.dumps(home)).rest_catalogs is None
    assert "secret" not in repr(home)
