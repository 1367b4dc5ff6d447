"""Metrics as Prometheus reads them: requests by edge, path and status, rows, buffers, flushes, and the metadata cache."""

from __future__ import annotations

from lakelet.errors import InvalidError
from lakelet.lsm.changelog_producer import FULL_COMPACTION, LOOKUP, changelog_producer
from lakelet.service.access.rate_limits import RateLimits
from lakelet.service.request_metrics import BOUNDS, RequestMetrics
from lakelet.service.service import Service
from lakelet.service.values import ABSENT
from lakelet.table.upkeep.changelog_lag import ChangelogLag


async def metrics_text(service: Service, requests: RequestMetrics, limits: RateLimits) -> str:
    """The text of /metrics."""
    page = _Page()
    page.head("lakelet_requests_total", "counter", "Requests that were answered.")
    for (transport, route, method, status), number in sorted(requests.requests.items()):
        page.sample(
            "lakelet_requests_total", number, transport=transport, route=route, method=method, status=str(status)
        )
    page.head("lakelet_request_seconds", "histogram", "Time from a request to its answer.")
    for (transport, route), buckets in sorted(requests.buckets.items()):
        _histogram(page, buckets, requests.seconds[transport, route], transport=transport, route=route)
    page.value("lakelet_requests_running", "gauge", "Requests that are being answered.", requests.running)
    page.value(
        "lakelet_rate_limited_requests_total", "counter", "Requests beyond the limits of their caller.", limits.refused
    )
    ingest = service.ingest
    page.value("lakelet_records_written_total", "counter", "Records that are durable.", ingest.records_written)
    page.value("lakelet_rest_values_total", "counter", "Values that went to payload_rest.", ingest.rest_values)
    page.value("lakelet_records_waiting", "gauge", "Records that wait for the log.", ingest.records_waiting)
    page.value("lakelet_flushes_total", "counter", "Commits of buffered records.", ingest.flushes)
    page.value("lakelet_failed_flushes_total", "counter", "Commits that failed.", ingest.failed_flushes)
    if service.backups is not None:
        worker = service.backups.worker
        page.value(
            "lakelet_backup_passes_total", "counter", "Tables that were copied to the backup store.", worker.passes
        )
        page.value("lakelet_failed_backup_passes_total", "counter", "Copies that failed.", worker.failed_passes)
        page.value("lakelet_backups_waiting", "gauge", "Tables that wait to be copied.", worker.waiting)
    maintained = service.maintenance.done
    page.value("lakelet_maintenance_rounds_total", "counter", "Looks at all tables.", service.maintenance.rounds)
    page.value("lakelet_compactions_total", "counter", "Compactions by the maintenance.", maintained.compactions)
    page.value("lakelet_expired_days_total", "counter", "Days that were dropped.", maintained.days)
    page.value("lakelet_expired_snapshots_total", "counter", "Snapshots that were expired.", maintained.snapshots)
    page.value("lakelet_failed_duties_total", "counter", "Duties of the maintenance that failed.", maintained.failures)
    if service.shared is not None:
        nodes = await service.in_thread(service.shared.nodes)
        absent = sum(node.status == ABSENT for node in nodes)
        page.value("lakelet_cluster_nodes", "gauge", "Live nodes as this one sees them.", len(nodes) - absent)
        page.value("lakelet_cluster_absent_nodes", "gauge", "Nodes that died and may have rows.", absent)
        _replicas(page, service)
        page.value("lakelet_cluster_epoch", "gauge", "The number of the ring.", service.shared.members.epoch)
    tables = service.tables.all()
    page.value("lakelet_tables", "gauge", "Tables that are served.", len(tables))
    page.head("lakelet_buffered_records", "gauge", "Records in memory and in the log that are not committed.")
    for opened in tables:
        if opened.writer is not None:
            page.sample("lakelet_buffered_records", opened.buffered_records, table=opened.name)
    await _changelog_lags(page, service)
    health = await service.health()
    page.value("lakelet_ready", "gauge", "Whether requests should be sent here.", int(health.is_ready))
    _cache(page, service)
    return page.text


def _replicas(page: _Page, service: Service) -> None:
    """Copies of logs that this node sends, and those that it holds for others."""
    assert service.shared is not None
    replicas = service.shared.replicas
    links = replicas.links()
    page.value("lakelet_wal_replicas", "gauge", "The setting wal_replicas.", service.settings.wal_replicas)
    linked = sum(link.holder is not None for link in links)
    page.value("lakelet_wal_copies", "gauge", "Tables whose logs are copied to another node.", linked)
    failing = sum(link.problem is not None for link in links)
    page.value(
        "lakelet_wal_copies_missing", "gauge", "Tables that take no rows, for nobody copies their logs.", failing
    )
    begun, sent = replicas.begun, replicas.bytes_sent
    page.value("lakelet_wal_copies_begun_total", "counter", "Copies of logs that were begun.", begun)
    page.value("lakelet_wal_copy_bytes_total", "counter", "Bytes of logs that were sent to other nodes.", sent)
    held = replicas.held
    page.value("lakelet_held_logs", "gauge", "Logs of other nodes that are being written here.", held.logs)
    page.value("lakelet_held_bytes_total", "counter", "Bytes of their logs that were written here.", held.bytes_written)
    adopted = replicas.adoption.adopted_rows
    page.value("lakelet_adopted_rows_total", "counter", "Rows of lost nodes that were committed from copies.", adopted)


async def _changelog_lags(page: _Page, service: Service) -> None:
    """Of the tables whose compaction makes the changelog: the rows that it has not told of, and the age of the oldest."""
    makes = (LOOKUP, FULL_COMPACTION)

    def lags() -> list[tuple[str, ChangelogLag]]:
        followed = [opened for opened in service.tables.all() if changelog_producer(opened.schema) in makes]
        found = [(opened.name, opened.table.changelog_lag()) for opened in followed]
        return [(name, lag) for name, lag in found if lag is not None]

    known = await service.in_thread(lags)
    if not known:
        return
    now = service.lake.now_ms()
    page.head("lakelet_changelog_waiting_rows", "gauge", "Committed rows that the changelog has not told of.")
    for name, lag in known:
        page.sample("lakelet_changelog_waiting_rows", lag.rows, table=name)
    page.head("lakelet_changelog_lag_seconds", "gauge", "Age of the oldest of them.")
    for name, lag in known:
        age = 0.0 if lag.oldest_ms is None else max(0.0, (now - lag.oldest_ms) / 1000)
        page.sample("lakelet_changelog_lag_seconds", age, table=name)


def _histogram(page: _Page, buckets: list[int], seconds: float, **labels: str) -> None:
    total = 0
    for bound, number in zip((*BOUNDS, None), buckets, strict=True):
        total += number
        name = "+Inf" if bound is None else f"{bound:g}"
        page.sample("lakelet_request_seconds_bucket", total, **labels, le=name)
    page.sample("lakelet_request_seconds_sum", seconds, **labels)
    page.sample("lakelet_request_seconds_count", total, **labels)


def _cache(page: _Page, service: Service) -> None:
    try:
        counters = service.lake.cache.get_all_metrics().counters()
    except InvalidError:
        # The lake was opened without a cache.
        return
    for name, number in counters.items():
        page.value(f"lakelet_metadata_{name}", "gauge", "A count of the metadata cache (docs/cache.md).", number)


class _Page:
    """Lines of the text format."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def head(self, name: str, kind: str, meaning: str) -> None:
        self._lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]

    def value(self, name: str, kind: str, meaning: str, number: float) -> None:
        self.head(name, kind, meaning)
        self.sample(name, number)

    def sample(self, name: str, number: float, **labels: str) -> None:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        self._lines.append(f"{name}{{{inner}}} {number}" if inner else f"{name} {number}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
