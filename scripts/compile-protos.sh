#!/usr/bin/env bash
# Compile the protos of the service into descriptors, from which the edge makes its messages when it starts.
# No generated code is kept: that would be bound to one version of protobuf.
set -euo pipefail
cd "$(dirname "$0")/.."
protos=src/lakelet/protos
python=${PYTHON:-.venv/bin/python}
for name in olap/v1/olap lakelet/v1/lakelet lakelet/peer/v1/peer; do
    "$python" -m grpc_tools.protoc -I "$protos" --descriptor_set_out="$protos/$name.desc" "$protos/$name.proto"
done
