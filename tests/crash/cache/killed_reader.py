"""A process that queries a table, waits until what it has cached is persisted, says so, and goes on until it is killed."""

import sys
import time
from pathlib import Path

import lakelet

TABLE = "shop.orders"


def main(warehouse: str, persisted: str) -> None:
    lake = lakelet.connect(warehouse, {"cache.persist-folder": persisted, "cache.persist-interval": "10 ms"})
    number = 0
    while True:
        lake.table(TABLE).write([{"id": number, "dt": f"d{number % 3}"}])
        lake.table(TABLE).scan().plan()
        number += 1
        if number > 3 and any(one.is_file() for one in Path(persisted).rglob("*")):
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
