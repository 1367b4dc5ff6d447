"""Runs inside .venv-pypaimon: answers requests for pypaimon (Python) and pypaimon-rust (native) on its standard input.

The protocol is that of `tests/conformance/line_process.py`. A request is `{"command": NAME, …arguments…}`; the
arguments are those of the function of that name below. Tables of rows travel as Arrow IPC files named by path.

The native side calls pypaimon-rust directly. pypaimon's own switches (`read.native.enabled`, …) fall back to Python
without a word where the native library does not support a table, and a test could not tell what it tested.
"""

import datetime
import json
import sys
import traceback
from decimal import Decimal

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.common.predicate import Predicate
from pypaimon.schema.data_types import AtomicInteger, DataTypeParser, PyarrowFieldParser
from pypaimon_rust.datafusion import PaimonCatalog

STRING_LITERALS = (datetime.date, datetime.time, datetime.datetime, Decimal)


# ---------------------------------------------------------------- tables


def catalog_of(warehouse):
    return CatalogFactory.create({"warehouse": warehouse})


def table_of(warehouse, table, branch=None, options=None):
    name = table if branch is None else f"{table}$branch_{branch}"
    found = catalog_of(warehouse).get_table(name)
    return found.copy(options) if options else found


def create(warehouse, table, columns, primary_key=(), partitioned_by=(), options=None, comment=None):
    ids = AtomicInteger(-1)
    fields = [DataTypeParser.parse_data_field(column, ids) for column in columns]
    schema = Schema(fields, list(partitioned_by), list(primary_key), dict(options or {}), comment)
    catalog = catalog_of(warehouse)
    catalog.create_database(table.split(".")[0], True)
    catalog.create_table(table, schema, False)


def drop(warehouse, table):
    catalog_of(warehouse).drop_table(table)


def snapshots(warehouse, table):
    """Ids and commit kinds, oldest first."""
    native = PaimonCatalog({"warehouse": warehouse}).get_table(table)
    for snapshot in reversed(native.list_snapshots()):
        yield {"id": snapshot.id(), "commitKind": snapshot.commit_kind()}


def tag(warehouse, table, name, snapshot=None):
    table_of(warehouse, table).create_tag(name, snapshot)


def delete_tag(warehouse, table, name):
    table_of(warehouse, table).delete_tag(name)


def tags(warehouse, table):
    yield from table_of(warehouse, table).list_tags()


def rollback(warehouse, table, to):
    table_of(warehouse, table).rollback_to(to)


def version(warehouse, table, method, arguments):
    """Calls a method of the table, or of one of its managers: `tag_manager.get`; gives what comes back as text."""
    found = table_of(warehouse, table)
    *manager, name = method.split(".")
    target = getattr(found, manager[0])() if manager else found
    yield repr(getattr(target, name)(*arguments))


# ---------------------------------------------------------------- writing


def write(warehouse, table, data, native=False, overwrite=None, stream=None, options=None, branch=None):
    """One commit. `overwrite` is a partition (empty: all that is written to); `stream` is [user, identifier]."""
    with pa.OSFile(data) as source:
        rows = pa.ipc.open_file(source).read_all()
    if native:
        if options or branch:
            raise ValueError("the native writer takes no options and no branch")
        target = PaimonCatalog({"warehouse": warehouse}).get_table(table)
    else:
        target = table_of(warehouse, table, branch, options)
    if stream is None:
        write_batch(target, rows, native, overwrite)
    else:
        write_stream(target, rows, native, *stream)


def write_batch(table, rows, native, overwrite):
    builder = table.new_batch_write_builder()
    if overwrite is not None:
        builder = builder.with_overwrite(overwrite) if native else builder.overwrite(overwrite)
    writer, commit = builder.new_write(), builder.new_commit()
    try:
        write_all(writer, rows)
        commit.commit(writer.prepare_commit())
    finally:
        writer.close()
        commit.close()


def write_stream(table, rows, native, user, identifier):
    builder = table.new_stream_write_builder()
    builder = builder.with_commit_user(user) if native else builder._with_commit_user(user)
    writer, commit = builder.new_write(), builder.new_commit()
    try:
        write_all(writer, rows)
        if native:
            commit.commit(identifier, writer.prepare_commit(True, identifier))
        else:
            commit.commit(writer.prepare_commit(identifier), identifier)
    finally:
        writer.close()
        commit.close()


def write_all(writer, rows):
    for batch in rows.to_batches():
        writer.write_arrow(batch)


# ---------------------------------------------------------------- reading


def read(
    warehouse,
    table,
    out,
    native=False,
    columns=None,
    filters=(),
    snapshot=None,
    tag=None,
    limit=None,
    branch=None,
    options=None,
):
    """Writes the rows to the Arrow IPC file `out`. A filter is {"method", "field", "literals"}; all must hold."""
    options = dict(options or {})
    if snapshot is not None:
        options["scan.snapshot-id"] = str(snapshot)
    if tag is not None:
        options["scan.tag-name"] = tag
    source = table_of(warehouse, table, branch, options)
    schema = PyarrowFieldParser.from_paimon_schema(source.table_schema.fields)
    predicates = [typed_filter(schema, one) for one in filters]
    read_rows = read_native if native else read_python
    rows = read_rows(warehouse, table, source, branch, options, columns, predicates, limit)
    if rows is None:
        rows = schema.empty_table() if columns is None else schema.empty_table().select(columns)
    with pa.OSFile(out, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


def read_python(warehouse, table, source, branch, options, columns, predicates, limit):
    builder = source.new_read_builder()
    if columns is not None:
        builder = builder.with_projection(columns)
    if predicates:
        names = [field.name for field in source.table_schema.fields]
        leaves = [Predicate(p["method"], names.index(p["field"]), p["field"], p["literals"]) for p in predicates]
        builder = builder.with_filter(leaves[0] if len(leaves) == 1 else Predicate("and", None, None, leaves))
    if limit is not None:
        builder = builder.with_limit(limit)
    splits = builder.new_scan().plan().splits()
    return builder.new_read().to_arrow(splits)


def read_native(warehouse, table, source, branch, options, columns, predicates, limit):
    if branch is not None:
        raise ValueError("the native reader takes no branch")
    builder = PaimonCatalog({"warehouse": warehouse}).get_table(table).new_read_builder(options)
    if columns is not None:
        builder = builder.with_projection(columns)
    if predicates:
        tree = predicates[0] if len(predicates) == 1 else {"method": "and", "children": predicates}
        builder = builder.with_filter(tree)
    if limit is not None:
        builder = builder.with_limit(limit)
    batches = builder.new_read().read(builder.new_scan().plan().splits())
    return pa.Table.from_batches(batches) if batches else None


def typed_filter(schema, one):
    """JSON has no dates or decimals: a literal given as a string becomes a value of the column's type."""
    type_ = schema.field(one["field"]).type
    literals = [typed_literal(type_, literal) for literal in one.get("literals", [])]
    return {"method": one["method"], "field": one["field"], "literals": literals}


def typed_literal(type_, literal):
    if not isinstance(literal, str) or pa.types.is_string(type_):
        return literal
    value = pa.scalar(literal).cast(type_).as_py()
    assert isinstance(value, STRING_LITERALS), f"no literals of {type_}"
    return value


# ---------------------------------------------------------------- serving

COMMANDS = {
    function.__name__: function
    for function in (create, drop, snapshots, tag, delete_tag, tags, rollback, version, write, read)
}


def serve():
    # Whatever a library prints must not mix with the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        done = {"_done": True, "rc": 0}
        try:
            request = json.loads(line)
            for value in COMMANDS[request.pop("command")](**request) or ():
                print(json.dumps(value), file=answers)
        except BaseException as error:  # A panic of the native library is no Exception.
            traceback.print_exc()
            root = error
            while root.__cause__ or root.__context__:
                root = root.__cause__ or root.__context__
            done = {"_done": True, "rc": 1, "error": repr(error), "cause": repr(root)}
        print(json.dumps(done), file=answers, flush=True)


if __name__ == "__main__":
    serve()
