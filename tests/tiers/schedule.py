"""How tests are spread over workers: a file stays on one, and everything that shares a virtual machine stays on one.

With `--dist loadfile`, the tests of Spark are two pieces of work, batches and streams, so that two sessions serve them all;
those of Java Paimon are one, and so are those of Iceberg's Spark and REST catalog. The dearest piece begins first
(tests/tiers/costs.json), so that the workers end at about the same time.
"""

from collections import defaultdict

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.tiers.cost_table import seconds_of

SHARED = (
    ("tests/spark/cdc/", "spark streams"),
    ("tests/spark/pipeline/", "spark streams"),
    ("tests/spark/stream/", "spark streams"),
    ("tests/spark/", "spark"),
    ("tests/conformance/iceberg/", "iceberg"),
    ("tests/conformance/", "paimon"),
)


def work_unit(nodeid: str) -> str:
    """What a test shares a worker with: a virtual machine, else its file."""
    return next((name for prefix, name in SHARED if nodeid.startswith(prefix)), nodeid.partition("::")[0])


def dearest_first(nodeids: list[str]) -> list[str]:
    """The tests by work unit, the dearest unit first; within a unit the order stays."""
    units = defaultdict(list)
    for nodeid in nodeids:
        units[work_unit(nodeid)].append(nodeid)
    costs = {name: sum(map(seconds_of, tests)) for name, tests in units.items()}
    return [nodeid for name in sorted(units, key=lambda name: (-costs[name], name)) for nodeid in units[name]]


class CostScheduling(LoadScopeScheduling):
    """Hands out work units in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return work_unit(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> CostScheduling | None:
    if config.getvalue("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return CostScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a worker, the order in which work is handed out; elsewhere that of the files."""
    if hasattr(config, "workerinput"):
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in dearest_first(list(by_name))]
