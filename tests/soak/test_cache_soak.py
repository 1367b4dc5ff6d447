"""The metadata cache under the load that its design names: 10,000 tables, 100 clients, 1,000 queries each."""

import os
from pathlib import Path

import pytest

from tests.unit.cache.test_load import run_clients
from tests.unit.catalog.metadata_cache.test_many_threads import run_readers

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not os.environ.get("LAKELET_SOAK"), reason="only in `make soak`")]


@pytest.mark.parametrize(
    "options", [{}, {"cache.max-bytes": "4 mb", "cache.table-metadata.max-bytes": "1 mb"}], ids=["roomy", "small"]
)
def test_ten_thousand_tables_a_hundred_clients_a_thousand_queries(options: dict[str, str]) -> None:
    run_clients(10_000, 100, 1_000, options)


def test_the_same_with_tables_of_a_lake_that_are_written_to_meanwhile(tmp_path: Path) -> None:
    newer = run_readers(tmp_path, 10_000, 100, 1_000, {"cache.max-bytes": "8 mb"})
    # Some queries were overtaken by a commit, so that the comparison says something.
    assert newer > 0
