"""What tests read of the log is text, whoever has changed the handlers.

pytest hands its handlers to every logger that does not propagate, and one of PySpark turns each handler that it is given into
one of JSON, which shows less of an exception. That would hold for all tests that a worker runs from then on.
"""

from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Give pytest's handlers their formatter back, once they are where they belong."""
    plugin = item.config.pluginmanager.get_plugin("logging-plugin")
    if plugin is not None:
        for handler in (plugin.caplog_handler, plugin.report_handler):
            handler.setFormatter(plugin.formatter)
    return (yield)
