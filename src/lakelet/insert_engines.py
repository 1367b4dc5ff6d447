"""The engines that can run the query of an INSERT, by the name that `SET execution.engine` gives them.

    lakelet/spark/__init__    provides "spark"
    sql/engine/execution      looks an engine up and hands it the insert

Nothing is loaded with it, so that the many Python processes that Spark starts do not load SQL to provide an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ENGINES: dict[str, Callable[[Any], tuple[int | None, int]]] = {}
