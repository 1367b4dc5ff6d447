"""A storage call that fails, at every call of every operation: the call is not made, or it is made and the answer lost.

The process lives on, so that its error handling runs: nothing that a snapshot names may be cleaned up, and an operation
that answers without an error has had its effect.
"""

from collections.abc import Iterator

import pytest

from lakelet.errors import CommitUnknownError, LakeletError, PermissionDeniedError, UnavailableError
from lakelet.storage.store import ObjectStore
from lakelet.testing.instrumented_stores import FailingStore, changes
from tests.crash.commit.test_crash import counted, named, repeat, states
from tests.crash.operations import OPERATIONS, Operation
from tests.crash.warehouse import copied, fingerprint, lake_on, prepared, state

CHOSEN = (
    "create_table",
    "append",
    "append_merging_manifests",
    "overwrite_dynamic",
    "delete_by_user",
    "two_phases",
    "add_column",
    "drop_table",
    "keyed_upsert_dynamic",
)
# What differs most from the operations of append tables.
KEYED = (
    "keyed_upsert_dynamic",
    "keyed_upsert_across",
    "keyed_delete_keys",
    "keyed_overwrite_static_across",
    "keyed_restamp",
)
FOREVER = 10**9


def fail_everywhere(
    operation: Operation, error: type[LakeletError], *, times: int
) -> Iterator[tuple[str, LakeletError | None]]:
    """Runs the operation once per call and way of failing, checks what is left, and yields how it ended."""
    start = prepared(operation.prepare)
    before, after, twice, allowed = states(operation, start)
    log = counted(operation, start).log
    calls = len(log)
    seen: set[tuple[int, type[LakeletError] | None]] = set()
    for call in range(1, calls + 1):
        # A read whose answer is lost is one that was not made.
        for effective in (False, True) if changes(*log[call - 1]) else (False,):
            store = copied(start)
            failing = FailingStore(store, fail_at=call, after=effective, times=times, error=error("made to fail"))
            raised = outcome(operation, failing)
            where = f"{operation.name}: call {call} of {calls}, {failing.log[call - 1]} {'done and ' if effective else ''}failed"
            assert raised is None or str(raised), f"{where}: an error without a message"
            yield where, raised
            key = (fingerprint(store), type(raised) if raised is not None else None)
            if key in seen:
                continue
            seen.add(key)
            found = state(store)
            assert found in allowed, where
            assert raised is not None or found == after, f"{where}: reported as done, but it is not"
            repeat(operation, store, had_effect=found == after)
            assert state(store) == (twice if found == after else after), f"{where}; then repeated"
    assert before in allowed


def outcome(operation: Operation, store: ObjectStore) -> LakeletError | None:
    """The error an operation ends with; anything that is no error of ours fails the test."""
    try:
        operation.run(lake_on(store, "run"))
    except LakeletError as error:
        return error
    return None


@pytest.mark.parametrize("operation", [*OPERATIONS, *named(KEYED)], ids=lambda operation: operation.name)
def test_one_unanswered_call(operation: Operation) -> None:
    for where, raised in fail_everywhere(operation, UnavailableError, times=1):
        assert raised is None or isinstance(raised, UnavailableError), f"{where}: {raised!r}"


@pytest.mark.parametrize("operation", named(CHOSEN), ids=lambda operation: operation.name)
def test_an_outage_that_does_not_end(operation: Operation) -> None:
    for where, raised in fail_everywhere(operation, UnavailableError, times=FOREVER):
        assert raised is None or isinstance(raised, UnavailableError | CommitUnknownError), f"{where}: {raised!r}"


@pytest.mark.parametrize("operation", named(CHOSEN), ids=lambda operation: operation.name)
def test_credentials_that_run_out(operation: Operation) -> None:
    for where, raised in fail_everywhere(operation, PermissionDeniedError, times=FOREVER):
        assert raised is None or isinstance(raised, PermissionDeniedError | CommitUnknownError), f"{where}: {raised!r}"


@pytest.mark.parametrize("operation", named(CHOSEN), ids=lambda operation: operation.name)
def test_one_call_that_is_refused(operation: Operation) -> None:
    for where, raised in fail_everywhere(operation, PermissionDeniedError, times=1):
        assert raised is None or isinstance(raised, PermissionDeniedError | CommitUnknownError), f"{where}: {raised!r}"
