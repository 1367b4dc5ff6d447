"""Options by which a table carries its configuration as a table of the service (`lakelet serve`). Engines read past them."""

from typing import Any

from lakelet.options.kinds import BOOL, POSITIVE, STRING, integer, one_of
from lakelet.options.option import ACTED, Option, declare

SERVICE_STATUS = declare(
    "service.status",
    one_of("active", "archived", "deleting"),
    None,
    "Set while the service serves the table; `archived` refuses writes, `deleting` is finished by the next start.",
    ACTED,
)
SERVICE_NAME = declare("service.name", STRING, None, "Name by which the service knows the table.", ACTED)
SERVICE_ATTACHED = declare(
    "service.attached", BOOL, "false", "Whether the table was made elsewhere: its columns stay as they are.", ACTED
)
SERVICE_CREATED_AT = declare(
    "service.created-at", STRING, None, "When the service began to serve the table, in RFC 3339.", ACTED
)
SERVICE_BUFFER_SIZE = declare(
    "service.buffer-size", POSITIVE, "10000", "Buffered records from which the service commits them.", ACTED
)
SERVICE_FLUSH_INTERVAL = declare(
    "service.flush-interval-seconds",
    POSITIVE,
    "30",
    "Seconds after which the service commits buffered records.",
    ACTED,
)
SERVICE_RETENTION_DAYS = declare(
    "service.retention-days", integer(0), "0", "Days that records are kept; 0 is for ever.", ACTED
)
SERVICE_BACKUP_ENABLED = declare(
    "service.backup-enabled", BOOL, "false", "Whether the service copies the table to its backup store.", ACTED
)
SERVICE_EXACT_INTEGERS = declare(
    "service.exact-integers",
    STRING,
    None,
    "Payload fields, a JSON list, that were declared BIGINT or have held integers beyond 2^53, and so never become DOUBLE.",
    ACTED,
)

SERVICE_OPTIONS: tuple[Option[Any], ...] = (
    SERVICE_STATUS,
    SERVICE_NAME,
    SERVICE_ATTACHED,
    SERVICE_CREATED_AT,
    SERVICE_BUFFER_SIZE,
    SERVICE_FLUSH_INTERVAL,
    SERVICE_RETENTION_DAYS,
    SERVICE_BACKUP_ENABLED,
    SERVICE_EXACT_INTEGERS,
)
