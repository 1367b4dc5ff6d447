"""The messages of the protos, made from compiled descriptors when they are first used.

    message_class("olap.v1.WriteRequest")(table="users", id="user-1")

Descriptors are data, which every version of protobuf reads; generated code would need the version that it was made for.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, timestamp_pb2

OLAP = "olap.v1.OlapService"
LAKELET = "lakelet.v1.LakeletService"
PEER = "lakelet.peer.v1.PeerService"
_FILES = ("olap/v1/olap.desc", "lakelet/v1/lakelet.desc", "lakelet/peer/v1/peer.desc")
# Imported so that the pool has them: the protos use them.
IMPORTED = (struct_pb2, timestamp_pb2)


@cache
def _pool() -> Any:
    pool = descriptor_pool.Default()
    for name in _FILES:
        data = files(__package__).joinpath(name).read_bytes()
        for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
            pool.AddSerializedFile(file.SerializeToString())
    return pool


@cache
def message_class(name: str) -> Any:
    """The class of a message by its full name."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))


def service_methods(name: str) -> list[Any]:
    """The descriptors of a service's methods."""
    return list(_pool().FindServiceByName(name).methods)
