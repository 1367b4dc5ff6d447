"""The options a connection to a warehouse is opened with. They never reach a schema file: some are secrets."""

from typing import Any

from lakelet.options.cache import CACHE_OPTIONS
from lakelet.options.kinds import BOOL, STRING
from lakelet.options.option import ACTED, Option, declare

S3_ENDPOINT = declare(
    "s3.endpoint", STRING, None, "URL of the S3 server; unset means Amazon's own for the region.", ACTED
)
S3_ACCESS_KEY = declare(
    "s3.access-key", STRING, None, "Access key id; unset means the environment's credentials are used.", ACTED
)
S3_SECRET_KEY = declare("s3.secret-key", STRING, None, "Secret that belongs to the access key.", ACTED)
S3_REGION = declare("s3.region", STRING, None, "Region of the bucket.", ACTED)
S3_SESSION_TOKEN = declare("s3.session-token", STRING, None, "Token that goes with temporary credentials.", ACTED)
S3_PATH_STYLE_ACCESS = declare(
    "s3.path-style-access",
    BOOL,
    None,
    "Whether the bucket is part of the URL's path rather than in its host name; unset means yes for an own endpoint.",
    ACTED,
)
S3_ALLOW_HTTP = declare(
    "s3.allow-http", BOOL, None, "Whether unencrypted HTTP may be used; unset means yes for an http:// endpoint.", ACTED
)

CALLBACKS_ALLOW = declare(
    "callbacks.allow",
    STRING,
    None,
    "Modules or packages, separated by commas, whose classes tables may name as commit and tag callbacks; Lakelet's own are "
    "allowed always. Other classes are never imported.",
    ACTED,
)

# The prefix of Iceberg catalogs' properties: catalog.<name>.<property of pyiceberg>.
CATALOG_PREFIX = "catalog."

CONNECTION_OPTIONS: tuple[Option[Any], ...] = (
    S3_ENDPOINT,
    S3_ACCESS_KEY,
    S3_SECRET_KEY,
    S3_REGION,
    S3_SESSION_TOKEN,
    S3_PATH_STYLE_ACCESS,
    S3_ALLOW_HTTP,
    CALLBACKS_ALLOW,
    *CACHE_OPTIONS,
)
