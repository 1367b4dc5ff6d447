"""Bring the Iceberg table that a table is published as back to its newest version, after a change that is no commit."""

from __future__ import annotations

from lakelet.commit.metadata.schemas import latest_schema
from lakelet.errors import LakeletError
from lakelet.options import publishes_iceberg
from lakelet.storage.home import TableHome


def republish(home: TableHome) -> None:
    """Publish the newest version of a published table. What goes wrong is logged: the next commit makes up for it."""
    try:
        schema = latest_schema(home)
    except LakeletError:
        return
    if publishes_iceberg(schema.options):
        from lakelet.callbacks.iceberg.publication import publish_quietly  # noqa: PLC0415 - for those tables only.

        publish_quietly(home)


def withdraw(home: TableHome) -> None:
    """Remove the Iceberg table of a published table that is about to be dropped or renamed. What goes wrong is logged."""
    try:
        schema = latest_schema(home)
    except LakeletError:
        # A damaged table can be dropped, too.
        return
    if publishes_iceberg(schema.options):
        from lakelet.callbacks.iceberg.publication import withdraw_quietly  # noqa: PLC0415 - for those tables only.

        withdraw_quietly(home, schema)
