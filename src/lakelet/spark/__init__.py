"""Lakelet on Spark, through PySpark and nothing else: no jar of ours runs in the JVM.

import lakelet.spark as ls
ls.write(df, "./warehouse", "shop.orders", mode="upsert")
ls.table(spark, "./warehouse", "shop.orders", where="dt = '2026-01-01'")
"""

from lakelet.spark.jobs.bulk_load import bulk_load
from lakelet.spark.jobs.checksum import checksum
from lakelet.spark.jobs.compact import compact, rescale
from lakelet.spark.jobs.copy_table import copy_table
from lakelet.spark.jobs.count import count
from lakelet.spark.jobs.migrate import migrate
from lakelet.spark.jobs.orphans import remove_orphan_files
from lakelet.spark.read import table
from lakelet.spark.registration import register
from lakelet.spark.session import local_session
from lakelet.spark.sql import sql
from lakelet.spark.views import views
from lakelet.spark.write import write

__all__ = [
    "bulk_load",
    "checksum",
    "compact",
    "copy_table",
    "count",
    "local_session",
    "migrate",
    "register",
    "remove_orphan_files",
    "rescale",
    "sql",
    "table",
    "views",
    "write",
]
