"""Users against each other, and what each role may do."""

import json
import os
import stat

from attack import attack
from world import World, expect, in_child

CONTROL = ["\x1b[31m", "\x07", "\x7f", "\u0085", "\u009b31m", "\u202e", "\u2066", "\u2028", "\u200b", "\ufeff"]


def refused(world, user, *words):
    code, out, err = world.berth(user, *words)
    expect(code != 0, f"{user}: 'berth {' '.join(words)}' is done: {(out + err).strip()[:150]}")
    return err


@attack("people", "users touch each other's jobs")
def others_jobs(terms):
    with World(terms.place) as world:
        waiting = str(world.submit("ann", "--hold", "--env", "SECRET=hunter2", "--", "true"))
        running = str(world.submit("ann", "--env", "SECRET=hunter2", "--", "sh", "-c", "echo private; sleep 60"))
        world.until_state(int(running), "running")
        for job in (waiting, running):
            for verb in ("cancel", "hold", "release", "requeue", "suspend", "resume"):
                refused(world, "bob", verb, job)
            refused(world, "bob", "change", job, "name=mine")
            refused(world, "bob", "logs", job)
            status, _ = world.api("bob", "POST", f"/api/v1/jobs/{job}/signal", {"signal": 9})
            expect(status == 403, f"bob signals job {job}: {status}")
            for path in (f"/api/v1/jobs/{job}", f"/api/v1/jobs/{job}/why", f"/api/v1/jobs/{job}/attempts", "/api/v1/jobs"):
                _, text = world.api("bob", "GET", path)
                expect("hunter2" not in text and "echo private" not in text, f"bob reads ann's secret in {path}")
        _, text = world.api("bob", "POST", "/api/v1/jobs/actions", {"verb": "cancel", "user": "ann"})
        expect(world.state(int(running)) == "running", f"bob cancels all of ann's jobs: {text[:100]}")
        _, out, _ = world.berth("bob", "why", waiting)
        expect("you can change it" not in out, "why tells a stranger that he can change it")


@attack("people", "users read each other's files through the scheduler's folders")
def others_files(terms):
    with World(terms.place) as world:
        job = world.submit("ann", "--env", "SECRET=hunter2", "--", "sh", "-c", "echo hunter2; sleep 60")
        world.until_state(job, "running")
        world.until(lambda: "hunter2" in world.output(job))

        def search():
            found = []
            for top in (world.run, f"{world.folder}/state"):
                for folder, _, files in os.walk(top):
                    for name in files:
                        try:
                            with open(os.path.join(folder, name), "rb") as file:
                                if b"hunter2" in file.read():
                                    found.append(name)
                        except OSError:
                            pass
            return found
        found = in_child("bob", search)
        expect(not found, f"bob finds ann's secret in {found}")
        mode = stat.S_IMODE(os.stat(world.config["state_dir"]).st_mode)
        expect(mode == 0o700, f"the state directory is {mode:o}, not 700")


@attack("people", "output through links to files that only root or another user may write")
def output_links(terms):
    with World(terms.place) as world:
        target = f"{world.folder}/roots-file"
        with open(target, "w", encoding="utf-8") as file:
            file.write("precious")
        os.chmod(target, 0o600)
        secret = f"{world.home}/ann/secret"
        in_child("ann", lambda: open(secret, "w", encoding="utf-8").write("hunter2"))
        in_child("bob", lambda: os.symlink(target, f"{world.home}/bob/link") or os.symlink(secret, f"{world.home}/bob/peek"))
        for path in (f"{world.home}/bob/link", target, secret, "/etc/passwd"):
            job = world.submit("bob", "--output", path, "--", "echo", "overwritten")
            world.until_state(job, "failed", "completed", "cancelled")
        expect(open(target, encoding="utf-8").read() == "precious", "bob's output overwrites root's file")
        expect(open(secret, encoding="utf-8").read() == "hunter2", "bob's output overwrites ann's file")
        job = world.submit("bob", "--output", f"{world.home}/bob/peek", "--append", "--", "true")
        world.until_state(job, "failed", "completed")
        status, text = world.api("bob", "GET", f"/api/v1/jobs/{job}/output")
        expect("hunter2" not in text, f"bob reads ann's file as his job's output ({status})")


@attack("people", "jobs in somebody else's name: by users, operators, admins, for system accounts and root")
def other_names(terms):
    with World(terms.place) as world:
        for user in ("eve", "oli"):
            for name in ("ann", "root", "daemon-user"):
                refused(world, user, "submit", "--user", name, "--", "id")
                status, _ = world.api(user, "POST", "/api/v1/jobs", {"command": ["id"], "workdir": "/tmp", "user": name})
                expect(status == 403, f"{user} submits as {name}: {status}")
        for name in ("root", "daemon-user", "nobody"):
            refused(world, "ada", "submit", "--user", name, "--", "id")
        out = world.ran("ada", "--user", "ann", "--chdir", "/tmp", "--output", f"{world.home}/ann/out", "--", "id", "-un")
        expect(out.strip() == "ann", f"an admin's job for ann runs as {out.strip()}")
        waiting = str(world.submit("ann", "--hold", "--", "true"))
        for change in ("user=root", "user=bob", "user=oli"):
            for user in ("ann", "oli"):
                refused(world, user, "change", waiting, change)
        for key, value in (("command", ["id"]), ("script", "#!/bin/sh\nid\n"), ("env", {"LD_PRELOAD": "/tmp/x.so"}), ("workdir", "/")):
            status, _ = world.api("oli", "PATCH", f"/api/v1/jobs/{waiting}", {key: value})
            expect(status >= 400, f"an operator changes the {key} of ann's job: code of his runs as ann")


@attack("people", "tokens for others, for more than one's own role, and root's name by token")
def tokens(terms):
    with World(terms.place) as world:
        for user in ("eve", "oli"):
            refused(world, user, "token", "make", "t1", "--user", "ann")
            refused(world, user, "token", "make", "t2", "--role", "admin")
        code, out, err = world.berth("ada", "token", "make", "t3", "--role", "admin")
        expect(code == 0, f"an admin makes no token for himself: {err}")
        token = out.split()[-1]
        status, _ = world.api("eve", "POST", "/api/v1/jobs", {"command": ["id"], "workdir": "/tmp", "user": "root"},
                              {"Authorization": f"Bearer {token}"})
        expect(status >= 400, "a token submits a job of root")
        _, text = world.api("eve", "GET", "/api/v1/tokens")
        expect("t3" not in text, "eve sees the tokens of ada")


@attack("people", "invented groups, and limits with and without naming a group")
def groups(terms):
    with World(terms.place) as world:
        refused(world, "eve", "submit", "--group", "vision", "--", "true")
        refused(world, "eve", "submit", "--group", "invented", "--", "true")
        job = str(world.submit("eve", "--hold", "--", "true"))
        refused(world, "eve", "change", job, "group=vision")
        world.ran("ann", "--group", "vision", "--", "true")
        code, _, err = world.berth("root", "share", "set", "vision", "--group", "--gpu-limit", "1")
        expect(code == 0, err)
        one = world.submit("ann", "--group", "vision", "--gpus", "1", "--", "sleep", "60")
        world.until_state(one, "running")
        for words in (("--group", "vision"), ()):
            more = world.submit("ann", *words, "--gpus", "1", "--", "true")
            expect(not world.until(lambda: world.state(more) not in ("pending", "blocked"), 1.5),
                   f"a member escapes the limit of the group with {words or 'no group'}: {world.state(more)}")


@attack("people", "users do what is for operators and admins")
def above_ones_role(terms):
    with World(terms.place) as world:
        node = json.loads(world.api("root", "GET", "/api/v1/nodes")[1])
        name = (node.get("nodes") or node)[0]["name"]
        for user in ("eve", "oli"):
            refused(world, user, "policy", "set", "fifo")
            refused(world, user, "share", "set", user, "--shares", "100")
            refused(world, user, "share", "set", user, "--gpu-limit", "100")
        refused(world, "eve", "node", "drain", name, "--reason", "mine")
        refused(world, "eve", "submit", "--priority", "1000", "--", "true")
        mine = str(world.submit("eve", "--hold", "--", "true"))
        refused(world, "eve", "change", mine, "priority=1000")
        world.berth("oli", "hold", mine)
        refused(world, "eve", "release", mine)


@attack("people", "control characters of a job's name, comment and reason reach no terminal")
def control_characters(terms):
    with World(terms.place) as world:
        for text in CONTROL:
            world.api("eve", "POST", "/api/v1/jobs", {"command": ["true"], "workdir": "/tmp", "hold": True, "name": f"a{text}b",
                                                      "comment": f"c{text}d", "queue": "main"})
        world.api("oli", "POST", "/api/v1/jobs/1/hold", {"why": "".join(CONTROL)})
        listings = [("berth", ("queue",)), ("berth", ("queue", "--all")), ("squeue", ()), ("squeue", ("-l",)), ("squeue", ("-o", "%i %j %k %r")),
                    ("berth", ("history",)), ("berth", ("nodes",)), ("sinfo", ())]
        listings += [("berth", (word, str(job))) for word in ("show", "why", "cancel") for job in range(1, len(CONTROL) + 1)]
        for name, words in listings:
            _, out, err = world.berth("ann" if name != "berth" or words[0] != "cancel" else "eve", *words, name=name)
            for character in out + err:
                number = ord(character)
                bad = (number < 32 and character not in "\n\t") or 127 <= number < 160 or 0x200b <= number <= 0x200f or \
                    0x2028 <= number <= 0x202e or 0x2066 <= number <= 0x2069 or number == 0xfeff
                expect(not bad, f"'{name} {' '.join(words)}' prints U+{number:04X}")
        expect(not any(mark in open(world.log, encoding="utf-8", errors="replace").read() for mark in CONTROL),
               "control characters reach the scheduler's log")


@attack("people", "an unknown device type is answered in one's own words")
def own_words(terms):
    with World(terms.place) as world:
        _, _, first = world.berth("ann", "submit", "--gpu-type", "annsecret", "--gpus", "2", "--", "true")
        _, _, second = world.berth("bob", "submit", "--gpu-type", "bobsown", "--gpus", "2", "--", "true")
        expect("annsecret" in first, f"ann is told: {first[:150]}")
        expect("annsecret" not in second, f"bob is told of ann's request: {second[:150]}")
        expect("bobsown" in second, f"bob is told: {second[:150]}")
