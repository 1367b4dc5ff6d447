"""Markers of nodes in the warehouse."""

from pathlib import Path

from lakelet.cluster.node_identity import NodeFolder, stopped_node
from lakelet.cluster.node_markers import MarkedNode, NodeMarkers
from lakelet.storage.open import open_store

ONE = MarkedNode("node-1", "10.0.0.1:50051", 1_800_000_000_000)


def test_a_marker_is_there_until_it_is_removed() -> None:
    store = open_store("memory://markers", {})
    markers = NodeMarkers(store)
    assert markers.ids() == frozenset()
    markers.put(ONE)
    markers.put(ONE)
    assert markers.ids() == {"node-1"}
    assert markers.read("node-1") == ONE
    assert markers.read("node-2") == MarkedNode("node-2")
    store.put("service/nodes/node-3.json", b"{")
    assert markers.read("node-3") == MarkedNode("node-3")
    assert markers.ids() == {"node-1", "node-3"}
    markers.remove("node-1")
    markers.remove("node-1")
    assert markers.ids() == {"node-3"}


def test_the_node_of_a_folder_is_known_while_it_is_stopped(tmp_path: Path) -> None:
    with stopped_node(str(tmp_path / "none")) as node:
        assert node is None
    with NodeFolder(str(tmp_path)) as folder, stopped_node(str(tmp_path)) as node:
        assert node is None
    with stopped_node(str(tmp_path)) as node:
        assert node == folder.identity.id
