"""What all tests share: how random examples are drawn, and the real services, each started when first asked for."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.tiers.examples import SEED, examples

# In CI `make check` and `make test` judge a change by the same examples every time; everywhere else, and where a seed is given,
# each run looks at new ones. How long an example takes says more about the machine than about the code.
_SHARED = settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", _SHARED, derandomize=True)
settings.register_profile("anywhere", _SHARED, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" and SEED is None else "anywhere")

pytest.register_assert_rewrite("tests.unit.storage.contract")

pytest_plugins = [
    "tests.services.fixtures",
    "tests.services.plain_logs",
    "tests.tiers.collector",
    "tests.tiers.schedule",
    "tests.tiers.selection",
]
