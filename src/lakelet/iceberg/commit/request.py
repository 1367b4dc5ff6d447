"""Send one atomic request to the catalog, and remove old metadata files afterwards.

Metadata files that the table no longer lists are removed after the request where
`write.metadata.delete-after-commit.enabled` asks for it, as pyiceberg does; errors there do not fail the commit.
"""

from __future__ import annotations

import logging

from pyiceberg.table.update import TableRequirement, TableUpdate

from lakelet.iceberg.commit.change_events import publish_change, publish_unknown
from lakelet.iceberg.library_internals import delete_old_metadata
from lakelet.iceberg.table import IcebergTable

_LOG = logging.getLogger(__name__)


def send(table: IcebergTable, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]) -> None:
    """Sends updates that are applied only if the requirements hold; raises what the catalog raises."""
    catalog = table.library.catalog
    try:
        response = catalog.commit_table(table.library, requirements, updates)
    except Exception:
        # The sender finds out the outcome.
        raise
    except BaseException:
        publish_unknown(table, "commit")
        raise
    try:
        delete_old_metadata(catalog, table.library.io, table.metadata, response.metadata)
    except Exception as error:
        _LOG.warning("table %s: old metadata files are left: %s", table.full_name, error)
    publish_change(table, response.metadata, updates)
