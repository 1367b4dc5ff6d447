"""Options of the publication of a table as an Iceberg table, by the names of Java Paimon's `IcebergOptions`."""

from collections.abc import Mapping
from typing import Any

from lakelet.errors import InvalidError
from lakelet.options.kinds import BOOL, STRING, integer, one_of
from lakelet.options.option import ACTED, Option, declare

REST_CATALOG = "rest-catalog"
ICEBERG_STORAGE = declare(
    "metadata.iceberg.storage",
    one_of("disabled", "table-location", "hadoop-catalog", REST_CATALOG, "hive-catalog"),
    "disabled",
    "Where each commit publishes the table as an Iceberg table: in the table's folder, below `iceberg/` of the warehouse, or "
    "there and in an Iceberg REST catalog; hive-catalog is other engines'.",
    ACTED,
)
ICEBERG_STORAGE_LOCATION = declare(
    "metadata.iceberg.storage-location",
    one_of("table-location", "catalog-location"),
    None,
    "Where the Iceberg metadata lies, if not where metadata.iceberg.storage puts it.",
    ACTED,
)
ICEBERG_FORMAT_VERSION = declare(
    "metadata.iceberg.format-version",
    integer(2, 3),
    "2",
    "Version of the Iceberg format that is published. Deletion vectors need version 3, and deletion-vectors.bitmap64.",
    ACTED,
)
ICEBERG_PREVIOUS_VERSIONS_MAX = declare(
    "metadata.iceberg.previous-versions-max",
    integer(0),
    "0",
    "Older Iceberg metadata files that are kept after a commit.",
    ACTED,
)
ICEBERG_DELETE_AFTER_COMMIT = declare(
    "metadata.iceberg.delete-after-commit.enabled",
    BOOL,
    "true",
    "Whether older Iceberg metadata files are deleted after a commit.",
    ACTED,
)
ICEBERG_COMPACT_MIN_FILES = declare(
    "metadata.iceberg.compaction.min.file-num",
    integer(1),
    "10",
    "Small Iceberg manifests from which they are merged, once they have the size of one.",
    ACTED,
)
ICEBERG_COMPACT_MAX_FILES = declare(
    "metadata.iceberg.compaction.max.file-num",
    integer(1),
    "50",
    "Small Iceberg manifests from which they are merged whatever their size.",
    ACTED,
)
ICEBERG_MANIFEST_COMPRESSION = declare(
    "metadata.iceberg.manifest-compression",
    one_of("null", "deflate", "snappy", "zstandard", "zstd"),
    "snappy",
    "Compression of Iceberg manifests; not every reader knows zstd.",
    ACTED,
)
ICEBERG_MANIFEST_LEGACY = declare(
    "metadata.iceberg.manifest-legacy-version",
    BOOL,
    "false",
    "Whether Iceberg manifest lists name their counts as Iceberg 1.4 did, for readers that know no other names.",
    ACTED,
)
ICEBERG_DATABASE = declare(
    "metadata.iceberg.database", STRING, None, "Name of the database in the Iceberg catalog, if another.", ACTED
)
ICEBERG_TABLE = declare(
    "metadata.iceberg.table", STRING, None, "Name of the table in the Iceberg catalog, if another.", ACTED
)
ICEBERG_REST_SETTING = declare(
    "metadata.iceberg.rest.<setting>",
    STRING,
    None,
    "Which Iceberg REST catalog the table is published in: its `uri`, and its `warehouse` where it has several. Everything else "
    "about it is given to connect().",
    ACTED,
)

ICEBERG_OPTIONS: tuple[Option[Any], ...] = (
    ICEBERG_STORAGE,
    ICEBERG_STORAGE_LOCATION,
    ICEBERG_FORMAT_VERSION,
    ICEBERG_PREVIOUS_VERSIONS_MAX,
    ICEBERG_DELETE_AFTER_COMMIT,
    ICEBERG_COMPACT_MIN_FILES,
    ICEBERG_COMPACT_MAX_FILES,
    ICEBERG_MANIFEST_COMPRESSION,
    ICEBERG_MANIFEST_LEGACY,
    declare("metadata.iceberg.uri", STRING, None, "Address of the Hive metastore that Iceberg tables are made in."),
    declare("metadata.iceberg.hive-conf-dir", STRING, None, "Folder of Hive's settings for Iceberg."),
    declare("metadata.iceberg.hadoop-conf-dir", STRING, None, "Folder of Hadoop's settings for Iceberg."),
    declare(
        "metadata.iceberg.hive-client-class",
        STRING,
        "org.apache.hadoop.hive.metastore.HiveMetaStoreClient",
        "Client of the Hive metastore that other engines use for Iceberg.",
    ),
    ICEBERG_DATABASE,
    ICEBERG_TABLE,
    declare("metadata.iceberg.glue.skip-archive", BOOL, "false", "Whether AWS Glue archives no older versions."),
    declare("metadata.iceberg.hive-skip-update-stats", BOOL, "false", "Whether Hive's statistics stay as they are."),
    ICEBERG_REST_SETTING,
)


def publishes_iceberg(options: Mapping[str, str]) -> bool:
    """Whether Lakelet publishes a table with these options. A stored value that is none is another engine's matter."""
    return _value(ICEBERG_STORAGE, options) in ("table-location", "hadoop-catalog", REST_CATALOG)


def publishes_to_rest(options: Mapping[str, str]) -> bool:
    """Whether a table with these options is published in a REST catalog as well."""
    return _value(ICEBERG_STORAGE, options) == REST_CATALOG


def keeps_iceberg_metadata(options: Mapping[str, str]) -> bool:
    """Whether a table with these options is published, and the Iceberg metadata lies in its own folder."""
    if not publishes_iceberg(options):
        return False
    return (_value(ICEBERG_STORAGE_LOCATION, options) or _value(ICEBERG_STORAGE, options)) == "table-location"


def _value(option: Option[Any], options: Mapping[str, str]) -> object:
    text = options.get(option.name)
    if text is None:
        return option.default
    try:
        return option.parse(text)
    except InvalidError:
        return None
