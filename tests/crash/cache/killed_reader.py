"""A process that queries a table, waits until what it has cached is persisted, says so, and goes on until it is killed."""

import sys
import time
from pathlib import Path

import lakelet

TABLE = "shop.orders"


def main(warehouse: str, persisted: str) -> None:
    lake = lakelet.connect(warehouse, {"cache.persist-folder": persisted, "cache.persist-interval": "10 ms"})
    number = 0
    versions: dict[str, set[int]] = {"history": set(), "table": set()}
    while True:
        lake.table(TABLE).write([{"id": number, "dt": f"d{number % 3}"}])
        lake.table(TABLE).scan().plan()
        number += 1
        if number <= 3:
            continue
        for one in Path(persisted).rglob("*"):
            if one.is_file() and not one.suffix:
                versions["history" if one.name == "history" else "table"].add(one.stat().st_mtime_ns)
        # A file that was found or begun before the third plan may be without it, the one after that is not.
        if all(len(seen) > 2 for seen in versions.values()):
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
