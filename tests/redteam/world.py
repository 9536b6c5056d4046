"""A scheduler of its own for one attack: root runs it, several users use it.

Everything happens in a private mount and process namespace (see scripts/redteam): users exist only there, what runs
lies on a file system that is mounted noexec, nosuid and nodev, as /run is on every Debian, and whatever is left over
dies with the namespace.
"""

import http.client
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time

USERS = {  # name: uid, groups beside one's own
    "ann": (20001, ["vision"]),
    "bob": (20002, ["speech"]),
    "eve": (20003, []),
    "oli": (20004, []),  # an operator
    "ada": (20005, []),  # an admin
    "daemon-user": (990, []),  # a system account
}
GROUPS = {"vision": 20101, "speech": 20102}


class Broken(Exception):
    """What an attack raises when the scheduler does not hold: the message says what was seen."""


def expect(condition, seen):
    if not condition:
        raise Broken(seen)


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    if mode is not None:
        os.chmod(path, mode)


def make_users(folder):
    """Users of this namespace alone, beside those of the machine."""
    passwd = open("/etc/passwd", encoding="utf-8").read()
    group = open("/etc/group", encoding="utf-8").read()
    for name, (uid, groups) in USERS.items():
        home = f"{folder}/home/{name}"
        os.makedirs(home)
        os.chown(home, uid, uid)
        os.chmod(home, 0o700)
        passwd += f"{name}:x:{uid}:{uid}:{name}:{home}:/bin/sh\n"
        group += f"{name}:x:{uid}:\n"
    for name, gid in GROUPS.items():
        members = ",".join(user for user, (_, groups) in USERS.items() if name in groups)
        group += f"{name}:x:{gid}:{members}\n"
    for name, text in (("passwd", passwd), ("group", group)):
        write(f"{folder}/{name}", text)
        subprocess.run(["mount", "--bind", f"{folder}/{name}", f"/etc/{name}"], check=True)


def become(user):
    if user == "root":
        return
    uid, groups = USERS[user]
    os.setgroups([GROUPS[group] for group in groups] + [uid])
    os.setgid(uid)
    os.setuid(uid)


def in_child(user, work):
    """What `work` answers when this user does it, in a process of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(user)
            answer = ("ok", work())
        except BaseException as error:  # the parent raises it again
            answer = ("error", f"{type(error).__name__}: {error}")
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    kind, value = pickle.loads(data)
    if kind == "error":
        raise RuntimeError(value)
    return value


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("berth", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class World:
    """One scheduler with its folders; `with World(place) as world` starts and ends it."""

    count = 0

    def __init__(self, place, policy="easy", cluster="1x4", **settings):
        World.count += 1
        self.folder = f"{place}/world{World.count}"
        self.bin = f"{place}/bin"
        self.home = f"{place}/home"
        os.makedirs(f"{self.folder}/state", mode=0o755)
        self.run = f"{place}/run/world{World.count}"  # on the file system without rights
        os.makedirs(self.run)
        self.socket = f"{self.run}/berth.sock"
        self.log = f"{self.folder}/log"
        self.config = {
            "state_dir": f"{self.folder}/state/berth",
            "run_dir": f"{self.run}/jobs",
            "socket": self.socket,
            "cluster": cluster,
            "policy": policy,
            "admins": ["ada"],
            "operators": ["oli"],
            "queues": [{"name": "main", "default_time_limit": "1h", "max_time_limit": "2h"}],
            "listen": "127.0.0.1:0",
            **settings,
        }
        self.process = None
        self.before = None  # called by the process that becomes the scheduler

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    # --- the scheduler

    def start(self, wait=True, **changes):
        self.config.update(changes)
        # YAML reads JSON.
        write(f"{self.folder}/berth.yaml", json.dumps({k: v for k, v in self.config.items() if v is not None}))
        self.process = subprocess.Popen(
            [f"{self.bin}/berth", "serve", "--config", f"{self.folder}/berth.yaml"],
            stdout=subprocess.DEVNULL, stderr=open(self.log, "ab"), start_new_session=True, preexec_fn=self.before)
        if wait:
            expect(self.until(lambda: self.process.poll() is not None or self.answers()), "serve does not answer")
            expect(self.process.poll() is None, f"serve ended by itself: {self.last_words()}")

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self, seconds=20):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"serve does not stop within {seconds} s")

    def restart(self, **changes):
        self.kill()
        self.start(**changes)

    def answers(self):
        try:
            return self.api("root", "GET", "/api/v1/cluster", timeout=2)[0] == 200
        except (OSError, RuntimeError, http.client.HTTPException):
            return False

    def lives(self):
        """It is the same process as before, and it answers."""
        expect(self.process.poll() is None, f"the scheduler has ended: {self.last_words()}")
        expect(self.until(self.answers, 10), "the scheduler does not answer")

    def last_words(self):
        lines = open(self.log, encoding="utf-8", errors="replace").read().strip().splitlines()
        return lines[-1][:200] if lines else "(no log)"

    def logged(self, text):
        return text in open(self.log, encoding="utf-8", errors="replace").read()

    def port(self):
        return int(re.findall(r"ready .*port=(\d+)", open(self.log, encoding="utf-8").read())[-1])

    @staticmethod
    def until(condition, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.05)
        return bool(condition())

    # --- people

    def berth(self, user, *words, name="berth", timeout=60, stdin=None, env=None):
        """What the program says to this user: exit code, standard output, standard error."""
        home = "/root" if user == "root" else f"{self.home}/{user}"
        ran = subprocess.run(
            [f"{self.bin}/{name}", *words], preexec_fn=lambda: become(user), cwd=home, timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, input=stdin,
            env={"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": home, "BERTH_SOCKET": self.socket, "LANG": "C.UTF-8",
                 **(env or {})})
        return ran.returncode, ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")

    def submit(self, user, *words, **options):
        """The number of the new job."""
        code, out, err = self.berth(user, "submit", "--parsable", *words, **options)
        expect(code == 0, f"{user}'s submit is refused: {err.strip()[:200]}")
        return int(out.split()[0])

    def api(self, user, method, path, body=None, headers=None, timeout=20):
        """Status and answer of one request over the socket, by this user."""
        def ask():
            connection = UnixConnection(self.socket, timeout)
            text = body if isinstance(body, (str, bytes, type(None))) else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        return ask() if user == "root" else in_child(user, ask)

    def job(self, number, user="root"):
        status, text = self.api(user, "GET", f"/api/v1/jobs/{number}")
        expect(status == 200, f"job {number}: {status} {text[:100]}")
        return json.loads(text)

    def state(self, number):
        return self.job(number)["state"]

    def until_state(self, number, *states, seconds=20):
        expect(self.until(lambda: self.state(number) in states, seconds),
               f"job {number} is {self.state(number)}, not {' or '.join(states)}: {self.job(number)['reason']}")

    def output(self, number):
        return open(self.job(number)["output"], encoding="utf-8", errors="replace").read()

    def ran(self, user, *words, seconds=20, **options):
        """Submits, waits for its end as completed, and answers what the job wrote."""
        number = self.submit(user, *words, **options)
        self.until_state(number, "completed", "failed", "cancelled", "rejected", seconds=seconds)
        job = self.job(number)
        expect(job["state"] == "completed", f"job {number} {job['state']}, exit {job['exit_code']}: {job['reason']}")
        return self.output(number)


def say(text):
    print(text, flush=True)
    sys.stdout.flush()
