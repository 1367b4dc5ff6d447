"""Fixtures every test may use: the real services, each started when first asked for."""

import pytest

pytest.register_assert_rewrite("tests.unit.storage.contract")

pytest_plugins = ["tests.services.fixtures"]
