"""One bad job, or one bad request, never stops the scheduler."""

import json
import random
import threading
import time

from attack import attack
from world import World, expect

ABSURD = [0, -1, 1, 2**31 - 1, -2**31, 2**31, 2**63, -2**63, 10**30, 0.5, 1e308, -0.0, "", "0", "-1", "NaN", "1e999", "x" * 5000,
          "\x00", "\u202e", "../../no/such/place", True, False, None, [], {}, [0], [[]], {"a": 1}, ["sh", "-c", "true"]]
KEYS = ["gpus", "gpus_min", "gpus_max", "gpu_milli", "cpus", "memory_mib", "batch_size", "priority", "weight", "kind", "iterations",
        "user", "group", "queue", "name", "model", "study", "gpu_type", "estimate", "time_limit", "deadline", "soft_deadline",
        "begin", "dependencies", "any_dependency", "array", "hold", "key", "command", "script", "env", "workdir", "output", "error",
        "comment", "grace_seconds", "retries", "preemptible", "requeue", "exclusive", "tasks", "nodes", "signal", "elastic", "no_such_key"]
VERBS = ["cancel", "hold", "release", "requeue", "suspend", "resume", "signal"]


def raw(value):
    """JSON, and what calls itself so."""
    if value == "NaN":
        return "NaN"
    if value == "1e999":
        return "1e999"
    return json.dumps(value)


def others_go_on(world):
    """A second user's job starts and ends as if nothing had happened."""
    world.lives()
    world.ran("bob", "--gpus", "1", "--time", "60s", "--", "true")


@attack("bad jobs", "a waiting job is changed to absurd numbers, then the scheduler is killed and started again")
def absurd_changes(terms):
    with World(terms.place) as world:
        number = world.submit("ann", "--hold", "--gpus", "2", "--time", "60s", "--", "true")
        for change in ("gpus=-1", "gpus=2147483647", "gpu_milli=0", "cpus=-5", "memory_mib=-1", "weight=-1"):
            code, _, _ = world.berth("ann", "change", str(number), change)
            expect(code != 0, f"'berth change {number} {change}' is taken")
            world.lives()
        code, _, said = world.berth("ann", "change", str(number), "gpus=0")  # a job of cores alone
        expect(code == 0, f"'berth change {number} gpus=0' is refused: {said}")
        world.lives()
        world.berth("ann", "release", str(number))
        others_go_on(world)
        world.restart()
        others_go_on(world)
        world.until_state(number, "completed")


@attack("bad jobs", "a job is changed past its queue's time limit, by 0 and by too much")
def past_the_limit(terms):
    with World(terms.place) as world:
        number = world.submit("ann", "--hold", "--time", "1h", "--", "true")
        for limit in ("0", "7201", "999999999999"):
            world.berth("ann", "change", str(number), f"time_limit={limit}")
            now = world.job(number)["spec"].get("time_limit", 0)
            expect(0 < now <= 7200, f"time_limit={limit}: the job has {now} s in a queue of 7,200 s")
        others_go_on(world)


@attack("bad jobs", "jobs wait for themselves, for each other and for jobs that never were")
def cycles(terms):
    with World(terms.place) as world:
        one = world.submit("ann", "--hold", "--", "true")
        two = world.submit("ann", "--hold", "--dependency", f"afterok:{one}", "--", "true")
        three = world.submit("ann", "--hold", "--dependency", f"afterok:{two}", "--", "true")
        for job, on in ((one, one), (one, two), (one, three), (two, three), (three, 10**9)):
            status, text = world.api("ann", "PATCH", f"/api/v1/jobs/{job}",
                                     {"dependencies": [{"kind": "afterok", "job": on}]})
            expect(status != 200, f"job {job} now waits for job {on}: {text[:100]}")
            code, _, _ = world.berth("ann", "change", str(job), f"dependencies=afterok:{on}")
            expect(code != 0, f"job {job} now waits for job {on}")
        code, _, _ = world.berth("ann", "submit", "--dependency", f"afterok:{three + 1}", "--", "true")
        expect(code != 0, "a new job waits for itself by its next number")
        others_go_on(world)


@attack("bad jobs", "a deadline in the past")
def past_deadline(terms):
    with World(terms.place) as world:
        status, _ = world.api("ann", "POST", "/api/v1/jobs",
                              {"command": ["true"], "workdir": "/tmp", "deadline": int(time.time()) - 3600})
        expect(status >= 400, "a job that should have ended an hour ago is taken")
        others_go_on(world)


@attack("bad jobs", "every key of a job with absurd values, at submit and by change, of jobs in every state")
def absurd_values(terms):
    with World(terms.place) as world:
        waiting = world.submit("ann", "--hold", "--gpus", "1", "--time", "60s", "--", "true")
        running = world.submit("ann", "--gpus", "1", "--time", "1h", "--", "sleep", "300")
        over = world.submit("ann", "--gpus", "1", "--", "true")
        world.until_state(over, "completed")
        world.until_state(running, "running")
        for key in KEYS:
            for value in ABSURD:
                body = f'{{"command":["true"],"workdir":"/tmp","hold":true,"{key}":{raw(value)}}}'
                status, text = world.api("root", "POST", "/api/v1/jobs", body)
                expect(status < 500, f"submit with {key}={raw(value)[:40]}: {status} {text[:100]}")
                for job in (waiting, running, over):
                    status, text = world.api("root", "PATCH", f"/api/v1/jobs/{job}", f'{{"{key}":{raw(value)}}}')
                    expect(status < 500, f"change with {key}={raw(value)[:40]}: {status} {text[:100]}")
            world.lives()
        others_go_on(world)
        world.restart()
        others_go_on(world)


@attack("bad jobs", "every verb on every job from several sides at once")
def racing_verbs(terms):
    with World(terms.place) as world:
        jobs = [world.submit("ann", "--gpus", str(1 + i % 4), "--time", "60s", "--", "sleep", "0.2") for i in range(12)]
        requests = terms.many(250, 5000)
        failures = []

        def torment(seed):
            chance = random.Random(seed)
            for _ in range(requests):
                job = chance.choice(jobs + [0, 10**9, 2**63])
                try:
                    if chance.random() < 0.5:
                        verb = chance.choice(VERBS)
                        body = {"signal": chance.choice([0, 1, 9, 15, 18, 64, 65, -1, 10**9])} if verb == "signal" else {}
                        status, text = world.api("root", "POST", f"/api/v1/jobs/{job}/{verb}", body)
                    elif chance.random() < 0.5:
                        body = f'{{"{chance.choice(KEYS)}":{raw(chance.choice(ABSURD))}}}'
                        status, text = world.api("root", "PATCH", f"/api/v1/jobs/{job}", body)
                    else:
                        status, text = world.api("root", "GET", f"/api/v1/jobs/{job}/{chance.choice(['why', 'attempts', 'output'])}")
                    if status >= 500:
                        failures.append(f"{status} {text[:150]}")
                except OSError as error:
                    failures.append(f"{type(error).__name__} {error}")
                    return

        threads = [threading.Thread(target=torment, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        world.lives()
        expect(not failures, f"{len(failures)} requests failed, the first: {(failures or [''])[0]}")
        world.api("root", "POST", "/api/v1/jobs/actions", {"verb": "cancel", "user": "ann"})
        others_go_on(world)


@attack("bad jobs", "a signal and a why that come while the scheduler stops")
def asked_while_stopping(terms):
    with World(terms.place) as world:
        job = world.submit("ann", "--", "sleep", "60")
        world.until_state(job, "running")
        answers = []

        def ask():
            for _ in range(200):
                try:
                    answers.append(world.api("root", "POST", f"/api/v1/jobs/{job}/signal", {"signal": 18}, timeout=10)[0])
                    answers.append(world.api("root", "GET", f"/api/v1/jobs/{job}/why", timeout=10)[0])
                except TimeoutError:
                    answers.append("no answer")
                    return
                except Exception:
                    return

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        world.stop(seconds=15)
        for thread in threads:
            thread.join()
        expect("no answer" not in answers, "somebody was left without an answer")


@attack("bad jobs", "the machine has fewer devices at the next start: its jobs stay, and run when they are back")
def smaller_machine(terms):
    with World(terms.place) as world:
        wide = world.submit("ann", "--gpus", "4", "--hold", "--", "true")
        world.restart(cluster="1x2")
        world.berth("ann", "release", str(wide))
        others_go_on(world)
        expect(world.state(wide) in ("pending", "blocked"), f"job {wide} is {world.state(wide)}: {world.job(wide)['reason']}")
        _, out, _ = world.berth("ann", "why", str(wide))
        expect("4 GPUs" in out, f"why does not say what is missing: {out[:150]}")
        world.restart(cluster="1x4")
        world.until_state(wide, "completed")


@attack("bad jobs", "a job outlives its estimate beside a startable one: that starts without being asked about")
def nobody_asks(terms):
    with World(terms.place, cluster="1x2", estimator="limit") as world:
        late = world.submit("ann", "--gpus", "1", "--estimate", "4s", "--", "sleep", "40")
        world.until_state(late, "running")
        began = time.monotonic()
        world.submit("ann", "--gpus", "2", "--estimate", "60s", "--", "true")  # it is promised both devices at 4 s
        time.sleep(max(0.0, began + 3.4 - time.monotonic()))
        short = world.submit("bob", "--gpus", "1", "--estimate", "1s", "--", "true")  # would end after that
        # From 4 s on the promise is a second away, whatever the clock says: the short one fits before it.
        world.until_state(short, "completed", seconds=15)


@attack("bad jobs", "a policy that refuses jobs says so at submit, or its owner is told afterwards")
def refusals_are_told(terms):
    with World(terms.place, policy="oasis") as world:
        refused = 0
        for _ in range(12):
            code, out, err = world.berth("ann", "submit", "--gpus", "4", "--time", "1h", "--", "sleep", "1")
            if code != 0:
                refused += 1
                expect("policy oasis refuses it: " in err, f"a refusal without a reason: {err[:150]}")
                continue
            job = int(out.split()[-1])
            world.until(lambda: world.state(job) not in ("pending", "starting"), 1)
            if world.state(job) == "rejected":
                reason = world.job(job)["reason"]
                for words in (("why", str(job)), ("show", str(job)), ("history",)):
                    _, out, _ = world.berth("ann", *words)
                    expect(reason and reason[:30] in out, f"'berth {' '.join(words)}' does not tell why job {job} is rejected")
        held = world.submit("ann", "--hold", "--gpus", "4", "--time", "1h", "--", "sleep", "1")
        _, out, err = world.berth("ann", "submit", "--hold", "--gpus", "4", "--time", "1h", "--", "sleep", "1")
        expect("oasis decides" in out + err, f"job {held + 1} comes up later, and nobody says that it may be refused then")
