"""Spark's Python for the tests' shared session: a module that Spark asks for runs in a fork of a process that has imported most.

This program is started with little of the library (`python -IS`), hands its arguments, variables and standard streams to the
server of `warm_python_server.py`, and ends as the fork ends. Whoever ends this program ends the fork. Everything but
`-m MODULE` runs as ever, and so does a module where nobody serves.
"""

import json
import os
import socket
import sys

ADDRESS = "LAKELET_WARM_PYTHON"


def main() -> None:
    """Runs a module of Spark in a fork, anything else here."""
    if sys.argv[1:2] == ["-m"] and ADDRESS in os.environ:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(os.environ[ADDRESS])
        except OSError:
            server.close()
        else:
            sys.exit(_forked(server))
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


def _forked(server: socket.socket) -> int:
    request = json.dumps({"arguments": sys.argv[2:], "variables": dict(os.environ), "folder": os.getcwd()}).encode()
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    status = server.recv(1)
    return status[0] if status else 1


if __name__ == "__main__":
    main()
