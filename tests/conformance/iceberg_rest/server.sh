#!/usr/bin/env bash
# server.sh FOLDER: runs RestCatalogServer.java (it says what it does).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../run-java.sh" "$here" iceberg-rest -Xmx256m -Dsun.net.httpserver.nodelay=true \
  org.apache.iceberg.rest.RestCatalogServer "$@"
