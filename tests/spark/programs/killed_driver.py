"""Writes 40 rows as one job and is killed right before, or right after, its commit.

killed_driver.py WAREHOUSE TABLE before|after DRIVER_ROWS
"""

import sys

from lakelet.spark.session import local_session
from lakelet.spark.write.table_write import write
from tests.spark.faults import KillAround, OnDriver, opening_with, write_module
from tests.spark.java import PATIENT


def main(warehouse: str, table: str, moment: str, driver_rows: str) -> None:
    spark = local_session(config={**PATIENT, "spark.driver.memory": "768m", "spark.log.level": "ERROR"})
    write_module().open_table = opening_with(
        lambda store: OnDriver(
            KillAround(store, "put_if_absent", "/snapshot/snapshot-", after=moment == "after"), store
        )
    )
    rows = spark.range(0, 40, 1, 2).selectExpr("id", "'new' AS v")
    write(rows, warehouse, table, commit_user="job", commit_identifier=7, driver_rows=int(driver_rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
