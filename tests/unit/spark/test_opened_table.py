"""Options of a job, and which of them open the lake."""

from pathlib import Path

import lakelet
from lakelet.spark.opened_table import open_table


def test_callbacks_are_allowed_by_the_options_of_the_job(tmp_path: Path) -> None:
    lake = lakelet.connect(str(tmp_path))
    lake.create_database("d")
    lake.create_table("d.t", [("id", "BIGINT")])
    assert open_table(tmp_path, "d.t").home.callback_modules == ()
    opened = open_table(tmp_path, "d.t", {"callbacks.allow": "shop.hooks, audit"})
    assert opened.home.callback_modules == ("shop.hooks", "audit")
    assert not opened.extra
