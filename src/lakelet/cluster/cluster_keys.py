"""The keys of the cluster in Redis, every one of them.

    nodes:services                              HASH    node id → host:port of its gRPC
    nodes:alive:{id}                            STRING  what the node says of itself, JSON; expires after 60 s
    nodes:decommission                          HASH    node id → draining | active, as an administrator asked for
    tables:list                                 SET     names of served tables
    table:{T}:config                            HASH    the table's configuration
    table:{T}:stats                             HASH    records, files, bytes, indexed snapshot
    table:{T}:created_at   table:{T}:last_write STRING  RFC 3339
    index:table:{T}:id:{ID}:{DAY}               SET     paths of data files, of tables partitioned by id and day
    index:table:{T}:bucket:{B}:{DAY}            SET     paths of data files, of the others; day `-` without days
    index:table:{T}:keys                        SET     the keys of the two kinds above, so that a table is removed without a scan
    cluster:hash_ring                           ZSET    {node}#{number} → position (`hash_ring`)
    cluster:epoch                               STRING  the number of the ring
    lease:{name}   lease:{name}:fence           STRING  holder and fencing token; the last token given
    compaction:tasks                            LIST    compaction tasks that any node may run, base64
    usage:{caller}                              HASH    requests and bytes of a caller on all nodes; expires after a minute
    turn:{name}                                 STRING  who did some work last; expires when it is due again
    cluster:invalidations                       channel of the metadata cache

In an id `%` and `:` are percent-encoded (`%25`, `%3A`), so that a key splits at its colons; all other characters stay. A prefix
goes in front of every key, so that clusters can share a server. Redis Cluster is not supported: scripts touch several keys.
"""

from __future__ import annotations

from dataclasses import dataclass


def encoded_id(id: str) -> str:
    """An id as a part of a key."""
    return id.replace("%", "%25").replace(":", "%3A")


def decoded_id(text: str) -> str:
    """The id of a part of a key."""
    return text.replace("%3A", ":").replace("%25", "%")


@dataclass(frozen=True, slots=True)
class ClusterKeys:
    """The names of all keys, behind a prefix."""

    prefix: str = ""

    @property
    def services(self) -> str:
        """The addresses of all nodes."""
        return f"{self.prefix}nodes:services"

    def alive(self, node: str) -> str:
        """The liveness key of a node."""
        return f"{self.prefix}nodes:alive:{node}"

    @property
    def decommission(self) -> str:
        """The states that an administrator asked nodes to take."""
        return f"{self.prefix}nodes:decommission"

    @property
    def tables(self) -> str:
        """The names of all served tables."""
        return f"{self.prefix}tables:list"

    def table_config(self, table: str) -> str:
        """The configuration of a table."""
        return f"{self.prefix}table:{table}:config"

    def table_stats(self, table: str) -> str:
        """The statistics of a table."""
        return f"{self.prefix}table:{table}:stats"

    def created_at(self, table: str) -> str:
        """When a table was created."""
        return f"{self.prefix}table:{table}:created_at"

    def last_write(self, table: str) -> str:
        """When rows were last committed to a table."""
        return f"{self.prefix}table:{table}:last_write"

    def id_files(self, table: str, id: str, day: str) -> str:
        """The data files of an id and a day."""
        return f"{self.prefix}index:table:{table}:id:{encoded_id(id)}:{day}"

    def bucket_files(self, table: str, bucket: int, day: str) -> str:
        """The data files of a bucket and a day."""
        return f"{self.prefix}index:table:{table}:bucket:{bucket}:{day}"

    def index_keys(self, table: str) -> str:
        """All index keys of a table."""
        return f"{self.prefix}index:table:{table}:keys"

    @property
    def hash_ring(self) -> str:
        """The points of the ring."""
        return f"{self.prefix}cluster:hash_ring"

    @property
    def epoch(self) -> str:
        """The number of the ring."""
        return f"{self.prefix}cluster:epoch"

    def lease(self, name: str) -> str:
        """The holder of a lease."""
        return f"{self.prefix}lease:{name}"

    def fence(self, name: str) -> str:
        """The last fencing token of a lease."""
        return f"{self.prefix}lease:{name}:fence"

    def turn(self, name: str) -> str:
        """Who did some work last."""
        return f"{self.prefix}turn:{name}"

    @property
    def compaction_tasks(self) -> str:
        """Compaction tasks that any node may run."""
        return f"{self.prefix}compaction:tasks"

    def usage(self, caller: str) -> str:
        """What a caller has sent to all nodes."""
        return f"{self.prefix}usage:{caller}"

    @property
    def invalidations(self) -> str:
        """The channel of invalidations."""
        return f"{self.prefix}cluster:invalidations"
