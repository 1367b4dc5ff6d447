"""A writer to be killed: commits in a loop until it is stopped, and reports on standard output what is committed.

    python -m tests.crash.killed_writer WAREHOUSE WORKER FIRST

Every line is one acknowledged identifier, written after the commit returned. Started again with the first identifier that
was not acknowledged, it sends that commit once more.
"""

import sys

import pyarrow as pa

import lakelet

TABLE = "d.t"


def write_forever(location: str, worker: int, identifier: int) -> None:
    """Commits one identifier after the other: appends, and an overwrite of the worker's own partition every seventh time."""
    table = lakelet.connect(location).table(TABLE)
    while True:
        data = pa.table(
            {
                "worker": pa.array([worker, worker], pa.int64()),
                "n": pa.array([identifier * 2, identifier * 2 + 1], pa.int64()),
            }
        )
        mode = "overwrite_partitions" if identifier % 7 == 6 else "append"
        table.write(data, mode=mode, commit_user=f"writer-{worker}", commit_identifier=identifier)
        sys.stdout.write(f"{identifier}\n")
        sys.stdout.flush()
        identifier += 1


if __name__ == "__main__":
    write_forever(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
