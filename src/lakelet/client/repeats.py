"""Send a request again where that cannot do it twice.

    what happened                                     reads, queries     writes with a key    other changes
    no connection, or it broke before the last byte   sent again         sent again           sent again
    429, or a 503 that says that nothing was done     sent again         sent again           sent again
    another 503, 502 or 504                           sent again         sent again           CommitUnknownError
    the connection broke before the answer            sent again         sent again           CommitUnknownError
    no answer in time                                 UnavailableError   CommitUnknownError   CommitUnknownError

A write that was sent again and failed in the end is a CommitUnknownError, too, if one of its attempts may have been written. A
request that took too long is not sent again: the service may still be busy with the first one. Waits double from one time to the
next, with jitter; Retry-After makes them longer, and one beyond the longest wait is an error at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakelet.client.connections import HttpAnswer, HttpRequest, NotSentError, Transport, UnansweredError
from lakelet.client.problems import error_of, is_refusal, retry_after_of, unknown_outcome
from lakelet.clock import Clock
from lakelet.errors import InvalidError, LakeletError, OverloadedError, UnavailableError
from lakelet.ids import Ids


@dataclass(frozen=True, slots=True)
class RepeatPolicy:
    """How often a request is sent at most, and the waits in between."""

    attempts: int = 5
    first_wait_seconds: float = 0.1
    longest_wait_seconds: float = 10.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidError(f"attempts: expected 1 or more, found {self.attempts}")
        if self.first_wait_seconds < 0 or self.longest_wait_seconds < 0:
            raise InvalidError("waits: expected 0 seconds or more")

    def wait_seconds(self, attempt: int, retry_after: float | None, jitter: float) -> float | None:
        """The wait behind an attempt, counted from 1 on; None where there is no further one."""
        if attempt >= self.attempts or (retry_after or 0.0) > self.longest_wait_seconds:
            return None
        backoff = min(self.longest_wait_seconds, self.first_wait_seconds * 2.0 ** min(attempt - 1, 60))
        return max(retry_after or 0.0, backoff * (0.5 + jitter / 2))


@dataclass(frozen=True, slots=True)
class _Failure:
    error: LakeletError
    repeatable: bool
    retry_after: float | None = None
    may_be_done: bool = False


class RepeatedRequests:
    """Sends requests over connections until they are answered, or until another attempt might do harm."""

    def __init__(self, connections: Transport, policy: RepeatPolicy, clock: Clock, ids: Ids) -> None:
        self._connections = connections
        self._policy = policy
        self._clock = clock
        self._ids = ids

    def send(self, request: HttpRequest) -> HttpAnswer:
        """The answer of a request that succeeded; the error of any other."""
        attempt, may_be_done = 1, False
        while True:
            # Until an attempt may have been written, no node has written anything under the key.
            is_first = request.fresh and not may_be_done
            outcome = self._attempt(_first(request) if is_first else request)
            if isinstance(outcome, HttpAnswer):
                return outcome
            may_be_done = may_be_done or outcome.may_be_done
            wait = self._policy.wait_seconds(attempt, outcome.retry_after, self._ids.jitter())
            if wait is None or not outcome.repeatable:
                raise unknown_outcome(outcome.error) if may_be_done else outcome.error
            self._clock.sleep(wait)
            attempt += 1

    def _attempt(self, request: HttpRequest) -> HttpAnswer | _Failure:
        where = f"{request.method} {self._connections.address}{request.path.split('?', 1)[0]}"
        try:
            answer = self._connections.send(request)
        except NotSentError as error:
            return _Failure(UnavailableError(f"{where}: {error}; nothing was done"), repeatable=True)
        except UnansweredError as error:
            if request.repeatable:
                return _Failure(UnavailableError(f"{where}: {error}"), repeatable=not error.timed_out)
            if request.keyed:
                unanswered = UnavailableError(f"{where}: {error}")
                return _Failure(unanswered, repeatable=not error.timed_out, may_be_done=True)
            return _Failure(unknown_outcome(f"{where}: {error}"), repeatable=False)
        if 200 <= answer.status < 300:
            return answer
        retry_after = retry_after_of(answer, self._clock)
        failed = error_of(answer, retry_after)
        if is_refusal(answer, failed):
            return _Failure(failed, repeatable=True, retry_after=retry_after)
        if request.repeatable and isinstance(failed, UnavailableError | OverloadedError):
            return _Failure(failed, repeatable=True, retry_after=retry_after)
        if request.keyed and isinstance(failed, UnavailableError | OverloadedError):
            return _Failure(failed, repeatable=True, retry_after=retry_after, may_be_done=True)
        if isinstance(failed, UnavailableError):
            failed = unknown_outcome(failed)
        return _Failure(failed, repeatable=False)


def _first(request: HttpRequest) -> HttpRequest:
    """A request that says that it was not sent before: nodes that are away cannot have written it."""
    return replace(request, headers={**request.headers, "idempotency-first": "true"})
