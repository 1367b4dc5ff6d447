"""Connections are kept, never used once the other side has closed them, and addresses are checked."""

import threading
from pathlib import Path

import pytest

from lakelet.client import Client
from lakelet.client.connections import Address
from lakelet.errors import InvalidError, LakeletError, NotFoundError, TooLargeError
from tests.unit.client.scripted_server import Answer, problem, scripted
from tests.unit.moving_clock import MovingClock

HEALTHY = Answer(document={"status": "ok", "details": {}})
WRITTEN = Answer(document={"success": True, "written": 1})


def write(client: Client, payload: dict[str, object] | None = None) -> object:
    return client.write("t", "a", "2026-01-31T10:00:00Z", payload or {})


def test_a_connection_is_kept() -> None:
    with scripted(HEALTHY, WRITTEN, HEALTHY) as server, Client(server.address) as client:
        client.health()
        write(client)
        client.health()
    assert server.connections == 1


def test_a_change_does_not_go_to_a_connection_that_the_service_has_closed() -> None:
    """A request without a body leaves at once, also on such a connection: nobody could say whether it was done."""
    closing = Answer(document=HEALTHY.document, closes=True)
    with scripted(closing, Answer(document={"deleted": 1})) as server, Client(server.address) as client:
        client.health()
        assert server.closed.wait(60)
        assert client.delete("t", "a") == 1
    assert server.connections == 2


def test_a_connection_that_was_idle_for_long_is_not_used() -> None:
    clock = MovingClock()
    with scripted(HEALTHY, WRITTEN) as server, Client(server.address, clock=clock) as client:
        client.health()
        clock.move(minutes=1)
        write(client)
    assert server.connections == 2


def test_a_connection_that_is_to_close_is_not_kept() -> None:
    closing = Answer(document=HEALTHY.document, headers={"connection": "close"}, closes=True)
    with scripted(closing, HEALTHY) as server, Client(server.address) as client:
        client.health()
        client.health()
    assert server.connections == 2


def test_threads_have_connections_of_their_own() -> None:
    with scripted(*[HEALTHY] * 40) as server, Client(server.address) as client:
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda: found.extend(client.health().status for _ in range(5))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["ok"] * 40
    assert server.connections <= 8


def test_a_body_that_is_refused_before_it_is_read_has_its_error() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(problem("too-large", 413, headers={"connection": "close"}).encoded())
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 20):
                    pass

        thread = threading.Thread(target=refuse)
        thread.start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client, pytest.raises(TooLargeError):
            write(client, {"x": "y" * 4_000_000})
        thread.join()


def test_a_closed_client_says_so() -> None:
    client = Client("http://127.0.0.1:1")
    client.close()
    with pytest.raises(InvalidError, match="closed"):
        client.health()


@pytest.mark.parametrize(
    "text",
    ["", "lake", "ftp://h", "http://", "http://h:x", "http://h:99999", "http://h?x=1", "http://h/#f", "http://u:p@h",
     "http://h/a b", "http://h\r\nx: y"],
)  # fmt: skip
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(InvalidError, match="address"):
        Client(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("http://h", Address("http", "h", 80, "")),
        ("https://h/", Address("https", "h", 443, "")),
        ("http://[::1]:8080", Address("http", "::1", 8080, "")),
        ("https://h:1/lake/", Address("https", "h", 1, "/lake")),
    ],
)
def test_addresses(text: str, found: Address) -> None:
    assert Address.parse(text) == found
    assert Address.parse(str(found)) == found


def test_a_prefix_of_the_address_is_kept() -> None:
    with scripted(HEALTHY) as server, Client(f"{server.address}/lake/") as client:
        client.health()
    assert server.seen[0].path == "/lake/v1/health"


def test_the_key_is_sent_and_shown_nowhere() -> None:
    with (
        scripted(problem("unauthenticated", 401)) as server,
        Client(server.address, api_key="lk_1_secret") as client,
        pytest.raises(LakeletError) as raised,
    ):
        client.health()
    assert server.seen[0].headers["authorization"] == "Bearer lk_1_secret"
    assert "secret" not in f"{raised.value!r}{client!r}"


@pytest.mark.parametrize("key", ["", "a b", "a\r\nx: y", "schlüssel"])
def test_keys_that_are_none(key: str) -> None:
    with pytest.raises(InvalidError, match="api_key"):
        Client(api_key=key)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_timeouts_that_are_none(seconds: float) -> None:
    with pytest.raises(InvalidError, match="timeout_seconds"):
        Client(timeout_seconds=seconds)


def test_certificates(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="ca_file"):
        Client("https://h", ca_file=str(tmp_path / "none.pem"))
    (tmp_path / "odd.pem").write_text("no certificate")
    with pytest.raises(InvalidError, match="ca_file"):
        Client("https://h", ca_file=str(tmp_path / "odd.pem"))
