"""UPDATE, DELETE and MERGE of Iceberg tables of every layout."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from lakelet import InvalidError, NotFoundError
from lakelet.sql.lexer.errors import UnknownNameError
from tests.iceberg.delete_commits import commit_deletes, data_paths, equality_deletes, position_deletes
from tests.unit.sql.iceberg.changed_iceberg import (
    LAYOUTS,
    NAME,
    START,
    IcebergSession,
    data_files,
    filled,
    operations,
    rows,
    stored_data,
    values,
)


@pytest.fixture(params=("identity", "evolved"))
def sql(request: pytest.FixtureRequest, tmp_path: Path) -> IcebergSession:
    return filled(tmp_path, request.param)


@pytest.fixture
def plain(tmp_path: Path) -> IcebergSession:
    return filled(tmp_path, "plain")


@pytest.fixture
def parted(tmp_path: Path) -> IcebergSession:
    return filled(tmp_path, "identity")


class TestEveryLayout:
    def test_update(self, sql: IcebergSession) -> None:
        before = sql.table.snapshot_id()
        ((made, changed),) = sql.rows(f"UPDATE {NAME} SET v = v + 1, s = upper(s) WHERE id IN (1, 3)")
        assert (made, changed) == (sql.table.snapshot_id(), 2)
        assert rows(sql) == [(1, "a", 11, "ONE"), START[1], (3, "a", 31, None), START[3], START[4]]
        assert len(sql.rows(f"SELECT id, v FROM {NAME} FOR VERSION AS OF {before}")) == 5
        assert operations(sql)[-1] == "overwrite"

    def test_update_of_all_rows_by_their_old_values(self, sql: IcebergSession) -> None:
        sql.rows(f"UPDATE {NAME} SET v = id, s = CAST(v AS VARCHAR)")
        assert rows(sql) == [(id_, p, id_, None if v is None else str(v)) for id_, p, v, _ in START]

    def test_update_of_what_partitions(self, sql: IcebergSession) -> None:
        sql.rows(f"UPDATE {NAME} SET p = CASE WHEN id = 1 THEN NULL ELSE 'null' END, id = id + 10 WHERE p = 'a'")
        assert rows(sql) == [
            START[1],
            START[3],
            (11, None, 10, "one"),
            (13, "null", 30, None),
            (15, "null", 50, "five"),
        ]
        assert sql.rows(f"SELECT id FROM {NAME} WHERE p IS NULL") == [(11,)]
        assert sql.rows(f"SELECT id FROM {NAME} WHERE p = 'null' AND id > 13") == [(15,)]

    def test_delete(self, sql: IcebergSession) -> None:
        assert sql.rows(f"DELETE FROM {NAME} WHERE v > 10 AND p = ?", params=["a"])[0][1] == 2
        assert rows(sql) == [START[0], START[1], START[3]]

    def test_delete_where_a_value_is_null(self, sql: IcebergSession) -> None:
        assert sql.rows(f"DELETE FROM {NAME} WHERE v IS NULL OR s IS NULL")[0][1] == 2
        assert sql.rows(f"DELETE FROM {NAME} WHERE v = NULL")[0] == (None, 0)
        assert rows(sql) == [START[0], START[1], START[4]]

    def test_delete_of_everything(self, sql: IcebergSession) -> None:
        assert sql.rows(f"DELETE FROM {NAME}")[0][1] == 5
        assert rows(sql) == []
        assert data_files(sql) == set()
        assert operations(sql)[-1] == "delete"

    def test_merge(self, sql: IcebergSession) -> None:
        ((made, changed),) = sql.rows(
            f"MERGE INTO {NAME} AS t USING (VALUES (1, 100), (2, 0), (3, NULL), (9, 900)) AS n(id, v) ON t.id = n.id "
            "WHEN MATCHED AND n.v = 0 THEN DELETE "
            "WHEN MATCHED AND n.v IS NULL THEN DO NOTHING "
            "WHEN MATCHED THEN UPDATE SET v = t.v + n.v "
            "WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (n.id, 'z', n.v) "
            "WHEN NOT MATCHED BY SOURCE AND t.v > 40 THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'alone'"
        )
        assert (made, changed) == (sql.table.snapshot_id(), 5)
        assert rows(sql) == [(1, "a", 110, "one"), START[2], (4, "b", None, "alone"), (9, "z", 900, None)]

    def test_merge_that_takes_all_columns(self, sql: IcebergSession) -> None:
        sql.rows(
            f"MERGE INTO {NAME} t USING (SELECT 'x' AS s, 7 AS v, 'q' AS p, i AS id FROM (VALUES (5), (6)) AS w(i)) n "
            "ON t.id = n.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        assert rows(sql) == [*START[:4], (5, "q", 7, "x"), (6, "q", 7, "x")]

    def test_a_merge_that_only_inserts_is_an_append(self, sql: IcebergSession) -> None:
        text = f"MERGE INTO {NAME} t USING (VALUES (1), (8)) n(id) ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)"
        files = data_files(sql)
        assert sql.rows(text)[0][1] == 1
        assert rows(sql) == [*START, (8, None, None, None)]
        assert operations(sql)[-1] == "append"
        assert files < data_files(sql)

    def test_conditions_may_look_at_the_table_itself(self, sql: IcebergSession) -> None:
        sql.rows(
            f"UPDATE {NAME} SET v = (SELECT max(v) FROM {NAME}) "
            f"WHERE v < (SELECT avg(v) FROM ICEBERG.Shop.T AS o WHERE o.p = t.p)"
        )
        assert values(sql) == {1: 50, 2: 20, 3: 30, 4: None, 5: 50}
        sql.rows(f"DELETE FROM {NAME} AS x USING {NAME} AS o WHERE o.id = x.id + 1 AND o.p = 'b'")
        assert sorted(values(sql)) == [2, 4, 5]

    def test_nothing_to_do_is_no_commit(self, sql: IcebergSession) -> None:
        before = sql.files()
        assert sql.rows(f"UPDATE {NAME} SET v = 0 WHERE id > 100") == [(None, 0)]
        assert sql.rows(f"DELETE FROM {NAME} WHERE p = 'q'") == [(None, 0)]
        assert sql.rows(f"MERGE INTO {NAME} USING (VALUES (1)) n(i) ON id = i WHEN MATCHED THEN DO NOTHING") == [
            (None, 0)
        ]
        assert sql.files() == before

    def test_what_fails_leaves_nothing(self, sql: IcebergSession) -> None:
        kind = InvalidError
        sql.fails(f"UPDATE {NAME} SET id = NULL WHERE id > 3", "'id': expected long, required, found NULL", kind=kind)
        sql.fails(f"UPDATE {NAME} SET v = 'x' WHERE id > 3", "column 'v' is BIGINT; 'x' does not convert", kind=kind)
        sql.fails(f"UPDATE {NAME} SET v = v * 0.03 WHERE id <> 4", "does not convert to it", kind=kind)
        several = "several rows of the source match one row of iceberg.shop.t"
        sql.fails(f"UPDATE {NAME} SET v = x FROM (VALUES (1, 5), (1, 6)) AS q(i, x) WHERE id = i", several, kind=kind)
        sql.fails(
            f"MERGE INTO {NAME} USING (VALUES (1), (2), (1)) n(i) ON id = i WHEN MATCHED THEN UPDATE SET v = 0",
            several,
            kind=kind,
        )

    def test_a_row_that_several_rows_of_using_fit_goes_once(self, sql: IcebergSession) -> None:
        assert sql.rows(f"DELETE FROM {NAME} USING (VALUES (1), (1), (7)) AS g(i) WHERE id = i")[0][1] == 1
        assert rows(sql) == START[1:]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_statements_one_after_the_other(layout: str, tmp_path: Path) -> None:
    sql = filled(tmp_path, layout)
    sql.rows(f"UPDATE {NAME} SET p = 'c', v = NULL WHERE v BETWEEN 20 AND 30", f"DELETE FROM {NAME} WHERE s = 'four'")
    sql.rows(
        f"MERGE INTO {NAME} AS t USING (VALUES (2, 'n'), (7, NULL)) AS n(i, s) ON id = i "
        "WHEN MATCHED THEN UPDATE SET s = n.s WHEN NOT MATCHED THEN INSERT VALUES (n.i, n.s, 1, 'new')"
    )
    assert rows(sql) == [START[0], (2, "c", None, "n"), (3, "c", None, None), START[4], (7, None, 1, "new")]
    assert operations(sql)[-1] == "overwrite"
    assert not list(sql.table.library.inspect.delete_files().to_pylist())


class TestFiles:
    def test_files_without_changed_rows_stay(self, parted: IcebergSession) -> None:
        before = data_files(parted)
        assert len(before) == 4
        parted.rows(f"UPDATE {NAME} SET v = 0 WHERE id = 5")
        assert len(before & data_files(parted)) == 3

    def test_files_all_of_whose_rows_go_are_taken_out_unread(self, parted: IcebergSession) -> None:
        before, stored = data_files(parted), stored_data(parted)
        for path in Path(parted.folder).rglob("p=b/*.parquet"):
            path.write_bytes(b"")
        parted.rows(f"DELETE FROM {NAME} WHERE id <= 3 AND p = 'a'")
        parted.rows(f"DELETE FROM {NAME} WHERE p = 'a'")
        assert len(before & data_files(parted)) == 2
        assert stored_data(parted) == stored
        parted.rows(f"DELETE FROM {NAME}")
        assert operations(parted)[-3:] == ["delete"] * 3
        assert rows(parted) == []

    def test_a_merge_reads_only_what_constants_of_its_condition_leave(self, parted: IcebergSession) -> None:
        """Rows elsewhere match nothing, so that files of them need not be there, and a row of the source is a new one."""
        for path in parted.folder.rglob("p=b/*.parquet"):
            path.unlink()
        merge = f"MERGE INTO {NAME} AS o USING (VALUES (1), (2)) AS n(id) ON o.id = n.id AND o.p = 'a' "
        parted.rows(f"{merge} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, p) VALUES (n.id, 'c')")
        assert parted.rows(f"SELECT id, p FROM {NAME} WHERE p <> 'b' ORDER BY id") == [(2, "c"), (3, "a"), (5, "a")]

    def test_rows_of_old_specs_are_filed_by_the_newest(self, tmp_path: Path) -> None:
        sql = filled(tmp_path, "evolved")
        sql.rows(f"UPDATE {NAME} SET v = v + 1")
        assert {task.file.spec_id for task in sql.table.library.scan().plan_files()} == {sql.table.spec_id}

    def test_a_column_that_came_after_the_last_snapshot(self, plain: IcebergSession) -> None:
        plain.rows(f"ALTER TABLE {NAME} ADD COLUMN w INT", f"ALTER TABLE {NAME} RENAME COLUMN s TO text")
        plain.rows(f"UPDATE {NAME} SET w = length(text), text = 'x' WHERE p = 'b'", f"DELETE FROM {NAME} WHERE w = 4")
        assert plain.rows(f"SELECT id, text, w FROM {NAME} ORDER BY id") == [
            (1, "one", None),
            (2, "x", 3),
            (3, None, None),
            (5, "five", None),
        ]

    def test_an_empty_table(self, tmp_path: Path) -> None:
        sql = IcebergSession(tmp_path)
        sql.rows(f"CREATE TABLE {NAME} (id BIGINT, p STRING, v BIGINT, s STRING)")
        assert sql.rows(f"DELETE FROM {NAME}") == [(None, 0)]
        assert sql.rows(f"UPDATE {NAME} SET id = 1") == [(None, 0)]
        text = (
            f"MERGE INTO {NAME} USING (VALUES (1)) n(i) ON i = id WHEN NOT MATCHED THEN INSERT VALUES (i, 'a', 2, 'b')"
        )
        assert sql.rows(text)[0][1] == 1
        assert rows(sql) == [(1, "a", 2, "b")]


class TestDeleteFiles:
    def test_positions(self, plain: IcebergSession) -> None:
        library = plain.table.library
        first, second = data_paths(library)
        commit_deletes(library, position_deletes(library, {first: [0], second: [1]}, bounds=True))
        assert [row[0] for row in rows(plain)] == [2, 3, 4]
        assert plain.rows(f"UPDATE {NAME} SET v = 0 WHERE id < 3")[0][1] == 1
        assert rows(plain) == [(2, "b", 0, "two"), START[2], START[3]]
        assert plain.rows(f"DELETE FROM {NAME}")[0][1] == 3
        assert rows(plain) == []

    def test_equality_deletes_do_not_fall_on_rows_that_are_written_anew(self, plain: IcebergSession) -> None:
        library = plain.table.library
        commit_deletes(library, equality_deletes(library, pa.table({"p": ["b"]})))
        assert plain.rows(f"SELECT id FROM {NAME} ORDER BY id") == [(1,), (3,), (5,)]
        # Rows that get the value by which others were deleted are there, and those that were deleted stay away.
        assert plain.rows(f"UPDATE {NAME} SET p = 'b' WHERE id < 3")[0][1] == 1
        assert plain.rows(f"SELECT id, p FROM {NAME} ORDER BY id") == [(1, "b"), (3, "a"), (5, "a")]
        assert plain.rows(f"DELETE FROM {NAME}")[0][1] == 3
        assert plain.rows(f"SELECT count(*) FROM {NAME}") == [(0,)]


class TestBranches:
    def test_a_branch_is_changed_alone(self, parted: IcebergSession) -> None:
        parted.rows(f"ALTER TABLE {NAME} CREATE BRANCH dev")
        ((made, _),) = parted.rows(
            f"UPDATE {NAME}$branch_dev SET v = 0 WHERE v = (SELECT max(v) FROM {NAME}$branch_dev)"
        )
        assert made == parted.table.snapshot_id("dev") != parted.table.snapshot_id()
        assert rows(parted) == START
        assert rows(parted, "dev") == [*START[:4], (5, "a", 0, "five")]
        parted.rows(
            f"MERGE INTO {NAME} USING {NAME}$branch_dev AS d ON t.id = d.id AND t.v <> d.v "
            "WHEN MATCHED THEN UPDATE SET v = d.v"
        )
        assert rows(parted) == rows(parted, "dev")

    def test_branches_that_are_not_there_and_tags(self, parted: IcebergSession) -> None:
        parted.rows(f"ALTER TABLE {NAME} CREATE TAG one")
        parted.fails(f"DELETE FROM {NAME}$branch_dev", "has no branch 'dev'; there are main", kind=NotFoundError)
        parted.fails(f"DELETE FROM {NAME}$branch_one", "'one' is a tag", kind=InvalidError)


class TestErrors:
    def test_names(self, plain: IcebergSession) -> None:
        plain.fails("DELETE FROM iceberg.shop.u", "does not exist", at="iceberg.shop.u", kind=UnknownNameError)
        plain.fails("DELETE FROM ice.shop.t", "catalog 'ice' is not known", at="ice.shop.t", kind=UnknownNameError)
        plain.fails(f"DELETE FROM {NAME}$snapshots", "names a system table, which can only be read", at=NAME)
        plain.fails(f"UPDATE {NAME} SET w = 1", "iceberg.shop.t has no column 'w'", at="w = 1")
        plain.fails(f"UPDATE {NAME} SET v = 1, V = 2", "column 'V' is set twice", at="V = 2")
        plain.fails(f"UPDATE {NAME} SET v = w + 1", "w", at="w + 1")
        plain.fails(f"UPDATE {NAME} SET o.v = 1", "expected a column of t", at="o.v")
        plain.fails(f"DELETE FROM {NAME} WHERE iceberg.shop.t.w = 1", "w", at="t.w")

    def test_columns_by_their_full_names(self, plain: IcebergSession) -> None:
        plain.rows(f"UPDATE {NAME} SET iceberg.shop.t.v = Iceberg.shop.t.v + t.id WHERE iceberg.shop.t.id = 1")
        plain.rows(f"DELETE FROM {NAME} AS x WHERE x.id > 1")
        assert rows(plain) == [(1, "a", 11, "one")]

    def test_columns_that_sql_takes_for_one(self, plain: IcebergSession) -> None:
        with plain.table.library.update_schema(case_sensitive=True) as update:
            update.add_column("V", StringType())
        plain.fails(f"DELETE FROM {NAME}", "differ in case alone", kind=InvalidError)

    def test_format_version_3_is_refused(self, plain: IcebergSession) -> None:
        known = json.loads(plain.table.metadata.model_dump_json())
        newer = {**known, "format-version": 3, "next-row-id": 0}
        (plain.folder / "newer.metadata.json").write_text(json.dumps(newer))
        library = plain.lake.catalogs.open("iceberg").library
        library.register_table("shop.u", f"file://{plain.folder}/newer.metadata.json")
        plain.fails("DELETE FROM iceberg.shop.u", "has format version 3", kind=InvalidError)

    def test_isolation_levels_are_checked(self, tmp_path: Path) -> None:
        sql = filled(tmp_path, "plain", **{"write.delete.isolation-level": "loose"})
        sql.fails(f"DELETE FROM {NAME}", "expected serializable or snapshot, found 'loose'", kind=InvalidError)
        sql.rows(f"UPDATE {NAME} SET v = 0")
