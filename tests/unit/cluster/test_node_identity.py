import shutil
from pathlib import Path

import pytest

from lakelet.cluster.cluster_node import ClusterNode
from lakelet.cluster.node_identity import NodeFolder
from lakelet.errors import ConflictError, CorruptionError


def test_the_id_stays_and_tokens_are_handed_on(tmp_path: Path) -> None:
    folder = str(tmp_path / "wal")
    seen = []
    for _ in range(3):
        with NodeFolder(folder) as node:
            seen.append(node.identity)
    assert len({one.id for one in seen}) == 1
    assert len({one.token for one in seen}) == 3
    assert seen[2].predecessors == (seen[0].token, seen[1].token)
    assert ClusterNode(seen[0].id, "h:1").id == seen[0].id


def test_a_folder_has_one_node_at_a_time(tmp_path: Path) -> None:
    with NodeFolder(str(tmp_path)), pytest.raises(ConflictError, match="another node uses this folder"):
        NodeFolder(str(tmp_path))
    NodeFolder(str(tmp_path)).close()


def test_a_copy_of_a_folder_does_not_pass_for_the_original(tmp_path: Path) -> None:
    with NodeFolder(str(tmp_path / "one")) as node:
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        with NodeFolder(str(tmp_path / "two")) as copy:
            assert copy.identity.id == node.identity.id
            assert copy.identity.predecessors == ()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"id": "a", "tokens": 3, "folder": 1}'])
def test_a_damaged_identity_is_told_and_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "NODE").write_text(text)
    with pytest.raises(CorruptionError, match="identity of a node"):
        NodeFolder(str(tmp_path))
    assert (tmp_path / "NODE").read_text() == text


def test_tokens_are_bounded(tmp_path: Path) -> None:
    for _ in range(20):
        NodeFolder(str(tmp_path)).close()
    with NodeFolder(str(tmp_path)) as node:
        assert len(node.identity.predecessors) == 16
