"""Connections: nobody is shut out, and nothing that is no request does harm."""

import os
import socket
import time

from attack import attack
from world import World, become, expect


def asks_in_time(world, user, seconds=2.0):
    began = time.monotonic()
    code, _, err = world.berth(user, "queue", timeout=30)
    took = time.monotonic() - began
    expect(code == 0, f"{user} is shut out: {err.strip()[:150]}")
    expect(took < seconds, f"{user}'s queue takes {took:.1f} s")


def holding(user, connect, count):
    """A process of this user that holds so many connections; it ends when it is told."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        become(user)
        held = []
        try:
            for i in range(count):
                held.append(connect(i))
        except OSError:
            pass
        os.write(writer, b"x")
        time.sleep(600)
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    return pid


def end(pids):
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@attack("network", "hundreds of half-sent requests from several addresses, and a thousand local connections")
def half_sent(terms):
    with World(terms.place) as world:
        port = world.port()

        def from_address(number):
            def connect(i):
                connection = socket.socket()
                connection.bind((f"127.0.0.{number}", 0))
                connection.connect(("127.0.0.1", port))
                connection.send([b"GET /api/v1/jobs HT", b"POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{", b""][i % 3])
                return connection
            return connect

        def local(i):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(world.socket)
            connection.send(b"GET /api/v1/jobs HTTP/1.1\r\nX: "[: 10 + i % 20])
            return connection

        pids = [holding("eve", from_address(number), 256) for number in range(2, 2 + terms.many(4, 12))]
        pids.append(holding("eve", local, terms.many(1000, 3000)))
        try:
            for _ in range(3):
                asks_in_time(world, "root")
                asks_in_time(world, "ann")
                asks_in_time(world, "ada")
            _, metrics = world.api("root", "GET", "/metrics")
            expect("refused" in metrics, "no metric counts connections that were refused")
            expect(world.logged("connection"), "no line of the log tells of them")
        finally:
            end(pids)
        asks_in_time(world, "eve")


@attack("network", "streams that nobody reads")
def slow_readers(terms):
    with World(terms.place) as world:
        job = world.submit("eve", "--", "sh", "-c", "yes | head -c 50000000; sleep 60")

        def stream(_):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(world.socket)
            connection.send(f"GET /api/v1/jobs/{job}/output?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            return connection

        pids = [holding("eve", stream, 300)]
        try:
            for _ in range(3):
                asks_in_time(world, "root")
                asks_in_time(world, "ann")
            world.ran("ann", "--", "true")
        finally:
            end(pids)


@attack("network", "what is no HTTP, or too much of it")
def no_requests(terms):
    with World(terms.place) as world:
        nonsense = [b"\x00" * 4096, b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10000 + b"\r\n",
                    b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
                    b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                    b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                    b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n" + b"[" * 200000,
                    b"GET /api/v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /api/v1/jobs/%00%ff/why HTTP/1.1\r\nHost: x\r\n\r\n",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/9.9\r\n\r\n"]
        for words in nonsense:
            for family, address in ((socket.AF_UNIX, world.socket), (socket.AF_INET, ("127.0.0.1", world.port()))):
                connection = socket.socket(family)
                connection.settimeout(5)
                connection.connect(address)
                try:
                    connection.sendall(words)
                    connection.shutdown(socket.SHUT_WR)
                    answer = connection.recv(4096)
                except (OSError, TimeoutError):
                    answer = b""
                expect(b"root:x:0:0" not in answer, "a file of the machine is served")
                expect(not answer.startswith(b"HTTP/1.1 2"), f"{words[:40]!r} is answered with {answer[:30]!r}")
                connection.close()
            world.lives()


@attack("network", "TCP without a token, with a wrong one, and with one that was revoked")
def tokens_needed(terms):
    with World(terms.place) as world:
        code, out, err = world.berth("ann", "token", "make", "laptop")
        expect(code == 0, err)
        token = out.split()[-1]
        url = f"http://127.0.0.1:{world.port()}"

        def queue(text):
            return world.berth("eve", "queue", "--server", url, env={"BERTH_TOKEN": text} if text else {})[0]
        expect(queue(token) == 0, "a good token is refused")
        for text in ("", "wrong", token[:-1], token + "x", token.upper()):
            expect(queue(text) != 0, f"the token '{text[:20]}' opens the door")
        world.berth("ann", "token", "revoke", "laptop")
        expect(queue(token) != 0, "a revoked token opens the door")


@attack("network", "serve --check and serve answer alike to what cannot be served")
def check_alike(terms):
    import json
    import subprocess
    from world import write
    world = World(terms.place)
    key = f"{world.folder}/key.pem"
    write(key, "no key", 0o600)
    wrong = [{"listen": "0.0.0.0:0"}, {"listen": "0.0.0.0:0", "tls": {"certificate": f"{world.folder}/none.pem", "key": key}},
             {"listen": "127.0.0.1:0", "tls": {"certificate": key, "key": f"{world.folder}/none.pem"}}, {"policy": "no-such-policy"},
             {"queues": []}, {"no_such_key": 1}, {"cluster": "0x0"}, {"socket": "/etc/passwd/berth.sock"}]
    for settings in wrong:
        write(f"{world.folder}/berth.yaml", json.dumps({**world.config, **settings}))
        words = [f"{world.bin}/berth", "serve", "--config", f"{world.folder}/berth.yaml"]
        checked = subprocess.run([*words, "--check"], capture_output=True, timeout=20).returncode
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            served = process.wait(3)
        except subprocess.TimeoutExpired:
            served = 0
        finally:
            process.kill()
            process.wait()
        expect((checked == 0) == (served == 0), f"{settings}: --check says {checked}, serve {served}")
        expect(checked != 0, f"{settings} is served")
