"""One script of the corpus, and what became of it: states, steps, environment and the files it wrote, in a form that does not
depend on numbers, times and places."""
import fnmatch
import getpass
import pathlib
import re
import shutil
import socket
import time

HERE = pathlib.Path(__file__).parent
PATIENCE = 200  # seconds for a script of the corpus; most take three
DEVICES = re.compile(r"\b(devices|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|SLURM_JOB_GPUS|SLURM_STEP_GPUS)=([0-9]+(?:,[0-9]+)*)")
# Numbers of jobs (worlds.FIRST_NUMBER and on).
NUMBER = re.compile(r"(?<![0-9])1[234][0-9]{3}(?![0-9])")
# What srun says when the step before it is not quite gone yet.
PASSING = re.compile(r"srun: (Job [A-Z0-9]+ step creation temporarily disabled|Step created for StepId)")
# Of these the name counts, not the value.
VALUE_LEFT_OUT = {"SLURM_TASK_PID": "PID", "SLURM_JOB_START_TIME": "TIME", "SLURM_JOB_END_TIME": "TIME", "SLURM_CONF": "PATH",
                  "SLURM_TMPDIR": "PATH", "SLURM_JOB_UID": "UID", "SLURM_JOB_GID": "GID", "SLURM_JOB_ACCOUNT": "ACCOUNT"}


class Script:
    def __init__(self, path):
        self.path = path
        self.name = path.stem
        self.text = path.read_text()
        self.needs = self._word("Needs", "").split()
        self.left_out = self._word("Leave out", "").split()
        self.setup = self._word("Setup", "")
        self.submit = self._word("Submit", "sbatch SCRIPT")
        self.is_driver = self._has("Driver")
        self.is_unordered = self._has("Unordered")
        self.is_slow = self._has("Slow")

    def _word(self, name, default):
        found = re.search(rf"^# {name}: (.*)$", self.text, re.M)
        return found.group(1).strip() if found else default

    def _has(self, name):
        return re.search(rf"^# {name}$", self.text, re.M) is not None

    def model(self):
        return self._word("Modelled on", "")

    def exercises(self):
        return self._word("Exercises", "")

    def run(self, world, work):
        folder = work / self.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for program in (HERE / "programs").glob("*.py"):
            shutil.copy(program, folder)
        file = folder / self.path.name
        shutil.copy(self.path, file)
        if self.setup:
            world.run(["bash", "-c", self.setup.replace("SCRIPT", file.name)], cwd=folder, check=True)
        given = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
        command = ["bash", file.name] if self.is_driver else ["bash", "-c", self.submit.replace("SCRIPT", file.name)]
        submit = world.run(["timeout", str(PATIENCE)] + command, cwd=folder)
        is_over = world.wait_for(folder, PATIENCE)
        return Outcome(self, world, folder, given, submit, is_over)


class Outcome:
    """Facts, by kind: "submit", "state", "step", "env", "file NAME". Each is a list of lines."""

    def __init__(self, script, world, folder, given, submit, is_over):
        self.folder = folder
        found = re.search(r"^(?:Submitted batch job )?([0-9]+)$", submit.stdout, re.M)
        self.job = found.group(1) if found and not script.is_driver else None
        self.members = set()  # numbers of the jobs of an array
        self.devices = {}
        self.facts = {}
        states, steps = self._records(world) if self.job else ([], [])
        environment = self._environment(world)
        what = "driver" if script.is_driver else "submit"
        lines = [f"exit {submit.returncode}"] + (submit.stdout.splitlines() if script.is_driver else [])
        # What sbatch says to a refused job is in its own words; that it refuses, and with which code, counts.
        self.facts[what] = self._clean(lines + (submit.stderr.splitlines() if script.is_driver else []))
        if script.is_unordered:
            self.facts[what].sort()
        if not is_over:
            self.facts[what].append("still in the queue after a long time")
        self.facts["state"] = states
        self.facts["step"] = steps
        if "env" not in script.left_out:
            self.facts["env"] = environment
        self._files(script, given)

    def _records(self, world):
        for _ in range(100):  # the accounting is told a little later than the queue
            answer = world.run(["sacct", "-P", "-n", "-j", self.job, "-o", "JobID,JobIDRaw,JobName,State,ExitCode"], cwd="/")
            if answer.returncode != 0 or answer.stdout and not re.search(r"\|(PENDING|RUNNING|COMPLETING|REQUEUED)\|", answer.stdout):
                break
            time.sleep(0.2)
        states, steps = [], []
        for line in answer.stdout.splitlines():
            number, raw, name, state, code = (line.split("|") + [""] * 5)[:5]
            number, _, step = number.partition(".")
            raw = raw.partition(".")[0]
            member = number.partition("_")[2] or number.partition("+")[2]
            self.members.add(raw)
            state = state.split(" ")[0]
            where = f"{member}: " if member else ""
            if step == "":
                states.append(f"{where}{state} {code}")
            elif step != "extern":
                steps.append(f"{where}{step} {name if step != 'batch' else ''} {state} {code}".replace("  ", " "))
        if answer.returncode != 0 or not answer.stdout:
            states.append(f"sacct: {(answer.stderr.splitlines() or ['nothing'])[0]}")
        return sorted(states), sorted(steps)

    def _environment(self, world):
        path = world.environments / (self.job or "-")
        if not path.exists():
            members = [number for number in self.members if (world.environments / number).exists()]
            if not members:
                return []
            path = world.environments / min(members, key=int)
        lines = path.read_text(errors="replace").splitlines()
        for line in lines:
            if line.startswith("CUDA_VISIBLE_DEVICES="):
                for device in line.split("=")[1].split(","):
                    self.devices.setdefault(device, f"d{len(self.devices)}")
        for number, line in enumerate(lines):
            name = line.partition("=")[0]
            if name in VALUE_LEFT_OUT:
                lines[number] = f"{name}={VALUE_LEFT_OUT[name]}"
            elif name == "SLURM_ARRAY_TASK_ID":
                lines[number] = f"{name}=N"
        return sorted(self._clean(lines))

    def _files(self, script, given):
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder)
            if not path.is_file() or name in given or any(fnmatch.fnmatch(str(name), glob) for glob in script.left_out):
                continue
            lines = self._clean(path.read_text(errors="replace").splitlines()[:200])
            clean = self._clean([str(name)])[0]
            self.facts[f"file {clean}"] = sorted(lines) if script.is_unordered else lines

    def _clean(self, lines):
        """Numbers of jobs, times, hosts, users, folders and devices become words."""
        host = re.escape(socket.gethostname())
        cleaned = []
        for line in lines:
            line = line.replace(str(self.folder), "DIR").replace(str(self.folder.parent), "WORK")
            line = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\b", "TIME", line)
            line = NUMBER.sub(lambda found: "JOB" if found.group() == self.job else "OTHER", line)
            line = re.sub(rf"\b(slurmstepd-)?({host}|n1)\b", lambda found: "slurmstepd" if found.group(1) else "HOST", line)
            line = re.sub(rf"\b{re.escape(getpass.getuser())}\b", "USER", line)
            line = DEVICES.sub(lambda found: found.group(1) + "=" + ",".join(
                self.devices.get(device, "d" + device) for device in found.group(2).split(",")), line)
            if not PASSING.match(line):
                cleaned.append(line.rstrip())
        return cleaned
