"""A long-lived process that answers JSON lines: how the tests talk to other implementations.

One request is one line. The answer is any number of lines and then `{"_done": true, "rc": 0}`, or
`{"_done": true, "rc": 1, "error": …, "cause": …}` when the request failed; the process goes on in either case.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

STDERR_SHOWN_BYTES = 4000
CLOSE_TIMEOUT_S = 20


class HarnessError(Exception):
    """The other implementation refused a request, or its process died."""


class LineProcess:
    def __init__(self, name: str, command: Sequence[str]) -> None:
        self._name = name
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            encoding="utf-8",
        )

    def ask(self, request: Mapping[str, Any]) -> list[Any]:
        """Sends one request and returns the decoded lines of its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._raise_dead()
        answer: list[Any] = []
        for line in self._process.stdout:
            value = json.loads(line)
            if isinstance(value, dict) and value.get("_done"):
                if value["rc"] != 0:
                    raise HarnessError(f"{self._name}: {value.get('error')} (cause: {value.get('cause')})")
                return answer
            answer.append(value)
        self._raise_dead()
        return answer

    def close(self) -> None:
        """Ends the process by closing its input, as it expects."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def _raise_dead(self) -> None:
        status = self._process.wait()
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, size - STDERR_SHOWN_BYTES))
        said = self._stderr.read().decode(errors="replace")
        raise HarnessError(f"{self._name} died with status {status}; its last words:\n{said}")
