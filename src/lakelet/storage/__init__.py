"""Object stores: one protocol, three backends (local, S3, memory), and decorators around them."""

from lakelet.storage.disk.local_store import LocalStore
from lakelet.storage.memory import MemoryStore
from lakelet.storage.open import open_store
from lakelet.storage.store import Listing, ObjectInfo, ObjectStore, OutputFile

__all__ = ["Listing", "LocalStore", "MemoryStore", "ObjectInfo", "ObjectStore", "OutputFile", "open_store"]
