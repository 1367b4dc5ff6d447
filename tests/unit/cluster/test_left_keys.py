"""Keys that a node leaves behind are found by those that come, until nobody can need them."""

from pathlib import Path

from lakelet.cluster.left_keys import LeftKeys
from lakelet.format.wal.wal_group import WalKey
from lakelet.realtime.settings import wal_path
from lakelet.realtime.wal.key_file import KeyFile
from lakelet.storage.open import open_store
from tests.unit.moving_clock import MovingClock


def test_keys_are_left_and_taken_once_until_they_are_old(tmp_path: Path) -> None:
    clock, store = MovingClock(), open_store("memory://left-keys", {})
    folder = wal_path(str(tmp_path), "table")
    Path(folder).mkdir(parents=True)
    now = clock.now_ms()
    keys = [WalKey(number.to_bytes(16, "big"), now - number, b"note") for number in range(20_001)]
    file = KeyFile(folder)
    file.keep([*keys, WalKey(b"old", now - 24 * 60 * 60 * 1000, b"")], now)
    file.close()
    LeftKeys(store, clock).leave("node-1", str(tmp_path))
    taker = LeftKeys(store, clock)
    name = Path(folder).name
    parts = list(taker.parts(name))
    assert [len(part) for part in parts] == [20_000, 1]
    assert [key for part in parts for key in part] == keys
    assert list(taker.parts(name)) == list(taker.parts("another")) == []
    # One that did not come to the end takes the part again.
    other = LeftKeys(store, clock)
    next(other.parts(name))
    assert len(list(other.parts(name))) == 2
    clock.move(minutes=3 * 24 * 60)
    assert list(LeftKeys(store, clock).parts(name)) == []
    assert not store.list_folder("service/keys").files
