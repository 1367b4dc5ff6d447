"""The messages of gRPC, which the service and its client share: protos, their descriptors, and classes made of them."""
