import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelet.cluster.cluster_keys import ClusterKeys, decoded_id, encoded_id

KEYS = ClusterKeys()


def test_names_are_those_of_the_design() -> None:
    assert [KEYS.services, KEYS.alive("n1"), KEYS.tables] == ["nodes:services", "nodes:alive:n1", "tables:list"]
    assert [KEYS.table_config("t"), KEYS.table_stats("t")] == ["table:t:config", "table:t:stats"]
    assert [KEYS.created_at("t"), KEYS.last_write("t")] == ["table:t:created_at", "table:t:last_write"]
    assert KEYS.id_files("users", "user-123", "2024-01-15") == "index:table:users:id:user-123:2024-01-15"
    assert KEYS.bucket_files("users", 3, "2024-01-15") == "index:table:users:bucket:3:2024-01-15"
    assert [KEYS.hash_ring, KEYS.epoch, KEYS.lease("x")] == ["cluster:hash_ring", "cluster:epoch", "lease:x"]


@pytest.mark.parametrize(
    ("id", "encoded"), [("a:b", "a%3Ab"), ("%3A", "%253A"), ("a/b *?[x]\n", "a/b *?[x]\n"), ("ü", "ü"), ("..", "..")]
)
def test_colons_and_percent_signs_of_ids_are_encoded(id: str, encoded: str) -> None:
    assert KEYS.id_files("t", id, "2024-01-15") == f"index:table:t:id:{encoded}:2024-01-15"


@given(st.text(alphabet="%:3A25ab"))
def test_an_id_comes_back(id: str) -> None:
    assert ":" not in encoded_id(id)
    assert decoded_id(encoded_id(id)) == id


def test_a_prefix_is_in_front_of_every_key() -> None:
    prefixed = ClusterKeys("eu:")
    assert prefixed.services == "eu:nodes:services"
    assert prefixed.id_files("t", "a", "d") == "eu:index:table:t:id:a:d"
    assert prefixed.fence("x") == "eu:lease:x:fence"
