"""Where the corpus runs: a scheduler of Berth that is started for it, or a Slurm cluster that is already up."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

NAMES = ("sbatch", "squeue", "scancel", "sinfo", "srun", "salloc", "scontrol", "sacct", "sattach", "sprio", "sshare", "seff", "sstat")


FIRST_NUMBER = 12001  # of the jobs of a corpus


class World:
    """Commands with the right PATH and environment, and the folders of jobs that are not over yet."""

    def __init__(self, work):
        self.work = work
        self.environments = work / "environments"
        for left in ("environments", "state", "run"):  # of an earlier run in this folder
            shutil.rmtree(work / left, ignore_errors=True)
        self.environments.mkdir(exist_ok=True)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(work),
            "USER": os.environ.get("USER", "root"),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "USE_LIBUV": "0",  # Debian's PyTorch is built without it
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # a store that is left over from a failed start confuses the next one
            "CORPUS_ENVIRONMENT": str(self.environments),
            "BASH_ENV": str(pathlib.Path(__file__).with_name("environment.sh")),
        }
        # Debian's torchrun takes its own default for --redirects and --tee, 0, for no value: say something else.
        site = work / "site"
        site.mkdir(exist_ok=True)
        (site / "torchrun").write_text('#!/bin/sh\nexec python3 -m torch.distributed.run --redirects 9:1 --tee 9:1 "$@"\n')
        (site / "torchrun").chmod(0o755)
        self.environment["PATH"] = f"{site}:" + self.environment["PATH"]
        self._lock = threading.Lock()
        self._queued = (0.0, set())

    def run(self, command, cwd, **more):
        return subprocess.run(command, cwd=cwd, env=self.environment, stdin=subprocess.DEVNULL, text=True, capture_output=True,
                              errors="replace", **more)

    def folders_in_queue(self, since):
        """Working directories of jobs that waited or ran at a moment after since; several threads share an answer."""
        with self._lock:
            if self._queued[0] < since:
                asked = time.monotonic()
                answer = self.run(["squeue", "-h", "-o", "%i|%Z"], cwd="/")
                if answer.returncode != 0:
                    return {str(self.work)}  # not known: somebody may still be there
                lines = (line.split("|", 1) for line in answer.stdout.splitlines())
                self._queued = (asked, {line[1].strip() for line in lines if len(line) == 2})
            return self._queued[1]

    def wait_for(self, folder, seconds):
        """Until no job of this folder, or of one below it, is in the queue."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            waiting = self.folders_in_queue(time.monotonic())
            if not any(queued == str(folder) or queued.startswith(f"{folder}/") or str(folder).startswith(f"{queued}/")
                       for queued in waiting):
                return True
            time.sleep(0.3)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Slurm(World):
    def __init__(self, folder, work):
        super().__init__(work)
        folder = pathlib.Path(folder).resolve()
        self.environment["PATH"] = f"{folder}/bin:" + self.environment["PATH"]
        self.environment["SLURM_CONF"] = str(folder / "slurm.conf")


class Berth(World):
    """A private scheduler with one node like the one of the Slurm cluster: eight devices, 64 cores."""

    def __init__(self, program, work):
        super().__init__(work)
        self.program = pathlib.Path(program).resolve()
        names = work / "bin"
        names.mkdir(exist_ok=True)
        for name in NAMES + ("berth",):
            (names / name).unlink(missing_ok=True)
            (names / name).symlink_to(self.program)
        self.environment["PATH"] = f"{names}:" + self.environment["PATH"]
        self.environment["BERTH_SOCKET"] = str(work / "run" / "berth.sock")
        # A login shell sets PATH anew; a site has a file for that in /etc/profile.d.
        (work / ".bash_profile").write_text(f"PATH={names}:$PATH\n")

    def __enter__(self):
        (self.work / "cluster.yaml").write_text(
            "name: test\ngroups:\n  - {nodes: n1, gpus: 8, type: a100, cpus: 64, memory_gb: 250}\n")
        (self.work / "serve.yaml").write_text(
            f"cluster: {self.work}/cluster.yaml\npolicy: fifo-skip\nstate_dir: {self.work}/state\n"
            f"run_dir: {self.work}/run/jobs\nsocket: {self.work}/run/berth.sock\n")
        self.log = open(self.work / "serve.log", "w")
        self.server = subprocess.Popen([self.program, "serve", "--config", self.work / "serve.yaml"], stdout=self.log,
                                       stderr=self.log, env=self.environment, cwd="/")
        for _ in range(600):
            if self.server.poll() is not None or self.run(["squeue"], cwd="/").returncode == 0:
                break
            time.sleep(0.1)
        if self.server.poll() is not None:
            sys.exit("corpus: the scheduler did not start:\n" + (self.work / "serve.log").read_text())
        signal.signal(signal.SIGTERM, lambda *_: (self.stop(), os._exit(143)))
        try:
            self._use_up_small_numbers()
        except BaseException:
            self.stop()
            raise
        return self

    def _use_up_small_numbers(self):
        """Numbers of jobs are to be told from any other number in an output, so they begin at 12001, as on the Slurm cluster."""
        for size in (10000, FIRST_NUMBER - 10001):
            made = self.run(["sbatch", "--parsable", "--hold", f"--array=1-{size}", "--output=/dev/null", "--wrap=true"], cwd="/")
            if made.returncode != 0 or self.run(["scancel", made.stdout.strip()], cwd="/").returncode != 0:
                sys.exit("corpus: the first numbers cannot be used up: " + made.stderr)

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """What still runs (a script that never ends would be one) ends with the scheduler."""
        self.run(["scancel", "-u", self.run(["id", "-un"], cwd="/").stdout.strip()], cwd="/")
        deadline = time.monotonic() + 20
        while self.run(["squeue", "-h"], cwd="/").stdout.strip() and time.monotonic() < deadline:
            time.sleep(0.2)
        self.server.terminate()
        self.server.wait()
        self.log.close()
