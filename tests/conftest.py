"""What all tests share: how random examples are drawn, and the real services, each started when first asked for."""

import os

import pytest
from hypothesis import settings

# In CI a change is judged by the same examples every time; everywhere else, and where new ones are asked for, each run looks at
# new ones. How long an example takes says more about the machine than about the code.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("anywhere", deadline=None)
_repeats = os.environ.get("CI") == "true" and os.environ.get("LAKELET_NEW_EXAMPLES") != "1"
settings.load_profile("ci" if _repeats else "anywhere")

pytest.register_assert_rewrite("tests.unit.storage.contract")

pytest_plugins = ["tests.services.fixtures"]
