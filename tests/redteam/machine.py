"""The machine below: what is executed, what jobs inherit, what they leave behind, disks and folders that fail."""

import os
import resource
import shutil
import subprocess
import time

from attack import attack
from world import World, become, expect, in_child, write


@attack("machine", "batch scripts where nothing may be executed (noexec, nosuid, nodev)")
def noexec(terms):
    with World(terms.place) as world:
        for interpreter, line, words in (("/bin/sh", "echo ran $1", "ran one"), ("/bin/bash -e", "echo ran ${1}", "ran one"),
                                         ("/usr/bin/env python3", "import sys; print('ran', sys.argv[1])", "ran one"),
                                         ("/usr/bin/perl -w", 'print "ran $ARGV[0]\\n";', "ran one")):
            script = f"{world.home}/ann/job.sh"
            write(script, f"#!{interpreter}\n#SBATCH --gpus=1\n{line}\n", 0o755)
            out = world.ran("ann", script, "one")
            expect(words in out, f"a script of {interpreter} writes {out[:100]!r}")
        script = f"{world.home}/ann/nowhere.sh"
        write(script, "#!/no/such/interpreter\ntrue\n", 0o755)
        job = world.submit("ann", script)
        world.until_state(job, "failed", "cancelled")
        _, out, _ = world.berth("ann", "show", str(job))
        told = out + (world.output(job) if os.path.exists(world.job(job)["output"]) else "")
        expect("/no/such/interpreter" in told, f"nobody says that the interpreter is missing: {told[-200:]}")


@attack("machine", "jobs do not inherit what protects the scheduler (out-of-memory score, file limit, priority)")
def inheritance(terms):
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)

    def protect():
        write("/proc/self/oom_score_adj", "300", None)
        resource.setrlimit(resource.RLIMIT_NOFILE, (700, usual[1]))
        os.nice(5)

    world = World(terms.place)
    world.before = protect
    with world:
        out = world.ran("ann", "--", "sh", "-c", "cat /proc/self/oom_score_adj; ulimit -Sn; nice")
        score, files, nice = out.split()
        expect(score == "0", f"a job's out-of-memory score is {score}")
        expect(files != "700", "a job may open as many files as the scheduler")
        expect(nice == "0", f"a job's priority is {nice}")


@attack("machine", "a job runs as its user, with his groups and nothing of root's")
def identity(terms):
    with World(terms.place) as world:
        out = world.ran("ann", "--", "sh", "-c", "id; grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs)' /proc/self/status; ls -l /proc/self/fd; umask")
        expect("uid=20001(ann) gid=20001(ann)" in out and "vision" in out and "root" not in out.split("CapPrm")[0], out[:200])
        for line in out.splitlines():
            if line.startswith(("CapEff", "CapPrm", "CapAmb")):
                expect(int(line.split()[1], 16) == 0, f"a job of ann has capabilities: {line}")
        held = [line for line in out.splitlines() if " -> " in line and ("berth.db" in line or "/state" in line)]
        expect(not held, f"a job holds files of the scheduler: {held}")


def survivors(*words):
    """Processes with exactly these arguments."""
    wanted = b"".join(word.encode() + b"\0" for word in words)
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read() == wanted:
                    found.append(int(pid))
        except OSError:
            pass  # it has gone meanwhile
    return found


@attack("machine", "a job kills its own shim and leaves a child of its own session")
def killed_shim(terms):
    for owner in ("root", "eve"):  # everybody's scheduler, and one user's own
        world = World(terms.place, cluster="1x1")
        if owner == "eve":
            place = f"{world.home}/eve/own{World.count}"
            in_child("eve", lambda: os.makedirs(place))
            world.config.update(state_dir=f"{place}/state", run_dir=f"{place}/jobs", socket=f"{place}/b.sock", admins=[], operators=[])
            world.socket = world.config["socket"]
            world.before = lambda: become("eve")
        with world:
            mark = f"31{World.count}.{os.getpid()}"
            job = world.submit("eve", "--time", "1h", "--", "sh", "-c", f"setsid sleep {mark} & sleep 0.3; kill -9 $PPID; exit 3")
            end = time.monotonic() + 3
            while time.monotonic() < end:  # it is started again, and does the same again
                expect(len(survivors("sleep", mark)) <= 1, f"{owner}'s scheduler: two children of job {job} run at once")
                time.sleep(0.05)
            world.berth("eve", "cancel", str(job))
            world.until_state(job, "cancelled", "failed", seconds=10)
            expect(world.until(lambda: not survivors("sleep", mark), 10), f"{owner}'s scheduler: a child of job {job} outlives it")
            world.ran("eve", "--time", "1h", "--", "true")


@attack("machine", "the folder of what runs is deleted and the scheduler killed")
def deleted_run_dir(terms):
    with World(terms.place) as world:
        job = world.submit("ann", "--no-requeue", "--", "sleep", "300")
        world.until_state(job, "running")
        time.sleep(2)
        world.kill()
        shutil.rmtree(f"{world.run}/jobs")
        world.start()
        world.until(lambda: world.state(job) not in ("running", "starting"), 10)
        view = world.job(job)
        expect("never began" not in view["reason"], f"job {job}, which ran 2 s, is told: {view['reason']}")
        expect(view["gpu_seconds"] > 1, f"job {job} ran 2 s and is charged {view['gpu_seconds']} s")


@attack("machine", "the disk of the journal is full, then has room again")
def full_disk(terms):
    world = World(terms.place)
    place = f"{world.folder}/state"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=0755", "none", place], check=True)
    with world:
        number = world.submit("ann", "--", "true")
        with open(f"{place}/filler", "wb") as file:
            try:
                while True:
                    file.write(b"x" * 65536)
                    file.flush()
            except OSError:
                pass
        code, _, err = world.berth("ann", "submit", "--", "true", timeout=90)
        expect(code != 0, "a job is taken on a full disk")
        expect("space" in err or "disk" in err, f"ann is told: {err.strip()[:150]}")
        expect(world.logged("space") or world.logged("disk"), "no line of the log tells of it")
        os.remove(f"{place}/filler")
        if world.process.poll() is not None:
            world.start()
        expect(world.until(lambda: world.berth("ann", "submit", "--", "true")[0] == 0, 15), "no job is taken after the disk has room")
        world.until_state(number, "completed")


@attack("machine", "the folder of what runs becomes read-only, then writable again")
def read_only_run(terms):
    world = World(terms.place)
    run = f"{world.run}/jobs"
    os.makedirs(run)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,nosuid,nodev,mode=0711", "none", run], check=True)
    with world:
        world.ran("ann", "--", "true")
        subprocess.run(["mount", "-o", "remount,ro", run], check=True)
        job = world.submit("ann", "--", "true")
        expect(world.until(lambda: world.logged("ead-only"), 20), "no line of the log tells of it")
        lines = open(world.log, encoding="utf-8").read().lower().count("read-only")
        expect(lines < 10, f"{lines} lines of the log tell of it")
        world.lives()
        subprocess.run(["mount", "-o", "remount,rw", run], check=True)
        expect(world.state(job) not in ("failed", "cancelled"), f"job {job} is {world.state(job)} because of the machine")
        world.until_state(job, "completed", seconds=60)


@attack("machine", "a job that ends well while it is being preempted is done, not run again")
def ends_while_preempted(terms):
    with World(terms.place, cluster="1x1", policy="priority", set={"preempt_classes": "all"}, max_user_priority=10, min_run="0s") as world:
        for _ in range(terms.many(3, 20)):
            mark = f"{world.home}/ann/runs{time.monotonic_ns()}"
            low = world.submit("ann", "--grace", "10s", "--", "sh", "-c",
                               f"trap 'sleep 0.2; exit 0' TERM; echo x >> {mark}; while :; do sleep 0.05; done")
            world.until_state(low, "running")
            world.until(lambda: os.path.exists(mark))
            high = world.submit("ann", "--priority", "5", "--", "true")
            world.until_state(high, "completed")
            world.until_state(low, "completed", seconds=5)
            runs = len(open(mark, encoding="utf-8").read().split())
            expect(runs == 1, f"job {low} ended well and was run {runs} times")
