"""An address that nobody listens at."""

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def unused_address() -> Iterator[str]:
    """Bound and not listening: connections are refused, and nobody else gets the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
