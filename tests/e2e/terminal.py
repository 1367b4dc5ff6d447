"""A command at a terminal: a process in a pseudo-terminal, keys in, a screen out."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>()][0-9A-Za-z]?|\r")
# Ctrl-C is a signal only from a terminal that is the process's own.
PROGRAM = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from lakelet.cli import main; raise SystemExit(main())"
CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"
# However busy the machine is: what has not come by then does not come.
WAIT_SECONDS = 300


class Terminal:
    """A command that is looked at and typed at. The screen shows what was written, without the movements of the cursor."""

    def __init__(self, state: Path, *arguments: str) -> None:
        self._master, inner = pty.openpty()
        environment = {
            **os.environ,
            "TERM": "xterm",
            "COLUMNS": "120",
            "LINES": "40",
            "XDG_STATE_HOME": str(state),
            # The answer to a question about the cursor would never come.
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=environment,
            start_new_session=True,
        )
        os.close(inner)
        self._seen = ""

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._master, keys.encode())

    def until(self, text: str, keys: str = "") -> str:
        """What the screen shows up to a text, which is then looked at no more; `keys` are pressed every second until it comes."""
        begun = pressed = time.monotonic()
        while text not in self._seen:
            now = time.monotonic()
            assert now < begun + WAIT_SECONDS, f"{text!r} did not come, but {self._seen[-1000:]!r}"
            if keys and now > pressed + 1:
                pressed = now
                self.type(keys)
            self._read(0.2)
        place = self._seen.index(text) + len(text)
        shown, self._seen = self._seen[:place], self._seen[place:]
        return shown

    @property
    def seen(self) -> str:
        """What the screen shows and was not looked at yet."""
        return self._seen

    def finish(self) -> int:
        """Waits for the end; the exit code."""
        ends = time.monotonic() + WAIT_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < ends
            self._read(0.1)
        return self.process.returncode

    def close(self) -> None:
        """Ends it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return
        try:
            self._seen += CONTROL.sub("", os.read(self._master, 65_536).decode(errors="replace"))
        except OSError:
            # The other side is closed.
            time.sleep(0.05)
