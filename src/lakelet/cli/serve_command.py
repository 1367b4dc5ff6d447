"""Implementations of `serve` and `keys`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakelet.cli.call import DEFAULT_WAREHOUSE, Call, pairs_of
from lakelet.errors import InvalidError

if TYPE_CHECKING:
    from lakelet.service.access.key_store import KeyStore

_KEY_COLUMNS = ("id", "name", "rights", "created", "revoked", "requests a second", "bytes a second")


def run_service(
    call: Call, given: Mapping[str, object], config: str | None, *, print_only: bool, backup_options: Sequence[str] = ()
) -> None:
    """Serve until a signal comes, or print the settings."""
    from lakelet.service.settings import load_settings, printed_settings  # noqa: PLC0415 - the command may only fail before.

    warehouse = None if call.warehouse == DEFAULT_WAREHOUSE else call.warehouse
    settings = load_settings({**given, "warehouse": warehouse}, file=config)
    if print_only:
        print(printed_settings(settings))
        return
    from lakelet.cli.deferred_pandas import defer_pandas  # noqa: PLC0415 - as above.

    defer_pandas()
    try:
        from lakelet.service.server import serve  # noqa: PLC0415 - an extra, which need not be there.
    except ImportError as error:
        raise InvalidError(f"lakelet serve needs further packages: pip install 'lakelet[server]' ({error})") from error
    serve(settings, call.options, _tell, pairs_of(list(backup_options), "--backup-option", "KEY=VALUE"))


def create_key(
    call: Call, name: str, rights: Sequence[str], keys_file: str | None, *, requests: int | None, size: int | None
) -> None:
    """Make a key and print it."""
    given = pairs_of(list(rights), "--right", "TABLE=RIGHT")
    made = _store(call, keys_file).create(name, given, requests_per_second=requests, bytes_per_second=size)
    call.output.values("API key, shown only now", {"key": made})


def list_keys(call: Call, keys_file: str | None) -> None:
    """Print the keys."""
    rows = [
        (
            one.id,
            one.name,
            ", ".join(f"{table}={right}" for table, right in one.rights.items()),
            one.created_at,
            one.revoked_at or "",
            one.requests_per_second,
            one.bytes_per_second,
        )
        for one in _store(call, keys_file).list()
    ]
    call.output.rows("API keys", _KEY_COLUMNS, rows)


def limit_key(call: Call, key: str, keys_file: str | None, *, requests: int | None, size: int | None) -> None:
    """Give a key limits of its own."""
    done = _store(call, keys_file).limit(key, requests_per_second=requests, bytes_per_second=size)
    shown = {"requests a second": done.requests_per_second, "bytes a second": done.bytes_per_second}
    call.output.values(
        f"limits of API key {done.id}",
        {name: "as the service has" if value is None else value for name, value in shown.items()},
    )


def revoke_key(call: Call, key: str, keys_file: str | None) -> None:
    """Revoke a key."""
    done = _store(call, keys_file).revoke(key)
    call.output.values("revoked API key", {"id": done.id, "name": done.name, "revoked": done.revoked_at or ""})


def _store(call: Call, keys_file: str | None) -> KeyStore:
    from lakelet.service.access.key_store import KeyStore, keys_path  # noqa: PLC0415 - as above.

    return KeyStore(keys_path(keys_file, call.lake.location))


def _tell(text: str) -> None:
    """What the one who started the service has to know, at once."""
    print(text, flush=True, file=sys.stdout)
