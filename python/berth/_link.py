"""The connection to the scheduler: a thread that may come and go without the training noticing.

What is to be said is one merged report, so that nothing queues up while the scheduler is away.
The caller's side never blocks and never raises.
"""

import json
import math
import os
import random
import select
import socket
import threading
import time
import weakref

PROTOCOL = 1
SDK = "python/0.1.0"
MOST_LINE = 64 * 1024
REPORT_INTERVAL = 0.1  # seconds between two reports
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0  # between two attempts to connect


def finite(value):
    """A number for the wire, or None: losses may be tensors, and not a number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return number if math.isfinite(number) else None


class Link:
    def __init__(self, path, job, token, rank, on_message, resizes=False):
        self._path = path
        self._hello = {"type": "hello", "v": PROTOCOL, "job": job, "token": token, "rank": rank, "sdk": SDK}
        if resizes:
            self._hello["resizes"] = True
        self._on_message = on_message
        self._lock = threading.Lock()
        self._report = None  # merged, not sent yet
        self._others = []  # checkpoints: few
        self._phase = None  # as it was last said
        self._over = False
        self._socket = None
        self._owner = os.getpid()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread = threading.Thread(target=self._run, name="berth", daemon=True)
        self._thread.start()
        itself = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: itself() and itself()._leave_child())

    # --- the training's side

    def report(self, message):
        """Merged into what was not sent yet: times add up, everything else is the latest."""
        with self._lock:
            if self._over:
                return
            if self._report is not None:
                for key in ("seconds", "samples"):
                    if key in self._report:
                        message[key] = message.get(key, 0) + self._report[key]
                merged = self._report
                merged.update(message)
                message = merged
            self._report = message
        self._wake()

    def say(self, message):
        with self._lock:
            if self._over or len(self._others) >= 16:
                return
            self._others.append(message)
        self._wake()

    def say_phase(self, phase):
        """Said again to every scheduler that comes: it may have changed while nobody heard."""
        message = {"type": "phase", "phase": phase}
        with self._lock:
            self._phase = message
        self.say(message)

    def close(self, timeout=1.0):
        """Sends what is left if somebody listens; waits no longer than `timeout`."""
        with self._lock:
            if self._over:
                return
            self._others.append({"type": "bye"})
            self._over = True
        self._wake()
        if self._owner == os.getpid():
            self._thread.join(timeout)
            if not self._thread.is_alive():
                self._close_pipe()

    # --- the thread

    def _wake(self):
        try:
            os.write(self._wake_write, b".")
        except OSError:
            pass  # full: it will wake anyway

    def _close_pipe(self):
        fds, self._wake_read, self._wake_write = (self._wake_read, self._wake_write), -1, -1
        for fd in fds:
            if fd >= 0:
                os.close(fd)

    def _leave_child(self):
        """A worker process of the training must not hold our connection, let alone use it."""
        self._lock = threading.Lock()  # ours may have been held at the fork
        self._over = True
        self._report = None
        self._close_pipe()
        if self._socket is not None:
            try:
                os.close(self._socket.detach())
            except OSError:
                pass

    def _run(self):
        pause = FIRST_PAUSE
        while True:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                    connection.settimeout(2)
                    connection.connect(self._path)
                    self._socket = connection
                    began = time.monotonic()
                    try:
                        self._talk(connection)
                    finally:
                        self._socket = None
                    if time.monotonic() - began > LONGEST_PAUSE:
                        pause = FIRST_PAUSE
            except (OSError, ValueError):
                pass
            if self._over:
                return
            self._wait(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, LONGEST_PAUSE)
            if self._over and self._report is None and not self._others:
                return

    def _wait(self, seconds):
        """Sleeps, but not beyond the end."""
        until = time.monotonic() + seconds
        while not self._over:
            left = until - time.monotonic()
            if left <= 0:
                return
            select.select([self._wake_read], [], [], left)
            self._drain()
            if not self._over:
                # Reports wake us, too; they wait for the connection.
                time.sleep(min(max(until - time.monotonic(), 0), 0.1))

    def _drain(self):
        try:
            while os.read(self._wake_read, 4096):
                pass
        except OSError:
            pass

    def _talk(self, connection):
        self._send(connection, self._hello)
        with self._lock:
            phase = self._phase
            self._others = [message for message in self._others if message["type"] != "phase"]
        if phase is not None:
            self._send(connection, phase)
        heard = b""
        next_report = 0.0
        while True:
            over, others, report = self._take(time.monotonic() >= next_report)
            if report is not None:
                self._send(connection, report)
                next_report = time.monotonic() + REPORT_INTERVAL
            for message in others:
                self._send(connection, message)
            if over:
                return
            waits = self._report is not None
            left = max(0.0, next_report - time.monotonic()) if waits else None
            readable, _, _ = select.select([connection, self._wake_read], [], [], left)
            if self._wake_read in readable:
                self._drain()
            if connection in readable:
                got = connection.recv(16 * 1024)
                if not got:
                    return
                heard = self._hear(heard + got)

    def _take(self, may_report):
        with self._lock:
            over, others = self._over, self._others
            self._others = []
            report = None
            if may_report or over:
                report, self._report = self._report, None
            return over, others, report

    @staticmethod
    def _send(connection, message):
        connection.sendall(json.dumps(message, allow_nan=False).encode() + b"\n")

    def _hear(self, text):
        *lines, rest = text.split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self._on_message(message)
        if len(rest) > MOST_LINE:
            raise ValueError("a line without an end")
        return rest
