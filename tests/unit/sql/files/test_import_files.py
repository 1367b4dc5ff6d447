"""Import and export without a command line: a session, a request, a value."""

import io
from pathlib import Path

import pytest

from lakelet.catalog.connect import connect
from lakelet.errors import InvalidError
from lakelet.sql.files.export import STDOUT, Target, export_query, export_rows
from lakelet.sql.files.file_formats import Source
from lakelet.sql.files.import_files import Imported, ImportFiles, NewTable, import_files
from lakelet.sql.session import Session

_NEW = NewTable(("id",), (), {})


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "a.csv").write_text("id,name\n1,a\n2,b\n")
    return Session(connect(str(tmp_path / "lake")))


def test_files_go_into_a_new_table_and_an_existing_one(session: Session, tmp_path: Path) -> None:
    source = Source.of([str(tmp_path / "a.csv")], None)
    told: list[tuple[float, float | None, int]] = []
    done = import_files(session, "t", ImportFiles(source, _NEW), lambda *state: told.append(state))
    assert done == Imported("default.t", 1, 2, 1)
    assert told[-1] == (16.0, 16.0, 2)
    table = session.context.lake.table("default.t")
    assert import_files(session, table, ImportFiles(source)).snapshot_id == 2
    assert table.scan().count() == 2


def test_a_new_table_goes_again_where_the_import_fails(session: Session, tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("id,other\n1,x\n")
    source = Source.of([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], None)
    with pytest.raises(InvalidError):
        import_files(session, "t", ImportFiles(source, _NEW, missing="error"))
    assert session.context.lake.tables("default") == []


def test_rows_go_to_a_file_or_a_stream(session: Session, tmp_path: Path) -> None:
    import_files(session, "t", ImportFiles(Source.of([str(tmp_path / "a.csv")], None), _NEW))
    lake, stream = session.context.lake, io.BytesIO()
    target = Target.of(STDOUT, None, None, delimiter=None, header=True, overwrite=False)
    assert export_rows(session, export_query(lake, "t"), target, stream=stream) == 2
    assert stream.getvalue() == b'"id","name"\n1,"a"\n2,"b"\n'
    path = tmp_path / "out.ndjson"
    target = Target.of(str(path), None, None, delimiter=None, header=True, overwrite=False)
    assert export_rows(session, export_query(lake, "SELECT id FROM t WHERE id = 2"), target) == 1
    assert path.read_text() == '{"id": 2}\n'
