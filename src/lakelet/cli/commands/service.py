"""Commands of the service: `serve`, and `keys create|list|limit|revoke`."""

from __future__ import annotations

from typing import Annotated

import typer

from lakelet.cli.call import Call, command

keys = typer.Typer(help="Make, list, limit and revoke API keys of the service.", no_args_is_help=True)

KeysFileOption = Annotated[
    str | None,
    typer.Option("--keys-file", metavar="FILE", help="The file of API keys; by default in the warehouse."),
]
MostBodyBytesOption = Annotated[
    int | None, typer.Option("--most-body-bytes", metavar="N", help="The largest body of a request.")
]
DrainSecondsOption = Annotated[
    int | None, typer.Option("--drain-seconds", metavar="N", help="How long requests may take after SIGTERM.")
]
WalReplicasOption = Annotated[
    int | None,
    typer.Option(
        "--wal-replicas", metavar="N", help="1: a row is acknowledged once it is on the disk of a second node, too."
    ),
]
RedisOption = Annotated[
    str | None,
    typer.Option("--redis", metavar="URL", help="Be a node of the cluster that this Redis holds together."),
]
BackupOption = Annotated[
    str | None,
    typer.Option("--backup", metavar="STORE", help="A second store, a folder or s3://, to which tables are copied."),
]
SparkOption = Annotated[
    str | None,
    typer.Option("--spark", metavar="MASTER", help="A Spark master or sc:// address, for queries too large for nodes."),
]
NodeAddressOption = Annotated[
    str | None,
    typer.Option("--node-address", metavar="HOST:PORT", help="By which other nodes reach this one's gRPC."),
]
PeerSecretFileOption = Annotated[
    str | None,
    typer.Option("--peer-secret-file", metavar="FILE", help="The secret by which nodes know one another."),
]
TlsCertificateOption = Annotated[
    str | None, typer.Option("--tls-certificate", metavar="FILE", help="The certificate (PEM); both servers use TLS.")
]
TlsKeyOption = Annotated[
    str | None, typer.Option("--tls-key", metavar="FILE", help="The key of the certificate (PEM, no password).")
]
TlsClientCaOption = Annotated[
    str | None,
    typer.Option("--tls-client-ca", metavar="FILE", help="CAs (PEM) that a client's certificate must be of."),
]
AuditFileOption = Annotated[
    str | None, typer.Option("--audit-file", metavar="FILE", help="The audit log; by default among the log's lines.")
]
RequestsOption = Annotated[
    int | None,
    typer.Option("--requests-per-second", metavar="N", min=0, help="Requests of the key in a second; 0 is no limit."),
]
BytesOption = Annotated[
    int | None,
    typer.Option("--bytes-per-second", metavar="N", min=0, help="Bytes of its requests in a second; 0 is no limit."),
]


@command
def serve(
    call: Call,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="A TOML file with settings (docs/service.md).")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="The address to listen at; 127.0.0.1 by default.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port of REST; 8080 by default, 0 a free one.")] = None,
    grpc_port: Annotated[
        int | None, typer.Option("--grpc-port", help="The port of gRPC; 50051 by default, 0 a free one.")
    ] = None,
    wal_folder: Annotated[
        str | None, typer.Option("--wal-folder", metavar="FOLDER", help="Where write-ahead logs are kept.")
    ] = None,
    wal_replicas: WalReplicasOption = None,
    redis: RedisOption = None,
    node_address: NodeAddressOption = None,
    peer_secret_file: PeerSecretFileOption = None,
    spark: SparkOption = None,
    backup: BackupOption = None,
    backup_option: Annotated[
        list[str] | None,
        typer.Option(
            "--backup-option", metavar="KEY=VALUE", help="A connection option of that store; may be repeated."
        ),
    ] = None,
    keys_file: KeysFileOption = None,
    require_keys: Annotated[
        bool | None,
        typer.Option(
            "--require-keys/--no-keys", help="Whether requests need an API key; off only on a loopback address."
        ),
    ] = None,
    tls_certificate: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
    tls_client_ca: TlsClientCaOption = None,
    audit_file: AuditFileOption = None,
    most_body_bytes: MostBodyBytesOption = None,
    drain_seconds: DrainSecondsOption = None,
    log_level: Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the settings that would hold, and end.")
    ] = False,
) -> None:
    """Serve tables over REST and gRPC: rows in, queries out."""
    from lakelet.cli.serve_command import run_service  # noqa: PLC0415 - loaded when it runs, as in all commands.

    given = {
        "host": host,
        "port": port,
        "grpc_port": grpc_port,
        "wal_folder": wal_folder,
        "wal_replicas": wal_replicas,
        "redis": redis,
        "node_address": node_address,
        "peer_secret_file": peer_secret_file,
        "spark": spark,
        "backup": backup,
        "keys_file": keys_file,
        "require_keys": require_keys,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "tls_client_ca": tls_client_ca,
        "audit_file": audit_file,
        "most_body_bytes": most_body_bytes,
        "drain_seconds": drain_seconds,
        "log_level": log_level,
    }
    run_service(call, given, config, print_only=print_config, backup_options=backup_option or [])


@keys.command("create")
@command
def create(
    call: Call,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    right: Annotated[
        list[str],
        typer.Option(
            "--right", metavar="TABLE=RIGHT", help="read, write or admin on a table, * for all; may be repeated."
        ),
    ],
    requests_per_second: RequestsOption = None,
    bytes_per_second: BytesOption = None,
    keys_file: KeysFileOption = None,
) -> None:
    """Make a key and show it, once."""
    from lakelet.cli.serve_command import create_key  # noqa: PLC0415

    create_key(call, name, right, keys_file, requests=requests_per_second, size=bytes_per_second)


@keys.command("limit")
@command
def limit(
    call: Call,
    key: Annotated[str, typer.Argument(metavar="ID", help="The id of the key, as the list shows it.")],
    requests_per_second: RequestsOption = None,
    bytes_per_second: BytesOption = None,
    keys_file: KeysFileOption = None,
) -> None:
    """Give a key limits of its own; those that are left out are the service's again."""
    from lakelet.cli.serve_command import limit_key  # noqa: PLC0415

    limit_key(call, key, keys_file, requests=requests_per_second, size=bytes_per_second)


@keys.command("list")
@command
def list_(call: Call, keys_file: KeysFileOption = None) -> None:
    """List the keys, without their secrets."""
    from lakelet.cli.serve_command import list_keys  # noqa: PLC0415

    list_keys(call, keys_file)


@keys.command("revoke")
@command
def revoke(
    call: Call,
    key: Annotated[str, typer.Argument(metavar="ID", help="The id of the key, as the list shows it.")],
    keys_file: KeysFileOption = None,
) -> None:
    """Revoke a key; a running service refuses it from then on."""
    from lakelet.cli.serve_command import revoke_key  # noqa: PLC0415

    revoke_key(call, key, keys_file)
