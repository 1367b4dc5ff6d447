"""Spark's Python processes as forks of one that has imported everything: as the JVM's classes, once and not for each.

Of what the tests of streams cost, two thirds were imports of the process that each query starts. Drivers with a life of their own
(clusters, killed drivers, sessions that nobody prepared) start Python as Spark does everywhere.
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.spark.java import REPOSITORY
from tests.spark.programs import warm_python

SERVER = REPOSITORY / "tests" / "spark" / "programs" / "warm_python_server.py"
# Not the modules that run as programs: Spark's daemon, and its runner of streaming sources.
IMPORTED = (
    "pyspark.worker",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.orc",
    "pyarrow.parquet",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
    "pyspark_lakelet",
    "pyspark_lakelet_iceberg",
    "lakelet.spark",
)


@contextmanager
def warm_processes(imported: Sequence[str] = IMPORTED) -> Iterator[dict[str, str]]:
    """The variables with which Spark's Python processes are forks, while they are served."""
    with tempfile.TemporaryDirectory(prefix="lakelet-python-") as folder:
        program, address = Path(folder, "python"), Path(folder, "socket")
        source = Path(warm_python.__file__).read_text(encoding="utf-8")
        program.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
        program.chmod(0o755)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(address))
        # Who comes before the server has imported everything waits.
        listening.listen(64)
        number = listening.fileno()
        command = [sys.executable, str(SERVER), str(number), *imported]
        # As Spark starts its Python processes.
        variables = {**os.environ, "PYTHONHASHSEED": "0"}
        with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, pass_fds=[number]) as server:
            listening.close()
            try:
                python = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(program))
                yield {**python, warm_python.ADDRESS: str(address)}
            finally:
                assert server.stdin is not None
                server.stdin.close()
