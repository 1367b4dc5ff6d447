"""All procedures, by name."""

from __future__ import annotations

from lakelet.sql.procedures.branching import BRANCHING
from lakelet.sql.procedures.bringing_in import BRINGING_IN
from lakelet.sql.procedures.compacting import COMPACTING
from lakelet.sql.procedures.expiring import EXPIRING
from lakelet.sql.procedures.iceberg_maintaining import ICEBERG
from lakelet.sql.procedures.maintaining import MAINTAINING
from lakelet.sql.procedures.procedure import Procedure
from lakelet.sql.procedures.rolling_back import ROLLING_BACK
from lakelet.sql.procedures.tagging import TAGGING

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
