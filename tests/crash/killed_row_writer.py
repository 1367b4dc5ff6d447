"""A row writer that is killed: puts and deletes keys one after the other, until somebody stops it.

    python -m tests.crash.killed_row_writer WAREHOUSE LOGS FIRST

What step N does follows from N alone. A step is printed after it was acknowledged.
"""

import sys

import lakelet

TABLE = "d.rows"
KEYS = 7


def step(number: int) -> tuple[int, bool]:
    """The key of a step, and whether it is deleted."""
    return number * 3 % KEYS, number % 5 == 4


def write_forever(location: str, logs: str, number: int) -> None:
    """Step after step, with memtables so small that they are flushed all the time."""
    table = lakelet.connect(location).table(TABLE)
    writer = table.writer(wal_folder=logs, options={"memtable.size": "1 kb"})
    while True:
        key, deleted = step(number)
        if deleted:
            writer.delete({"k": key})
        else:
            writer.put({"k": key, "n": number})
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    write_forever(sys.argv[1], sys.argv[2], int(sys.argv[3]))
