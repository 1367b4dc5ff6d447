"""All procedures, by name."""

from __future__ import annotations

from lakelet.sql.procedures.branches import BRANCHING
from lakelet.sql.procedures.compaction import COMPACTING
from lakelet.sql.procedures.iceberg_maintenance import ICEBERG
from lakelet.sql.procedures.maintenance import MAINTAINING
from lakelet.sql.procedures.migration import BRINGING_IN
from lakelet.sql.procedures.procedure import Procedure
from lakelet.sql.procedures.retention import EXPIRING
from lakelet.sql.procedures.rollback import ROLLING_BACK
from lakelet.sql.procedures.tags import TAGGING

# Groups as the documentation shows them.
GROUPS: tuple[tuple[str, tuple[Procedure, ...]], ...] = (
    ("Compaction", COMPACTING),
    ("Tags", TAGGING),
    ("Branches", BRANCHING),
    ("Rollback", ROLLING_BACK),
    ("Expiry and clean-up", EXPIRING),
    ("Repair, consumers, statistics", MAINTAINING),
    ("Bringing rows in", BRINGING_IN),
    ("Iceberg tables", ICEBERG),
)
PROCEDURES = {procedure.name: procedure for _, group in GROUPS for procedure in group}
