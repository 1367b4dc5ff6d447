"""The gRPC edge of the service: `olap.v1` and `lakelet.v1` over the operation layer."""
