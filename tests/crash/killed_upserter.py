"""A writer of a primary-key table that is killed: upserts and deletes keys that all writers share, until somebody stops it.

    python -m tests.crash.killed_upserter WAREHOUSE WORKER FIRST

What a commit does follows from its worker and identifier alone, so that whoever knows the order of the commits knows the rows.
"""

import sys

import pyarrow as pa

import lakelet
from tests.crash.killed_writer import TABLE

KEYS = 9


def upserts(worker: int, identifier: int) -> tuple[list[int], list[int]]:
    """The keys that a commit puts in, and those that it takes out."""
    touched = [(worker + identifier * step) % KEYS for step in (1, 2, 4)]
    keys = sorted(set(touched))
    return (keys, []) if identifier % 3 else (keys[1:], keys[:1])


def write_forever(location: str, worker: int, identifier: int) -> None:
    """Commits one identifier after the other."""
    table = lakelet.connect(location).table(TABLE)
    while True:
        put, taken = upserts(worker, identifier)
        keys = [*put, *taken]
        data = pa.table(
            {
                "k": pa.array(keys, pa.int64()),
                "worker": pa.array([worker] * len(keys), pa.int64()),
                "n": pa.array([identifier] * len(keys), pa.int64()),
            }
        )
        kinds = ["+U"] * len(put) + ["-D"] * len(taken)
        table.write(data, kinds=kinds, commit_user=f"writer-{worker}", commit_identifier=identifier)
        sys.stdout.write(f"{identifier}\n")
        sys.stdout.flush()
        identifier += 1


if __name__ == "__main__":
    write_forever(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
