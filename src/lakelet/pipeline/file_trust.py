"""What a pipeline file in YAML may set: where data is and how it is read, and nothing that loads code.

A file may come from a stranger. Checking or drawing it must run nothing that it brings along, and a setting of Spark's or of a
catalog can name a jar, a class or a program. Both are lists of what is allowed, so that a setting that a later version adds is
refused until it has been reviewed; the command line (`--conf`, `-o`) and Python are the user's own, and may set everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from lakelet.errors import InvalidError
from lakelet.options import CALLBACKS_ALLOW, CATALOG_PREFIX
from lakelet.pipeline.place import Place

_SQL = (
    *("adaptive.", "ansi.", "autoBroadcastJoinThreshold", "broadcastTimeout", "caseSensitive", "cbo.", "codegen."),
    *("crossJoin.enabled", "csv.", "datetime.", "decimalOperations.", "execution.arrow.", "files.", "join.", "json."),
    *("inMemoryColumnarStorage.", "legacy.", "mapKeyDedupPolicy", "optimizer.", "orc.", "parquet.", "session.timeZone"),
    *("shuffle.", "sources.", "statistics.", "storeAssignmentPolicy", "streaming.", "timestampType"),
)
_S3A = (
    *(
        "endpoint",
        "endpoint.region",
        "path.style.access",
        "connection.ssl.enabled",
        "connection.maximum",
        "threads.max",
    ),
    *("access.key", "secret.key", "session.token", "multipart.size", "fast.upload.buffer"),
)
_SIZES = (
    *("spark.cores.max", "spark.default.parallelism", "spark.driver.cores", "spark.driver.maxResultSize"),
    *("spark.driver.memory", "spark.driver.memoryOverhead", "spark.executor.cores", "spark.executor.instances"),
    *("spark.executor.memory", "spark.executor.memoryOverhead", "spark.log.level", "spark.network.timeout"),
    *("spark.scheduler.mode", "spark.speculation", "spark.task.cpus", "spark.task.maxFailures", "spark.ui.enabled"),
)
# Parts of the names of settings that name classes or commands, also below names that are allowed.
_LOADS = (
    "class",
    "command",
    "extension",
    "factory",
    "impl",
    "jar",
    "listener",
    "manager",
    "plugin",
    "provider",
    "python",
)


def check_settings(settings: Mapping[str, str], places: Mapping[str, Place]) -> None:
    """InvalidError for a setting of the Spark session that a file may not set."""
    for name in settings:
        if not _is_allowed(name):
            raise places[name].invalid(
                f"spark setting {name!r} is none that a pipeline file may set, for such settings can load code: give it on the "
                f"command line (--conf {name}=…)"
            )


def _is_allowed(name: str) -> bool:
    if any(part in name.lower() for part in _LOADS):
        return False
    within = name.removeprefix("spark.sql.")
    if within != name:
        return any(within.startswith(one) if one.endswith(".") else within == one for one in _SQL)
    if name.startswith(("spark.dynamicAllocation.", "spark.memory.")) or name in _SIZES:
        return True
    return name.removeprefix("spark.hadoop.fs.s3a.") in _S3A and name.startswith("spark.hadoop.fs.s3a.")


def check_options(options: Mapping[str, str], places: Mapping[str, Place]) -> None:
    """InvalidError for an option of the connection, of a source or of a sink that would name a class to load."""
    for key, value in options.items():
        name = key.lower()
        if name == CALLBACKS_ALLOW.name:
            raise places[key].invalid(
                f"option {key!r} is taken from the command line alone (-o {key}=…), for it allows code"
            )
        if name.startswith(CATALOG_PREFIX):
            _check_catalog(key, value, places[key])


def _check_catalog(key: str, value: str, place: Place) -> None:
    if find_spec("pyiceberg") is None:
        raise place.invalid(f"option {key!r} is one of Iceberg catalogs: pip install 'lakelet[iceberg]'")
    from lakelet.iceberg.trust.properties import check_kept, is_secret  # noqa: PLC0415 - pyiceberg loads with it.

    rest = key.lower().removeprefix(CATALOG_PREFIX)
    # The name of the catalog comes first, or, in options of the source of that format, the property itself.
    for name in {rest, rest.partition(".")[2]} - {""}:
        try:
            if not is_secret(name) or "impl" in name:
                check_kept("", {name: value}, key)
        except InvalidError:
            continue
        return
    raise place.invalid(
        f"option {key!r} is none that a pipeline file may set, for it can load code: give it on the command line (-o {key}=…)"
    )
