"""The committer: turns commit messages into one new snapshot, concurrently with other committers.

    find the newest snapshot ─ compute the delta ─ write manifests ─ sync ─ create snapshot-N if absent ─ check it
          ▲                                                                            │ lost
          └───────────────────────── wait, with jitter ◄───────────────────────────────┘

The creation of `snapshot-N` is the commit; everything before it is invisible, everything after it a convenience. The
order of steps is chosen so that a crash between any two leaves the table intact:

- Files that are invisible before the snapshot are written without waiting for the disk, and synced all together before the
  snapshot is created: the data files of this process, index files, manifests. A commit so waits for the disk twice.
- A lost race removes the manifests of its attempt and retries on the new snapshot. Data files stay: they belong to
  the caller until they are committed.
- "Already exists" may be our own object, kept by a store that then failed to answer. It is read and compared.
- An error from the store leaves the outcome open. The same bytes are sent again until the store answers; if it never does,
  `CommitUnknownError` says so and every file stays where it is.
- A create that succeeds on an id that was expired or rolled back in the meantime is no commit (`commit_check` decides): the
  snapshot is removed again and the commit retried.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from enum import Enum, auto

from lakelet.commit.callbacks.commit_callbacks import run_commit_callbacks
from lakelet.commit.changes import Changes, compute_changes
from lakelet.commit.commit_users import last_identifier
from lakelet.commit.committed_files import new_paths, remove_unused_changelogs
from lakelet.commit.conflict.commit_check import is_committed
from lakelet.commit.delta_manifests import DeltaManifests
from lakelet.commit.dropped_table import is_dropped
from lakelet.commit.index_changes import carry_index_manifest
from lakelet.commit.metadata.manifest_merge import MergePolicy, merge_manifests, needs_packing, pack_manifests
from lakelet.commit.metadata.manifests import ManifestFiles, ManifestSettings
from lakelet.commit.metadata.missing_file import SnapshotExpiredError
from lakelet.commit.metadata.schemas import latest_schema
from lakelet.commit.metadata.snapshots import (
    latest_snapshot,
    snapshots_backwards,
    try_snapshot,
    write_latest_hint,
)
from lakelet.commit.metadata.table_identity import check_same_table
from lakelet.commit.request import CommitRequest
from lakelet.errors import CommitUnknownError, ConflictError, LakeletError, UnavailableError
from lakelet.events import Committed, StateUnknown, publish
from lakelet.format.metadata.snapshot_json import encode_snapshot
from lakelet.model.schema import TableSchema
from lakelet.model.snapshot import CommitKind, Snapshot
from lakelet.options import (
    COMMIT_MAX_RETRIES,
    COMMIT_MAX_RETRY_WAIT,
    COMMIT_MIN_RETRY_WAIT,
    COMMIT_TIMEOUT,
    TableOptions,
)
from lakelet.storage.home import TableHome

_LOG = logging.getLogger(__name__)
_UNKNOWN_TRIES = 6
_DATA_KINDS = (CommitKind.APPEND, CommitKind.OVERWRITE)
# Without an explicit limit a commit keeps racing for this long before it gives up.
_DEFAULT_PATIENCE = timedelta(minutes=5)
# The wait after a commit's first loss is at most this many times as long as the attempt was.
_FIRST_WAIT_ATTEMPTS = 4


class _Outcome(Enum):
    """The outcome of creating a snapshot file: ours and committed; another writer's; ours, perhaps visible for a while, and
    withdrawn.
    """

    MADE = auto()
    LOST = auto()
    WITHDRAWN = auto()


def commit(home: TableHome, request: CommitRequest) -> Snapshot | None:
    """Commit, and return the snapshot made, or the one an earlier identical request made; None for an empty commit."""
    delta = DeltaManifests(home)
    try:
        made = _commit(home, request, delta)
    except CommitUnknownError:
        publish(StateUnknown(home.table_name, home.paths.branch, "commit"))
        raise
    except LakeletError:
        delta.remove()
        raise
    except BaseException:
        # An interrupt may have come right after the snapshot was created.
        publish(StateUnknown(home.table_name, home.paths.branch, "commit"))
        raise
    delta.remove()
    return made


def _commit(home: TableHome, request: CommitRequest, delta: DeltaManifests) -> Snapshot | None:
    started = home.clock.monotonic()
    seen = request.searched
    attempt = 0
    while True:
        began = home.clock.monotonic()
        latest = latest_snapshot(home)
        done = already_done(home, request, latest, seen)
        if done is not None:
            if attempt:
                # An earlier attempt of ours had created it, although the store did not say so.
                _publish(home, done)
            if request.when_found is not None:
                request.when_found(done)
            run_commit_callbacks(home, latest_schema(home), done)
            return done
        seen = latest.id if latest is not None else 0
        schema = latest_schema(home)
        check_same_table(home, request.messages)
        made = None
        try:
            settings = ManifestSettings.of(TableOptions(schema.options))
            changes = compute_changes(home, request, latest, schema, settings)
            if changes.is_empty and request.ignore_empty and not _has_other_work(request, changes, schema):
                return None
            made = _attempt(home, request, latest, schema, changes, delta)
        except SnapshotExpiredError as error:
            # The base was expired while it was read: a race lost like others.
            _LOG.info("an attempt to commit is repeated: %s", error)
        if made is not None:
            remove_unused_changelogs(home, schema, request)
            _write_hint(home, made)
            _publish(home, made)
            run_commit_callbacks(home, schema, made)
            return made
        attempt += 1
        options = TableOptions(schema.options)
        if gives_up(options, attempt, home.clock.monotonic() - started):
            raise ConflictError(
                f"{home.where(home.paths.branch_root)}: gave up after {attempt} attempts, "
                "each time another writer committed first"
            )
        home.clock.sleep(wait_seconds(options, attempt, home.clock.monotonic() - began) * home.ids.jitter())


def gives_up(options: TableOptions, attempts: int, seconds: float) -> bool:
    """Whether the options' retry limit or timeout is exceeded after `attempts` lost attempts in `seconds`."""
    patience = (options.get(COMMIT_TIMEOUT) or _DEFAULT_PATIENCE).total_seconds()
    retries = options.get(COMMIT_MAX_RETRIES) if options.is_set(COMMIT_MAX_RETRIES) else None
    return (retries is not None and attempts > retries) or seconds > patience


def wait_seconds(options: TableOptions, attempt: int, attempt_seconds: float) -> float:
    """The longest wait after losing attempt number `attempt` (from 1), which took `attempt_seconds`.

    The first loss backs off by several times what an attempt takes, so that a crowd spreads; every further one waits
    less, within the bounds of the options. With waits that grow instead, whoever has lost often sleeps while newcomers
    commit, and never gets its turn.
    """
    least = options.get(COMMIT_MIN_RETRY_WAIT).total_seconds()
    most = options.get(COMMIT_MAX_RETRY_WAIT).total_seconds()
    return float(min(most, max(least, attempt_seconds * _FIRST_WAIT_ATTEMPTS / attempt)))


def already_done(home: TableHome, request: CommitRequest, latest: Snapshot | None, seen: int | None) -> Snapshot | None:
    """The snapshot that an earlier sending of this request made, looked for from `latest` back to `seen`.

    On the first attempt a named request looks back to its user's last commit; later attempts look only at what was
    committed since. Compaction is never looked for: run twice, it finds its files removed.
    """
    if latest is None or request.compacts or (seen is None and not request.named):
        return None
    last: Snapshot | None = None
    for snapshot in snapshots_backwards(home, latest.id):
        if seen is not None and snapshot.id <= seen:
            break
        if snapshot.commit_user != request.user:
            continue
        # The compaction that follows a write has its identifier.
        if snapshot.commit_identifier == request.identifier and snapshot.commit_kind not in _DATA_KINDS:
            continue
        if last is None and snapshot.commit_identifier < request.identifier:
            return None
        last = last or snapshot
        if snapshot.commit_identifier == request.identifier:
            return snapshot
        if snapshot.commit_identifier < request.identifier:
            break
    if last is None and seen is None:
        # Expiry recorded the last commit of users whose snapshots it deleted.
        recorded = last_identifier(home, request.user)
        if recorded is not None and request.identifier <= recorded:
            return latest
    return last


def _attempt(
    home: TableHome,
    request: CommitRequest,
    latest: Snapshot | None,
    schema: TableSchema,
    changes: Changes,
    delta: DeltaManifests,
) -> Snapshot | None:
    """One attempt on top of `latest`; None when another writer took the id."""
    options = TableOptions(schema.options)
    settings = ManifestSettings.of(options)
    files = ManifestFiles(home, settings, schema.partition_types, schema.id)
    try:
        delta_list, delta_size = delta.write(changes, schema, settings)
        changelog_list, changelog_size = delta.changelog or (None, None)
        policy = MergePolicy.of(options)
        if request.packs_manifests:
            base = pack_manifests(home, changes.previous, policy, files)
        else:
            base = merge_manifests(home, changes.previous, policy, files, settings.threads)
        base_list, base_size = files.write_list(base)
        index_manifest = carry_index_manifest(
            home, latest, changes.removed, files, messages=request.messages, replaced=changes.replaced
        )
        before = 0 if latest is None else latest.total_record_count or 0
        same_schema = latest is not None and latest.schema_id == schema.id
        snapshot = Snapshot(
            id=1 if latest is None else latest.id + 1,
            schema_id=schema.id,
            base_manifest_list=base_list,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_list,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=changelog_list,
            changelog_manifest_list_size=changelog_size,
            changelog_record_count=None if changelog_list is None else changes.changelog_rows,
            index_manifest=index_manifest,
            commit_user=request.user,
            commit_identifier=request.identifier,
            commit_kind=request.kind,
            time_ms=max(home.clock.now_ms(), 0 if latest is None else latest.time_ms),
            total_record_count=before + changes.record_delta,
            delta_record_count=changes.record_delta,
            watermark=_watermark(request, latest),
            statistics=request.statistics or (latest.statistics if latest is not None and same_schema else None),
            properties=dict(request.properties) or None,
            next_row_id=0 if latest is None else latest.next_row_id or 0,
        )
        path, data = home.paths.snapshot(snapshot.id), encode_snapshot(snapshot)
        _sync(home, request, schema, [*delta.written, *files.written], creating=(path, data))
    except LakeletError:
        files.remove()
        raise
    outcome = _create(home, snapshot, data, latest, files)
    if outcome is _Outcome.LOST:
        files.remove()
        return None
    delta.keep()
    return snapshot if outcome is _Outcome.MADE else None


def _sync(
    home: TableHome,
    request: CommitRequest,
    schema: TableSchema,
    manifests: Sequence[str],
    *,
    creating: tuple[str, bytes],
) -> None:
    """Makes every file durable that the snapshot will be the first to name."""
    statistics = [] if request.statistics is None else [home.paths.statistics(request.statistics)]
    home.store.sync([*manifests, *new_paths(home, schema, request.messages), *statistics], creating)


def _has_other_work(request: CommitRequest, changes: Changes, schema: TableSchema) -> bool:
    """Whether a commit without files is to be made nevertheless."""
    policy = MergePolicy.of(TableOptions(schema.options))
    return request.statistics is not None or (request.packs_manifests and needs_packing(changes.previous, policy))


def _watermark(request: CommitRequest, latest: Snapshot | None) -> int | None:
    known = [mark for mark in (request.watermark, latest.watermark if latest else None) if mark is not None]
    return max(known, default=None)


def _create(home: TableHome, snapshot: Snapshot, data: bytes, base: Snapshot | None, files: ManifestFiles) -> _Outcome:
    """Create the snapshot file, of these bytes, on top of `base`, and determine whether it is ours and committed.

    From the first call that the store may have carried out on, an error says nothing about the outcome, whatever its kind:
    credentials may expire between the creation and the check.
    """
    path = home.paths.snapshot(snapshot.id)
    lost, sent = _Outcome.LOST, False
    trouble: Exception | None = None
    for attempt in range(_UNKNOWN_TRIES):
        try:
            if not home.store.put_if_absent(path, data):
                found = try_snapshot(home, snapshot.id)
                if found is None or not _same(found, snapshot):
                    return lost
            sent = True
            verdict = is_committed(home, snapshot, base)
            if verdict is None:
                break
            if verdict:
                return _Outcome.MADE
            # It may be another's by now: of a writer that came after a rollback deleted ours.
            if (found := try_snapshot(home, snapshot.id)) is not None and _same(found, snapshot):
                home.store.delete([path])
            return lost if is_dropped(home) else _Outcome.WITHDRAWN
        except Exception as error:
            if not sent and not isinstance(error, UnavailableError) and _is_absent(home, snapshot):
                files.remove()
                raise
            lost, sent, trouble = _Outcome.WITHDRAWN, True, error
            _LOG.warning("the store did not answer while creating %s: %s", home.where(path), error)
            home.clock.sleep(0.05 * 2**attempt)
    raise CommitUnknownError(
        f"{home.where(path)}: the store did not say whether snapshot {snapshot.id} of user {snapshot.commit_user} was created "
        f"({trouble or 'it was expired meanwhile'}); its files were left in place, look for it before writing again"
    ) from trouble


def _is_absent(home: TableHome, snapshot: Snapshot) -> bool:
    """Whether a read shows that the store has not created our snapshot, although it answered with an error."""
    try:
        found = try_snapshot(home, snapshot.id)
    except LakeletError:
        return False
    return found is None or not _same(found, snapshot)


def _same(found: Snapshot, ours: Snapshot) -> bool:
    return found.committed_as() == ours.committed_as() and found.delta_manifest_list == ours.delta_manifest_list


def _publish(home: TableHome, made: Snapshot) -> None:
    publish(Committed(home.table_name, home.paths.branch, made.id, made.commit_kind.value, made))


def _write_hint(home: TableHome, snapshot: Snapshot) -> None:
    try:
        write_latest_hint(home, snapshot.id)
    except LakeletError as error:
        _LOG.warning("snapshot %d is committed, but its hint could not be written: %s", snapshot.id, error)
