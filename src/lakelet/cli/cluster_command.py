"""Implementations of `cluster nodes|decommission|forget|repair`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lakelet.cli.call import DEFAULT_WAREHOUSE, Call
from lakelet.clock import shown_time
from lakelet.errors import InvalidError

if TYPE_CHECKING:
    from lakelet.cluster.node_markers import NodeMarkers
    from lakelet.cluster.redis.administration import RedisAdministration

_COLUMNS = ("id", "address", "role", "status", "version", "rest address", "heartbeat", "load")


def list_nodes(call: Call, url: str, prefix: str) -> None:
    """Print the nodes."""
    rows = []
    for one in _administration(url, prefix).nodes():
        report = one.report
        if report is None:
            rows.append((one.id, one.address, "", "silent", "", "", "", ""))
            continue
        status = f"{report.status}, asked to be {one.asked}" if one.asked else report.status
        load = ", ".join(f"{name} {number:g}" for name, number in sorted(report.load.items()))
        beat = shown_time(report.heartbeat_ms)
        rows.append((one.id, one.address, report.role, status, report.version, report.rest_address, beat, load))
    if call.warehouse != DEFAULT_WAREHOUSE:
        markers, known = _markers(call), {row[0] for row in rows}
        absent = [markers.read(id) for id in sorted(markers.ids() - known)]
        rows += [(one.id, one.address, "", "absent, with rows", "", "", "", "") for one in absent]
    call.output.rows("nodes", _COLUMNS, rows)


def decommission_node(call: Call, node: str, url: str, prefix: str, *, undo: bool) -> None:
    """Ask a node to drain, or to be active again."""
    _administration(url, prefix).ask(node, "active" if undo else "draining")
    call.output.values("asked", {"node": node, "status": "active" if undo else "draining"})


def forget_node(call: Call, node: str, url: str, prefix: str) -> None:
    """Give up what an absent node may have in its logs."""
    markers = _markers(call)
    _administration(url, prefix).forget(node, is_known=node in markers.ids())
    markers.remove(node)
    from lakelet.cluster.replica_records import ReplicaRecords  # noqa: PLC0415 - only commands that run need it.

    records = ReplicaRecords(markers.store)
    copies = [one for one in records.of_origin(node) if one.state == "copied"]
    if not copies:
        records.forget(node)
    for one in copies:
        call.output.values(
            "rows are left in a copy, which its holder commits", {"table": one.table, "holder": one.holder}
        )
    call.output.values("forgotten", {"node": node})


def _markers(call: Call) -> NodeMarkers:
    from lakelet.cluster.node_markers import NodeMarkers  # noqa: PLC0415 - only commands that run need it.

    return NodeMarkers(call.existing_lake.table_home("any.any").store)


def repair_cluster(call: Call, url: str, prefix: str, *, dry_run: bool) -> None:
    """Rebuild the keys of tables; the exit code is 1 where differences remain."""
    administration = _administration(url, prefix)
    from lakelet.cluster.table_record import served_name  # noqa: PLC0415 - only commands that run need it.

    lake = call.existing_lake
    opened = [lake.table(f"{database}.{name}") for database in lake.databases() for name in lake.tables(database)]
    tables = [(name, table) for table in opened if (name := served_name(table)) is not None]
    report = administration.repair(tables, dry_run=dry_run)
    found = {"tables": report.tables, "differences": len(report.differences), "skipped tables": len(report.skipped)}
    call.output.values("keys compared" if dry_run else "keys repaired", found)
    if report.differences:
        call.output.rows("differences", ("key", "problem"), [(one.key, one.problem) for one in report.differences])
    if report.skipped or (dry_run and report.differences):
        raise typer.Exit(1)


def _administration(url: str, prefix: str) -> RedisAdministration:
    try:
        from lakelet.cluster.cluster_keys import ClusterKeys  # noqa: PLC0415 - as above.
        from lakelet.cluster.redis.administration import RedisAdministration  # noqa: PLC0415 - an extra.
    except ImportError as error:
        needed = f"lakelet cluster needs further packages: pip install 'lakelet[server]' ({error})"
        raise InvalidError(needed) from error
    return RedisAdministration(url, ClusterKeys(prefix))
