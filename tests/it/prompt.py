"""Runs a program in a terminal of 24 lines and 100 columns, and talks to it.

argv: the steps as JSON, a list of [text to wait for, text to send], then the program and its arguments. Instead of
a text, SIGTERM is the signal to send.
stdout: what the program wrote; the last line is its exit code, negative for the signal that ended it. A text that does not come within a minute is an error.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

steps, program = json.loads(sys.argv[1]), sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    # What starts tests in the background takes Ctrl-C from them; here somebody sits at the terminal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(program[0], program)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))

written = b""
seen = 0


def read(seconds):
    """Appends what comes within the time; false at the end."""
    global written
    if not select.select([terminal], [], [], seconds)[0]:
        return True
    try:
        more = os.read(terminal, 65536)
    except OSError:  # what Linux says when the other side is closed
        return False
    written += more
    return bool(more)


for expected, answer in steps:
    end = time.monotonic() + 60
    while expected.encode() not in written[seen:]:
        if time.monotonic() > end or not read(1):
            sys.stderr.write(f"no {expected!r} in {written[seen:]!r}\n")
            os.kill(child, 9)
            sys.exit(1)
    seen += written[seen:].index(expected.encode()) + len(expected.encode())
    if answer == "SIGTERM":
        os.kill(child, signal.SIGTERM)
    else:
        os.write(terminal, answer.encode())
end = time.monotonic() + 60
while read(1):
    if time.monotonic() > end:
        sys.stderr.write(f"it does not end after {written[seen:]!r}\n")
        os.kill(child, 9)
        sys.exit(1)
_, status = os.waitpid(child, 0)
sys.stdout.buffer.write(written)
print(f"\n{os.waitstatus_to_exitcode(status)}")
