import pytest

from lakelet.sql.engine.engine_errors import Placed
from lakelet.sql.iceberg.query_names import has_long_names, has_stars, name_edits, named_by_words, star_edits
from lakelet.sql.lexer.words import words_of
from lakelet.sql.query.time_travel import Travel

_TABLE = ("Ice", "db", "t")


def _changed(text: str, tables: list[tuple[str, ...]], travels: list[Travel] | None = None) -> str:
    return Placed(text, tuple(sorted(name_edits(words_of(text), tables, travels or [], [])))).changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("SELECT * FROM ice.db.t", 'SELECT * FROM "ice.db".t'),
        ('FROM "ICE" . db."T" AS x', 'FROM "ICE.db"."T" AS x'),
        ("SELECT ice.db.t.a.b, db.t.c FROM ice.db.t", 'SELECT "ice.db".t.a.b, "ice.db".t.c FROM "ice.db".t'),
        ("SELECT 'ice.db.t', t.c, a.ice.db.t FROM ice.db.t", "SELECT 'ice.db.t', t.c, a.ice.db.t FROM \"ice.db\".t"),
        ("SELECT * FROM ice.db.u", "SELECT * FROM ice.db.u"),
    ],
)
def test_a_schema_for_every_database(text: str, changed: str) -> None:
    assert _changed(text, [_TABLE]) == changed


def test_native_tables_keep_their_columns() -> None:
    text = "SELECT db.t.x FROM ice.db.t, db.t"
    assert _changed(text, [_TABLE, ("db", "t")]) == 'SELECT db.t.x FROM "ice.db".t, db.t'


def test_columns_of_a_version_are_those_of_its_alias() -> None:
    travel = Travel(_TABLE, "t@1", version=3)
    assert _changed("SELECT ice.db.t.x", [], [travel]) == 'SELECT "t".x'


def test_what_other_changes_replace_stays() -> None:
    text = "SELECT * FROM ice.db.t FOR VERSION AS OF 3"
    assert name_edits(words_of(text), [_TABLE], [], [(14, len(text), '"t@1"')]) == []


def test_stars() -> None:
    words = words_of("SELECT ice.db.t.*, other.db.t.*, 2 * ice.db.t.x")
    assert has_stars(words)
    text = "SELECT ice.db.t.*, x"
    assert Placed(text, tuple(star_edits(words_of(text), ["ICE"]))).changed == "SELECT t.*, x"
    assert not has_stars(words_of("SELECT db.t.*, ice.db.t.x"))


def test_names_by_words() -> None:
    words = words_of("PIVOT ice.DB.t ON a.b.c")
    assert named_by_words(words, ["ice"]) == {("ice", "DB", "t")}
    assert has_long_names(words)
    assert not has_long_names(words_of("SELECT a.b FROM c.d"))
