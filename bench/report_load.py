#!/usr/bin/env python3
"""What reports of a thousand training jobs cost a scheduler.

Starts a `berth serve` of its own in a temporary folder, with a thousand jobs (`sleep`) on a thousand declared devices, and
speaks for each of them over the training protocol once a second. Prints the scheduler's processor time and passes without
and with reports. Needs root, for half of the jobs are another user's: one user may have 512 connections.

    bench/report_load.py build/release/src/apps/berth [JOBS [SECONDS [POLICY]]]
"""
import hashlib
import hmac
import json
import os
import pwd
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

# Some account that is no account of the system.
OTHER = next((each for each in pwd.getpwall() if 1000 <= each.pw_uid < 60000), None)


def call(path, target, method="GET", body=None):
    """One request over the Unix socket."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    text = json.dumps(body).encode() if body is not None else b""
    connection.sendall(f"{method} {target} HTTP/1.1\r\nHost: berth\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
    answer = b""
    while piece := connection.recv(1 << 16):
        answer += piece
    return answer.split(b"\r\n\r\n", 1)[1].decode()


def processor_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def metric(path, name):
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", call(path, "/metrics"), re.M)
    return float(found.group(1)) if found else float("nan")


def speak(jobs, training, uid, seconds):
    """In a process of its own: says hello for each job, then reports once a second."""
    if uid:
        os.setgid(uid)
        os.setuid(uid)
    peers = []
    for number, token in jobs:
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(training)
        peer.sendall((json.dumps({"type": "hello", "v": 1, "job": number, "token": token}) + "\n").encode())
        peers.append(peer)
    began = time.monotonic()
    for second in range(int(seconds)):
        for index, peer in enumerate(peers):
            due = began + second + index / len(peers)
            time.sleep(max(0.0, due - time.monotonic()))
            line = {"type": "report", "iteration": 10 * (second + 1), "loss": 1.0 / (second + 1), "batch": 32}
            try:
                peer.sendall((json.dumps(line) + "\n").encode())
                while select.select([peer], [], [], 0)[0] and peer.recv(1 << 14):
                    pass
            except OSError:  # the scheduler has gone: this is over
                os._exit(0)
    os._exit(0)


def measure(title, pid, path, seconds):
    before = processor_seconds(pid), metric(path, "berth_passes_total"), time.monotonic()
    time.sleep(seconds)
    after = processor_seconds(pid), metric(path, "berth_passes_total"), time.monotonic()
    share = 100 * (after[0] - before[0]) / (after[2] - before[2])
    print(f"{title}: {share:.2f} % of a core, {after[1] - before[1]:.0f} passes in {after[2] - before[2]:.0f} s, "
          f"last pass {1e3 * metric(path, 'berth_pass_last_seconds'):.3f} ms", flush=True)


def main():
    if OTHER is None or os.getuid() != 0:
        sys.exit("needs root, and an account of somebody else")
    berth = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 30
    policy = sys.argv[4] if len(sys.argv) > 4 else "easy"
    folder = tempfile.mkdtemp(prefix="berth-report-load-")
    os.chmod(folder, 0o755)
    path, training = folder + "/berth.sock", folder + "/training.sock"
    config = folder + "/serve.yaml"
    with open(config, "w") as out:
        out.write(f"state_dir: {folder}/state\nrun_dir: {folder}/jobs\nsocket: {path}\ncluster: {-(-count // 50)}x50\n"
                  f"policy: {policy}\nlog_level: warn\nmax_requests_per_second: 0\n")
    served = subprocess.Popen([berth, "serve", "--config", config])
    children = []
    try:
        while not os.path.exists(path):
            time.sleep(0.05)
        indices = f"0-{count // 2 - 1}"
        users = ["root", OTHER.pw_name]
        for user in users:
            spec = {"command": ["sleep", "3600"], "user": user, "name": "load", "gpus": 1, "iterations": 100000,
                    "estimate": 10000, "array": indices, "output": "/dev/null", "workdir": "/", "model": ""}
            answer = call(path, "/api/v1/jobs", "POST", spec)
            if '"job"' not in answer:
                sys.exit(f"submit: {answer}")
        while True:
            running = json.loads(call(path, "/api/v1/jobs?state=running&limit=1"))["total"]
            if running >= count // 2 * 2:
                break
            time.sleep(0.5)
        key = open(folder + "/state/training.key", "rb").read()
        jobs = {user: [] for user in users}
        for number in range(1, count // 2 * 2 + 1):
            attempt = json.loads(call(path, f"/api/v1/jobs/{number}/attempts"))["attempts"][-1]["id"]
            token = hmac.new(key, f"training {number} {attempt}".encode(), hashlib.sha256).hexdigest()
            jobs[users[0] if number <= count // 2 else users[1]].append((number, token))
        time.sleep(3)
        measure("silent", served.pid, path, seconds)
        for user, uid in zip(users, (0, OTHER.pw_uid)):
            child = os.fork()
            if child == 0:
                speak(jobs[user], training, uid, 2 * seconds + 20)
            children.append(child)
        time.sleep(12)  # every job has its pace
        measure(f"{count} reports a second", served.pid, path, seconds)
        shown = json.loads(call(path, "/api/v1/jobs/1"))
        print("job 1:", json.dumps(shown.get("pace")), json.dumps(shown.get("training")))
    finally:
        if served.poll() is None:
            try:
                call(path, "/api/v1/jobs/actions", "POST", {"verb": "cancel", "name": "load"})
                while json.loads(call(path, "/api/v1/jobs?limit=1"))["total"] > 0:
                    time.sleep(0.2)
            except OSError:
                pass
            served.terminate()
            served.wait()
        for child in children:  # they leave when nobody listens any more
            os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
