"""Runs inside .venv-iceberg: answers requests for Iceberg's own Spark runtime and for DuckDB's Iceberg extension on its
standard input.

The protocol is that of `tests/conformance/line_process.py`. A request is `{"command": NAME, …arguments…}`; the arguments are
those of the function of that name below. Tables of rows travel as Arrow IPC files named by path.

Every lake has a Spark session of its own, in which the catalog `iceberg` is the lake's: the same SQLite file that pyiceberg
writes, by Iceberg's JDBC catalog. Spark starts when it is first asked for; DuckDB alone needs no Java.
"""

import functools
import json
import os
import pathlib
import sys
import traceback

import pyarrow as pa

# ---------------------------------------------------------------- Spark


@functools.cache
def spark():
    """The one Spark. It has one core, so that files and their order are the same every time."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.jars": os.environ["ICEBERG_JARS"],
        "spark.local.dir": os.environ["ICEBERG_LOCAL"],
        "spark.sql.warehouse.dir": os.environ["ICEBERG_LOCAL"],
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        # Queries are small and many: compiling them takes longer than running them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    builder = SparkSession.builder.master("local[1]").appName("iceberg")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@functools.cache
def session(folder):
    """The session in which `iceberg` is the catalog of the lake in `folder`, and `published` that of its published tables."""
    found = spark().newSession()
    catalog, published = "spark.sql.catalog.iceberg", "spark.sql.catalog.published"
    (pathlib.Path(folder) / "iceberg").mkdir(exist_ok=True)
    for name, value in {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{catalog}.uri": f"jdbc:sqlite:{folder}/iceberg/catalog.db",
        f"{catalog}.warehouse": f"file://{folder}/iceberg",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.clients": "1",
        f"{catalog}.cache-enabled": "false",
        published: "org.apache.iceberg.spark.SparkCatalog",
        f"{published}.type": "hadoop",
        f"{published}.warehouse": f"file://{folder}/iceberg",
        f"{published}.cache-enabled": "false",
    }.items():
        found.conf.set(name, value)
    return found


def java_table(folder, table):
    jvm = spark()._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session(folder)._jsparkSession, f"iceberg.{table}")


def java_filter(folder, table, where):
    """A predicate in Spark's SQL as Iceberg's expression."""
    converter = spark()._jvm.org.apache.spark.sql.execution.datasources.SparkExpressionConverter
    resolved = converter.collectResolvedSparkExpression(session(folder)._jsparkSession, f"iceberg.{table}", where)
    return converter.convertToIcebergExpression(resolved)


def each(iterable):
    """What one of Java's iterables gives."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def sql(folder, query, out):
    """Runs a statement, and writes its rows to the Arrow IPC file `out`."""
    save(session(folder).sql(query).toArrow(), out)


def insert(folder, table, data, mode, branch=None):
    """One commit of Iceberg's own writers. Columns are matched by name."""
    target = f"iceberg.{table}" + (f".branch_{branch}" if branch else "")
    rows = session(folder).createDataFrame(load(data))
    writer = rows.writeTo(target)
    if mode == "append":
        writer.append()
    elif mode == "overwrite_partitions":
        writer.overwritePartitions()
    else:
        raise ValueError(mode)


def planned(folder, table, where, snapshot=None):
    """The paths of the data files that Iceberg's planning leaves for a predicate."""
    scan = java_table(folder, table).newScan().filter(java_filter(folder, table, where))
    if snapshot is not None:
        scan = scan.useSnapshot(snapshot)
    for task in each(scan.planFiles()):
        yield task.file().location()


def equality_delete(folder, table, columns, where):
    """Commits equality deletes, by `columns`, of the values that the rows where a predicate holds have now: one file for each
    partition. The files carry all columns, as they may; rows never leave Java, which would change the types of numbers."""
    api = spark()._jvm.org.apache.iceberg
    found = java_table(folder, table)
    schema = found.schema()
    ids = spark().sparkContext._gateway.new_array(spark()._jvm.int, len(columns))
    for place, column in enumerate(columns):
        ids[place] = schema.findField(column).fieldId()
    parquet = api.FileFormat.PARQUET
    builder = getattr(api.data, "GenericFileWriterFactory$Builder")(found)
    factory = builder.deleteFileFormat(parquet).equalityFieldIds(ids).equalityDeleteRowSchema(schema).build()
    files = api.io.OutputFileFactory.builderFor(found, 1, 1).format(parquet).build()
    wrapper = api.data.InternalRecordWrapper(schema.asStruct())
    key = api.PartitionKey(found.spec(), schema)
    writers = {}
    for record in each(api.data.IcebergGenerics.read(found).where(java_filter(folder, table, where)).build()):
        key.partition(wrapper.wrap(record))
        if key.toPath() not in writers:
            output = files.newOutputFile(found.spec(), key)
            writers[key.toPath()] = factory.newEqualityDeleteWriter(output, found.spec(), key.copy())
        writers[key.toPath()].write(record)
    change = found.newRowDelta()
    for writer in writers.values():
        writer.close()
        change.addDeletes(writer.toDeleteFile())
    change.commit()
    yield len(writers)


def add_int(folder, table, column, default):
    """Adds an int column that rows from before show with a value of its own, which Spark's SQL cannot."""
    api = spark()._jvm.org.apache.iceberg
    int_type = getattr(api.types, "Types$IntegerType").get()
    literal = api.expressions.Expressions.lit(default)
    java_table(folder, table).updateSchema().addColumn(column, int_type, literal).commit()


# ---------------------------------------------------------------- DuckDB


def duck():
    """DuckDB with its Iceberg extension, which it checks to be signed when it loads it. Anew each time: what fails inside makes
    a database unusable."""
    import duckdb
    import duckdb_extension_avro
    import duckdb_extension_iceberg

    found = duckdb.connect()
    found.execute("SET TimeZone = 'UTC'")
    for package in (duckdb_extension_avro, duckdb_extension_iceberg):
        (path,) = pathlib.Path(package.__path__[0]).glob("extensions/*/*.duckdb_extension")
        found.execute(f"LOAD '{path}'")
    return found


def duckdb_sql(query, out):
    """Runs a query, which names a table as `iceberg_scan('…metadata.json')`; its rows go to the Arrow IPC file `out`."""
    save(duck().execute(query).to_arrow_table(), out)


# ---------------------------------------------------------------- serving


def load(path):
    with pa.OSFile(path) as source:
        return pa.ipc.open_file(source).read_all()


def save(rows, path):
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)


COMMANDS = {function.__name__: function for function in (sql, insert, planned, equality_delete, add_int, duckdb_sql)}


def serve():
    # Whatever a library prints must not mix with the answers, neither from Python nor from the JVM it starts.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        done = {"_done": True, "rc": 0}
        try:
            request = json.loads(line)
            for value in COMMANDS[request.pop("command")](**request) or ():
                print(json.dumps(value), file=answers)
        except Exception as error:
            traceback.print_exc()
            said = str(error).strip().splitlines()
            done = {"_done": True, "rc": 1, "error": type(error).__name__, "cause": "\n".join(said[:12])}
        print(json.dumps(done), file=answers, flush=True)


if __name__ == "__main__":
    serve()
