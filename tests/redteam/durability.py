"""What was acknowledged is never lost and never runs twice, however the scheduler dies."""

import os
import random
import subprocess
import threading
import time

from attack import attack
from world import World, expect, write


@attack("durability", "killed again and again while users submit: each job runs exactly once")
def killed_while_submitting(terms):
    with World(terms.place, cluster="1x8") as world:
        acknowledged, refused = [], []
        over = threading.Event()

        def submitting(user):
            while not over.is_set():
                code, out, err = world.berth(user, "submit", "--parsable", "--gpus", "1", "--time", "5m", "--", "sh", "-c",
                                             f"echo $BERTH_JOB_ID >> {world.home}/{user}/ran")
                if code == 0:
                    acknowledged.append(int(out.split()[0]))
                else:
                    refused.append(err.strip())

        threads = [threading.Thread(target=submitting, args=(user,)) for user in ("ann", "bob")]
        for thread in threads:
            thread.start()
        chance = random.Random(1)
        for _ in range(terms.many(4, 30)):
            time.sleep(chance.uniform(0.1, 0.8))
            world.kill()
            time.sleep(chance.uniform(0, 0.4))
            world.start()
        over.set()
        for thread in threads:
            thread.join()
        expect(not refused, f"{len(refused)} of {len(acknowledged) + len(refused)} submits were given up: {(refused or [''])[0][:150]}")
        expect(world.until(lambda: world.berth("root", "queue", "--json")[1].count('"number"') == 0, 120), "jobs are left in the queue")
        ran = []
        for user in ("ann", "bob"):
            ran += [int(line) for line in open(f"{world.home}/{user}/ran", encoding="utf-8").read().split()]
        lost = set(acknowledged) - set(ran)
        expect(not lost, f"{len(lost)} of {len(acknowledged)} acknowledged jobs never ran, such as {min(lost or [0])}")
        expect(len(ran) == len(set(ran)), f"{len(ran) - len(set(ran))} jobs ran twice")


@attack("durability", "jobs go on while the scheduler is down, and are adopted")
def adopted(terms):
    with World(terms.place) as world:
        job = world.submit("ann", "--", "sh", "-c", "sleep 1.5; echo ended")
        world.until_state(job, "running")
        before = world.job(job)["pid"]
        world.restart()
        after = world.job(job)
        expect(after["attempts"] == 1 and (after["pid"] in (0, before)), f"job {job} was started anew: {after['attempts']} attempts")
        world.until_state(job, "completed")
        expect("ended" in world.output(job), "its output is lost")


@attack("durability", "a second scheduler on the same state, and one on a socket in use")
def second_scheduler(terms):
    with World(terms.place) as world:
        job = world.submit("ann", "--", "sleep", "30")
        world.until_state(job, "running")
        for changes in ({}, {"state_dir": f"{world.folder}/state/other", "run_dir": f"{world.run}/other"}):
            config = {**world.config, **changes}
            import json
            write(f"{world.folder}/second.yaml", json.dumps(config))
            second = subprocess.Popen([f"{world.bin}/berth", "serve", "--config", f"{world.folder}/second.yaml"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                _, words = second.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                second.kill()
                second.wait()
                expect(False, f"a second scheduler runs beside the first ({changes})")
            expect(second.returncode != 0, f"a second scheduler ends as if all were well: {words[-100:]}")
            world.lives()
            expect(world.state(job) == "running", f"job {job} is {world.state(job)} after it")


@attack("durability", "the same submit sent twice at once with one key is one job")
def same_key(terms):
    with World(terms.place) as world:
        answers = []

        def post():
            answers.append(world.api("root", "POST", "/api/v1/jobs", {"command": ["true"], "workdir": "/tmp", "hold": True},
                                     {"Idempotency-Key": "once"})[1])
        threads = [threading.Thread(target=post) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        numbers = {answer.split('"job":')[1].split(",")[0] for answer in answers}
        expect(len(numbers) == 1, f"one key made the jobs {sorted(numbers)}")


@attack("durability", "the scheduler is stopped for two seconds and goes on")
def stopped_process(terms):
    with World(terms.place) as world:
        job = world.submit("ann", "--", "sh", "-c", "sleep 0.5; echo done")
        world.until_state(job, "running")
        os.kill(world.process.pid, 19)
        time.sleep(2)
        os.kill(world.process.pid, 18)
        world.until_state(job, "completed")
        world.ran("bob", "--", "true")
