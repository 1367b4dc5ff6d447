"""Commands of clusters: `cluster nodes|decommission|forget|repair`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakelet.cli.call import Call, command

app = typer.Typer(help="Look at the nodes of a cluster, and keep its keys in Redis right.", no_args_is_help=True)

RedisOption = Annotated[
    str,
    typer.Option("--redis", metavar="URL", envvar="LAKELET_REDIS", help="The cluster's Redis, as `redis://host:6379`."),
]
PrefixOption = Annotated[
    str, typer.Option("--redis-prefix", envvar="LAKELET_REDIS_PREFIX", help="What the cluster's keys begin with.")
]


@app.command("nodes")
@command
def nodes(call: Call, redis: RedisOption, redis_prefix: PrefixOption = "") -> None:
    """List the registered nodes and what they last reported; with a warehouse, absent nodes that may have rows, too."""
    from lakelet.cli.cluster_command import list_nodes  # noqa: PLC0415 - loaded when it runs, as in all commands.

    list_nodes(call, redis, redis_prefix)


@app.command("decommission")
@command
def decommission(
    call: Call,
    node: Annotated[str, typer.Argument(help="The id of a node.")],
    redis: RedisOption,
    redis_prefix: PrefixOption = "",
    undo: Annotated[bool, typer.Option("--undo", help="Have the node own keys again.")] = False,
) -> None:
    """Have a node drain: it owns no keys any longer, and can be stopped. It stays so until `--undo`."""
    from lakelet.cli.cluster_command import decommission_node  # noqa: PLC0415

    decommission_node(call, node, redis, redis_prefix, undo=undo)


@app.command("forget")
@command
def forget(
    call: Call,
    node: Annotated[str, typer.Argument(help="The id of a node that will not return.")],
    redis: RedisOption,
    redis_prefix: PrefixOption = "",
) -> None:
    """Give up what an absent node may have in its logs: answers have no warning for it any longer. To keep its rows, recover them
    from its WAL folder instead."""
    from lakelet.cli.cluster_command import forget_node  # noqa: PLC0415

    forget_node(call, node, redis, redis_prefix)


@app.command("repair")
@command
def repair(
    call: Call,
    redis: RedisOption,
    redis_prefix: PrefixOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report differences.")] = False,
) -> None:
    """Compare the keys of tables in Redis with the tables of the warehouse, and rebuild what differs."""
    from lakelet.cli.cluster_command import repair_cluster  # noqa: PLC0415

    repair_cluster(call, redis, redis_prefix, dry_run=dry_run)
