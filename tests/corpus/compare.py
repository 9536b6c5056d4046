"""What Slurm did (tests/corpus/slurm), what Berth does, and what explains the difference (tests/corpus/differences.txt)."""
import difflib
import fnmatch
import pathlib

HERE = pathlib.Path(__file__).parent
KEPT = HERE / "slurm"


def record(outcomes):
    KEPT.mkdir(exist_ok=True)
    for name, outcome in outcomes.items():
        if outcome is None:
            continue
        with open(KEPT / f"{name}.txt", "w") as file:
            for kind, lines in outcome.facts.items():
                file.write(f"== {kind}\n")
                file.writelines(f"{line}\n" for line in lines)


def kept(name):
    facts = {}
    path = KEPT / f"{name}.txt"
    if not path.exists():
        return None
    for line in path.read_text().splitlines():
        if line.startswith("== "):
            lines = facts.setdefault(line[3:], [])
        else:
            lines.append(line)
    return facts


def differences(slurm, berth):
    """Lines such as "env -SLURM_JOB_QOS=normal" (only under Slurm) or "file a.out +hello" (only under Berth)."""
    found = []
    for kind in sorted(set(slurm) | set(berth)):
        if kind not in berth:
            found.append(f"{kind} is not written")
        elif kind not in slurm:
            found.append(f"{kind} is written, under Slurm it is not")
        else:
            found += [f"{kind} {line[0]}{line[2:]}" for line in difflib.ndiff(slurm[kind], berth[kind]) if line[0] in "+-"]
    return found


class Explanations:
    """Rows "script | what | why"; script and what are patterns with * and ?."""

    def __init__(self):
        self.rows = []
        self.used = set()
        for number, line in enumerate((HERE / "differences.txt").read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split(" | ")]
            if len(parts) != 3 or not all(parts):
                raise SystemExit(f"tests/corpus/differences.txt:{number}: wants: script | what | why")
            self.rows.append(tuple(parts))

    def why(self, script, difference):
        for number, (pattern, what, why) in enumerate(self.rows):
            if fnmatch.fnmatchcase(script, pattern) and fnmatch.fnmatchcase(difference, what.replace("[", "[[]")):
                self.used.add(number)
                return why
        return None

    def unused(self):
        return [" | ".join(row[:2]) for number, row in enumerate(self.rows) if number not in self.used]


COLUMNS = (("submit", ("submit", "driver")), ("state", ("state",)), ("steps", ("step",)), ("environment", ("env",)), ("output", ("file",)))


def cell(kinds, slurm, berth, found):
    """One field of the table: what both did, or how many lines differ."""
    mine = [line for line in found if line.split(" ")[0] in kinds]
    if mine:
        return f"{len(mine)} differ" if len(mine) > 1 else "1 differs"
    lines = [line for kind, lines in slurm.items() if kind.split(" ")[0] in kinds for line in lines]
    if kinds == ("state",) and lines:
        return "<br>".join(sorted({line.split(": ")[-1] for line in lines}))
    if kinds[0] == "submit" and lines:
        return lines[0]
    return f"the same ({len(lines)})" if lines else "none"


def counted(explained):
    """Without what two clusters of one system would also differ in."""
    return [line for line, why in explained if not why.startswith("cluster: ")]


def alike(explained):
    """How many scripts behave the same in all that counts, and how many find only more variables."""
    lists = [counted(found) for found in explained.values()]
    return sum(not found for found in lists), sum(bool(found) and all(line.startswith("env +") for line in found) for found in lists)


def table(scripts, outcomes, explained):
    rows = ["| script | exercises | " + " | ".join(name for name, _ in COLUMNS) + " |", "|---" * (2 + len(COLUMNS)) + "|"]
    for script in scripts:
        slurm, berth = kept(script.name), outcomes.get(script.name)
        if berth is None or slurm is None:
            rows.append(f"| {script.name} | {script.exercises()} | not run |" + " |" * (len(COLUMNS) - 1))
            continue
        found = counted(explained[script.name])
        cells = " | ".join(cell(kinds, slurm, berth.facts, found) for _, kinds in COLUMNS)
        rows.append(f"| [{script.name}](../tests/corpus/scripts/{script.name}.sh) | {script.exercises()} | {cells} |")
    return "\n".join(rows)


def page(scripts, outcomes, explained):
    reasons = {}
    for name, found in explained.items():
        for line, why in found:
            reasons.setdefault(why, []).append((name, line))
    same, more = alike(explained)
    text = f"""# Scripts of Slurm on Berth

{len(scripts)} batch scripts, each written after the manner of real ones, run on a Slurm 24.11 with one node of eight GPUs and on
Berth with a node like it. `scripts/corpus --berth PROGRAM --compare` runs them and writes this page; the test `corpus` compares
them with what is kept of Slurm (`tests/corpus/slurm`) and fails on a difference that `tests/corpus/differences.txt` does not
explain. Job numbers, times, hosts and device numbers are left out of the comparison.

{same} of {len(explained)} scripts behave the same in every line, {more} more find only variables that Slurm does not set besides.
What follows from settings of the two clusters (names, switches, default memory) does not count.

"the same (N)": so many lines are the same. "differ": see the explanations below.

{table(scripts, outcomes, explained)}

## What differs and why
"""
    for why, lines in sorted(reasons.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        text += f"\n**{why[0].upper()}{why[1:]}**\n\n"
        shown = sorted({line for _, line in lines})
        names = sorted({name for name, _ in lines})
        text += f"In {len(names)} scripts" if len(names) > 3 else "In " + ", ".join(names)
        text += ":\n\n" + "".join(f"    {line}\n" for line in shown[:12])
        if len(shown) > 12:
            text += f"    … and {len(shown) - 12} more\n"
    return text


def report(scripts, outcomes, path, whole):
    """Prints every difference without an explanation; 1 if there is one."""
    explanations = Explanations()
    explained, bad = {}, 0
    for script in scripts:
        outcome, slurm = outcomes.get(script.name), kept(script.name)
        if outcome is None:
            continue
        if slurm is None:
            print(f"corpus: {script.name}: nothing is kept of Slurm (scripts/corpus --slurm DIR --record)")
            bad += 1
            continue
        explained[script.name] = []
        for line in differences(slurm, outcome.facts):
            why = explanations.why(script.name, line)
            explained[script.name].append((line, why or "not explained"))
            if why is None:
                print(f"corpus: {script.name}: {line}")
                bad += 1
    if whole:
        for row in explanations.unused():
            print(f"corpus: explained, but no longer different: {row}")
            bad += path is not None
    same, more = alike(explained)
    print(f"corpus: {len(explained)} scripts, {same} the same as under Slurm, {more} with more variables, "
          f"{bad} differences without an explanation")
    if path:
        path.write_text(page(scripts, outcomes, explained))
    return 1 if bad else 0
