#!/usr/bin/env python3
"""`berth slurm capture` on a real Slurm, and the row "as recorded" against figures of our own.

  capture.py --berth PROGRAM [--suite trixie] [--long]

Starts a Slurm with accounting (../shared/slurm), runs jobs of every kind, captures it with the rights of a user who may
only look, has berth check the files, compares with two policies, and works the recorded figures out again from what
sacct says. --long (or BERTH_SLURM_LONG=1) waits for a job to run into its time limit, on all three versions of Slurm.
Exit 77: what it needs is not here.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
SLURM = ROOT.parent / "shared" / "slurm"
LOOKER = "games"  # a user whom every Debian has, and who has no rights in Slurm


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)


def check(holds, *what):
    if not holds:
        raise AssertionError(" ".join(str(word) for word in what))


class Cluster:
    """A Slurm of its own, gone at the end."""

    def __init__(self, suite, folder):
        self.folder = folder / "slurm"
        up = run(SLURM / "up", self.folder, "-n", 4, "-t", "v100:4,a100:8", "--suite", suite, "--dbd", "--backfill",
                 "--extra", "KillWait=1")
        if up.returncode != 0:
            self.down()
            skip(f"no Slurm of {suite} can be started here: {up.stderr.strip().splitlines()[-1:]}")
        self.commands = folder / "commands"  # Slurm's, run by a user who may only look
        self.commands.mkdir()
        for name in ("sacct", "squeue", "scontrol", "sinfo"):
            script = self.commands / name
            script.write_text(f'#!/bin/sh\nexec {self.folder}/bin/slurm-in -u {LOOKER} /usr/bin/{name} "$@"\n')
            script.chmod(0o755)

    def down(self):
        run(SLURM / "down", self.folder)

    def command(self, name, *words):
        done = run(self.folder / "bin" / name, *words, cwd=self.folder)
        check(done.returncode == 0, name, *words, done.stderr)
        return done.stdout

    def submit(self, *words):
        return self.command("sbatch", "--parsable", "-o", "/dev/null", *words).strip()

    def sacct(self):
        """Every run as a dictionary; times are Unix seconds, nothing that a user wrote is asked for."""
        fields = ("JobID", "State", "Submit", "Start", "End", "ElapsedRaw", "AllocTRES")
        text = run(self.folder / "bin" / "sacct", "-aXDPn", "-S", "now-1days", "-o", ",".join(fields),
                   cwd=self.folder, env={**os.environ, "SLURM_TIME_FORMAT": "%s"}).stdout
        return [dict(zip(fields, line.split("|"))) for line in text.splitlines()]

    def wait(self, until, seconds, what):
        end = time.monotonic() + seconds
        while not until(self.sacct()):
            check(time.monotonic() < end, "waited too long for", what, self.sacct())
            time.sleep(0.5)


def state_of(runs, job):
    return [run["State"].split()[0] for run in runs if run["JobID"] == job]


def run_jobs(slurm, is_long):
    """About 20 jobs of every kind; answers those that hold the end back."""
    hostile = "a|b\nJobID=99|root|x\n7|ann"
    limited = slurm.submit("--gres=gpu:1", "-t1", "--wrap", "sleep 300") if is_long else None
    again = slurm.submit("--gres=gpu:1", "-t5", "--requeue", "--wrap", "sleep 3")
    stopped = slurm.submit("--gres=gpu:1", "-t5", "--wrap", "sleep 300")
    for words in (("-J", hostile, "--gres=gpu:2", "-t5", "--wrap", "sleep 2"),
                  ("--gres=gpu:v100:4", "-t5", "--wrap", "sleep 2"),
                  ("--gres=gpu:v100:4", "-t5", "--wrap", "sleep 2"),
                  ("--gres=gpu:v100:3", "-t5", "--wrap", "sleep 2"),
                  ("-N2", "--ntasks-per-node=1", "--gres=gpu:a100:8", "-t5", "--wrap", "sleep 2"),
                  ("-N2", "--ntasks-per-node=1", "--gres=gpu:a100:6", "-t5", "--wrap", "sleep 1"),
                  ("-c4", "-t5", "--wrap", "sleep 2"),
                  ("-c16", "--mem=2000", "-t5", "--wrap", "sleep 1"),
                  ("--gres=gpu:1", "-t5", "--wrap", "sleep 1; exit 3"),
                  ("--gres=shard:2", "-t5", "--wrap", "sleep 1"),
                  ("-C", "v100", "--gres=gpu:1", "-t5", "--wrap", "sleep 1")):
        slurm.submit(*words)
    array = slurm.submit("--array=1-4%2", "--gres=gpu:2", "-t5", "--wrap", "sleep 1")
    slurm.wait(lambda runs: "RUNNING" in state_of(runs, again) and "RUNNING" in state_of(runs, stopped), 60,
               "jobs to run")
    time.sleep(2)
    slurm.command("scontrol", "requeue", again)
    slurm.command("scancel", stopped)
    slurm.submit("--hold", "--gres=gpu:2", "-t30", "--array=5-7", "--wrap", "sleep 1")  # waits at the capture

    def is_over(runs):
        return (all(run["State"].split()[0] not in ("PENDING", "RUNNING", "COMPLETING") for run in runs)
                and "COMPLETED" in state_of(runs, again) and "COMPLETED" in state_of(runs, f"{array}_4")
                and (not limited or "TIMEOUT" in state_of(runs, limited)))
    slurm.wait(is_over, 240, "jobs to end")
    return again, stopped, limited


def gpus_of(run_row):
    for part in run_row["AllocTRES"].split(","):
        if part.startswith("gres/gpu="):
            return int(part.split("=")[1])
    return 1 if "gres/shard=" in run_row["AllocTRES"] else 0


def recorded_by_hand(runs, cluster_gpus):
    """What the row must say: a job is all runs of its id, and its work their sum."""
    jobs = {}
    for one in runs:
        if one["Start"].isdigit() and one["End"].isdigit() and int(one["ElapsedRaw"]) > 0:
            jobs.setdefault(one["JobID"], []).append(one)
    jct, queue, work, submits, ends = [], [], 0, [], []
    for parts in jobs.values():
        submit = min(int(one["Submit"]) for one in parts)
        end = max(int(one["End"]) for one in parts)
        held = sum(int(one["End"]) - int(one["Start"]) for one in parts)
        jct.append(end - submit)
        queue.append(end - submit - held)
        work += sum(int(one["ElapsedRaw"]) * gpus_of(one) for one in parts)
        submits.append(submit)
        ends.append(end)
    makespan = max(ends) - min(submits)
    return {"jobs": len(jobs), "finished": len(jobs), "avg_jct": sum(jct) / len(jct), "max_jct": max(jct),
            "avg_queue_time": sum(queue) / len(queue), "max_queue_time": max(queue), "makespan": makespan,
            "gpu_utilization": work / (cluster_gpus * makespan), "preemptions": sum(len(p) - 1 for p in jobs.values())}


def test_capture(berth, slurm, folder, is_long):
    again, stopped, limited = run_jobs(slurm, is_long)
    out = folder / "lab"
    capture = (berth, "slurm", "capture", "-o", out, "--commands", slurm.commands, "--days", 2)
    done = run(*capture)
    print(done.stderr)
    check(done.returncode == 0, "capture:", done.stderr)
    check(sorted(path.name for path in out.iterdir()) == ["README.md", "cluster.yaml", "trace.csv", "waiting.csv"],
          sorted(out.iterdir()))
    check(not list(folder.glob("lab.tmp*")), "something half-written is left")
    yaml = (out / "cluster.yaml").read_text()
    for part in ('"n[1-2]"\n    gpus: 4\n    type: v100', '"n[3-4]"\n    gpus: 8\n    type: a100', "sockets: 2", "rack:"):
        check(part in yaml, part, "is not in", yaml)
    waiting = (out / "waiting.csv").read_text()
    check(waiting.count("\n") == 4 and ",1800" in waiting, "three tasks wait:", waiting)
    check(run(*capture).returncode == 2, "a folder that is there must be refused")
    check(run(*capture, "--force").returncode == 0, "--force")

    checked = run(berth, "check", out / "cluster.yaml", out / "trace.csv", out / "waiting.csv")
    check(checked.returncode == 0, checked.stdout, checked.stderr)
    compared = run(berth, "compare", "--trace", out / "trace.csv", "--cluster", out / "cluster.yaml", "--policies",
                   "fifo,easy", "--out", folder / "report", "--no-progress")
    print(compared.stdout, compared.stderr)
    check(compared.returncode == 0 and "as recorded" in compared.stdout, compared.stderr)
    rows = json.loads((folder / "report" / "summary.json").read_text())
    check([row["label"] for row in rows] == ["as recorded", "fifo", "easy"], [row["label"] for row in rows])
    check("as recorded" in (folder / "report" / "report.html").read_text(), "the page does not name it")
    row = rows[0]
    check(row["recorded"] is True and "recorded" not in rows[1], "only the first is marked as recorded")
    for name, value in recorded_by_hand(slurm.sacct(), 24).items():
        check(abs(row[name] - value) < 1e-6, name, "is", row[name], "and by sacct", value)
    check(all(one["jobs"] == row["jobs"] and one["rejected"] == 0 for one in rows), "every row is about the same jobs")
    jobs = (folder / "report" / "as_recorded" / "jobs.csv").read_text().splitlines()
    heads = jobs[0].split(",")
    by_id = {line.split(",")[0]: dict(zip(heads, line.split(","))) for line in jobs[1:]}
    check(by_id[again]["preemptions"] == "1" and by_id[stopped]["status"] == "cancelled", by_id[again], by_id[stopped])
    if limited:
        check(by_id[limited]["status"] == "cancelled" and float(by_id[limited]["run_time"]) >= 60, by_id[limited])

    anonymous = run(*capture[:4], folder / "nobody", *capture[5:], "--anonymous",
                    env={**os.environ, "XDG_CONFIG_HOME": str(folder / "config")})
    check(anonymous.returncode == 0, anonymous.stderr)
    for path in (folder / "nobody").iterdir():
        for word in ("root", "JobID=99", "main"):
            check(word not in path.read_text(), word, "is in", path)
    check(run(berth, "check", folder / "nobody" / "trace.csv").returncode == 0, "what is anonymous can be read")
    print(f"capture: {int(row['jobs'])} jobs; the recorded row is what sacct says")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--berth", required=True, type=pathlib.Path)
    parser.add_argument("--suite", default="trixie")
    parser.add_argument("--long", action="store_true", default=os.environ.get("BERTH_SLURM_LONG") == "1")
    args = parser.parse_args()
    if os.geteuid() != 0:
        skip("needs root to start a Slurm of another suite")
    if not (SLURM / "up").exists():
        skip(f"no Slurm for tests at {SLURM}")
    if not shutil.which("nsenter"):
        skip("nsenter is not installed")
    for suite in ("bookworm", "trixie", "forky") if args.long else (args.suite,):
        if not (pathlib.Path.home() / ".cache" / "berth-slurm-roots" / suite).exists() and not args.long:
            skip(f"no Slurm of {suite} has been made yet ({SLURM}/up --suite {suite} --install-only)")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="berth-capture-"))
        folder.chmod(0o755)
        slurm = Cluster(suite, folder)
        try:
            test_capture(args.berth.resolve(), slurm, folder, args.long)
        finally:
            slurm.down()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
