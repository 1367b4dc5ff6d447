"""Interrupt a running statement on Ctrl-C.

Python handles a signal only between bytecode instructions, and DuckDB may run for minutes between two of them. So a thread
waits for the signal and stops the query; the main thread then returns and raises KeyboardInterrupt as usual.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stopped_by_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` from another thread when Ctrl-C is pressed within the block, which then raises KeyboardInterrupt, whatever
    error the interrupted work raises."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    listening, told = socket.socketpair()
    told.setblocking(False)
    heard = threading.Event()

    def listen() -> None:
        while signals := listening.recv(64):
            if signal.SIGINT in signals:
                heard.set()
                stop()

    previous = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    listener = threading.Thread(target=listen, name="lakelet-interrupts", daemon=True)
    listener.start()
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    finally:
        signal.set_wakeup_fd(previous)
        told.close()
        listener.join()
        listening.close()
    if failure is not None:
        if heard.is_set():
            raise KeyboardInterrupt from failure
        raise failure
