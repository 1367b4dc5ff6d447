"""Logs that tests read are text, also where a library gives pytest's handlers another form."""

import logging

import pytest


class _JsonLogger(logging.Logger):
    """As PySpark's: whoever gives it a handler gets it back changed."""

    def addHandler(self, hdlr: logging.Handler) -> None:
        hdlr.setFormatter(logging.Formatter("%(levelname)s in JSON"))
        super().addHandler(hdlr)


@pytest.fixture
def json_logger() -> _JsonLogger:
    """A logger that is there before the test runs, and gets pytest's handlers then."""
    before = logging.getLoggerClass()
    logging.setLoggerClass(_JsonLogger)
    logger = logging.getLogger("lakelet.tests.json")
    logging.setLoggerClass(before)
    logger.propagate = False
    assert isinstance(logger, _JsonLogger)
    return logger


def test_text_stays_text(json_logger: _JsonLogger, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("lakelet.tests").warning("found %d", 7)
    assert "found 7" in caplog.text
    json_logger.propagate = True
