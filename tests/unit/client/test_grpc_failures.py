"""What the service says of a failed call over gRPC comes back as it does over HTTP."""

import grpc
import pytest

from lakelet.client.grpc_connections import _failure
from lakelet.client.problems import error_of, is_refusal
from lakelet.errors import OutcomeUnknownError, UnavailableError


class Failed:
    """A call that failed."""

    def __init__(self, code: str, **more: str) -> None:
        self._trailing = (("lakelet-code", code), *((name.replace("_", "-"), text) for name, text in more.items()))

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._trailing

    def details(self) -> str:
        return "away"

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("failed", "kind", "refused"),
    [
        (Failed("unavailable", retry_after="1", lakelet_nothing_done="true"), UnavailableError, True),
        (Failed("unavailable", retry_after="1"), UnavailableError, False),
        (Failed("outcome-unknown"), OutcomeUnknownError, False),
    ],
    ids=["nothing done", "not known", "another node"],
)
def test_only_what_certainly_did_nothing_is_sent_again(failed: Failed, kind: type[Exception], refused: bool) -> None:
    answer = _failure(failed, 1.0)
    error = error_of(answer, 1.0)
    assert type(error) is kind
    assert is_refusal(answer, error) is refused
