"""Serves forks of itself, with what Spark's Python processes import already imported, to `warm_python.py`.

    python warm_python_server.py SOCKET MODULE...     SOCKET is the number of an open one that listens

A process of a stream costs two to four processor seconds before its first row, nearly all of them for imports; a fork costs none.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
import traceback

STREAMS = 3


def main(number: int, modules: list[str]) -> None:
    """Serves until the standard input ends."""
    listening = socket.socket(fileno=number)
    for module in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    waiting = select.poll()
    waiting.register(0, select.POLLIN | select.POLLHUP)
    waiting.register(listening, select.POLLIN)
    while 0 not in (ready := [number for number, _ in waiting.poll()]):
        for _ in ready:
            client, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                os._exit(_serve(client))
            client.close()


def _serve(client: socket.socket) -> int:
    """Becomes what the client was asked for, and tells it how that ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(client, 8, STREAMS)
    with client.makefile("rb") as reader:
        request = json.loads(reader.read(int.from_bytes(length, "big")))
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    _end_with(client)
    status = 1
    try:
        status = _run(request["arguments"], request["variables"], request["folder"])
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            client.sendall(bytes([status]))
    return status


def _end_with(client: socket.socket) -> None:
    """Lets this process get SIGTERM when the program that asked for it ends, which sends nothing more."""
    fcntl.fcntl(client, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(client, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(client, fcntl.F_SETFL, fcntl.fcntl(client, fcntl.F_GETFL) | os.O_ASYNC)
    ended = select.poll()
    ended.register(client, select.POLLIN)
    if ended.poll(0):
        os._exit(1)


def _run(arguments: list[str], variables: dict[str, str], folder: str) -> int:
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    os.chdir(folder)
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.path[0] = folder
    sys.path[1:1] = more
    module, *rest = arguments
    sys.argv = [module, *rest]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        return ended.code & 255 if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
