"""The SDK against a small hub of its own, and without one."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

import berth
from berth import _link

DEADLINE = 20


def wait_until(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.005)


class FakeHub:
    """Accepts connections, keeps what is said, says what it is told to."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        self.connections = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection):
        try:
            with connection.makefile() as lines:
                for line in lines:
                    self.lines.append(json.loads(line))
        except (OSError, ValueError):
            pass

    def of(self, kind):
        return [line for line in self.lines if line["type"] == kind]

    def say(self, message):
        self.connections[-1].sendall(json.dumps(message).encode() + b"\n")

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            connection.close()
        os.unlink(self.path)


class InBerth(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.path = os.path.join(self._folder.name, "hub")
        self.hub = FakeHub(self.path)
        self.addCleanup(lambda: self.hub and self.hub.close())
        variables = {"BERTH_JOB_ID": "7", "BERTH_TRAINING_SOCKET": self.path, "BERTH_TRAINING_TOKEN": "secret",
                     "RANK": "0"}
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)

    def test_says_hello_reports_and_bye(self):
        with berth.training() as run:
            for epoch in run.epochs(2):
                for _ in run.steps(range(5)):
                    run.report(loss=0.5, batch=32, accuracy=0.9)
            wait_until(lambda: self.hub.of("report"))
        wait_until(lambda: self.hub.of("bye"))
        hello = self.hub.lines[0]
        self.assertEqual((hello["type"], hello["v"], hello["job"], hello["token"], hello["rank"]),
                         ("hello", 1, 7, "secret", 0))
        last = self.hub.of("report")[-1]
        self.assertEqual(last["iteration"], 10)
        self.assertEqual(last["epoch"], 2.0)
        self.assertEqual((last["loss"], last["batch"], last["metrics"]), (0.5, 32, {"accuracy": 0.9}))

    def test_a_validation_is_told_and_ends_with_an_error_too(self):
        with berth.training() as run:
            with run.validation():
                wait_until(lambda: len(self.hub.of("phase")) == 1)
            with self.assertRaises(ValueError):
                with run.validation():
                    raise ValueError("no data")
            wait_until(lambda: len(self.hub.of("phase")) == 4)
        phases = [line["phase"] for line in self.hub.of("phase")]
        self.assertEqual(phases, ["validation", "training", "validation", "training"])

    def test_many_reports_become_few_and_no_time_is_lost(self):
        with berth.training() as run:
            wait_until(lambda: self.hub.of("hello"))
            began = time.monotonic()
            while time.monotonic() - began < 1 or run.iteration <= 1000:
                for _ in run.steps(range(100)):
                    run.report(loss=1)
            spent = time.monotonic() - began
        wait_until(lambda: self.hub.of("bye"))
        reports = self.hub.of("report")
        self.assertGreater(run.iteration, 1000)
        self.assertLessEqual(len(reports), 10 * spent + 3)
        self.assertEqual(reports[-1]["iteration"], run.iteration)
        self.assertLessEqual(sum(report["seconds"] for report in reports), spent)
        self.assertGreater(sum(report["seconds"] for report in reports), 0.2 * spent)

    def test_obeys_terms(self):
        with berth.training() as run:
            self.assertEqual(run.sub_steps, 1)
            wait_until(lambda: self.hub.of("hello"))
            self.hub.say({"type": "terms", "sub_steps": 4, "batch": 16, "cores": 2.5})
            self.hub.say({"type": "resize", "gpus": 2})
            wait_until(lambda: run.next_gpus == 2)
            self.assertEqual((run.sub_steps, run.batch, run.cores), (4, 16, 2.5))

    def test_a_limit_of_device_memory_reaches_the_allocator(self):
        caps = []
        cuda = types.SimpleNamespace(
            is_available=lambda: True, device_count=lambda: 1,
            get_device_properties=lambda device: types.SimpleNamespace(total_memory=1000 * 2**20),
            set_per_process_memory_fraction=lambda fraction, device: caps.append((fraction, device)))
        with mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(cuda=cuda)}):
            with berth.training() as run:
                wait_until(lambda: self.hub.of("hello"))
                self.assertIsNone(run.memory_mib)
                for i, (said, meant) in enumerate(((250, 250), (None, None), ("x", None), (5000, 5000)), 1):
                    self.hub.say({"type": "terms", "sub_steps": 1, "memory_mib": said})
                    self.hub.say({"type": "resize", "gpus": i})  # comes after it
                    wait_until(lambda: run.next_gpus == i)
                    self.assertEqual(run.memory_mib, meant)
                    for _ in run.steps(range(2)):
                        pass
        self.assertEqual(caps, [(0.25, 0), (1.0, 0), (1.0, 0)])  # set when it changes

    def test_goes_on_with_other_devices_and_says_so(self):
        given = []

        def resize(devices):
            given.append(devices)
            return len(devices) < 4  # more it cannot

        with berth.training(resize=resize) as run:
            wait_until(lambda: self.hub.of("hello"))
            self.assertTrue(self.hub.lines[0]["resizes"])
            for number, devices in ((11, [0, 2]), (12, [0, 1, 2, 3])):
                self.hub.say({"type": "resize", "id": number, "gpus": len(devices), "devices": devices})
                wait_until(lambda: run.next_gpus == len(devices))
                for _ in run.steps(range(2)):
                    pass
            wait_until(lambda: len(self.hub.of("resized")) == 2)
        self.assertEqual(given, [[0, 2], [0, 1, 2, 3]])
        self.assertEqual([(line["id"], line["done"]) for line in self.hub.of("resized")], [(11, True), (12, False)])

    def test_code_that_cannot_resize_does_not_offer_it(self):
        with berth.training() as run:
            wait_until(lambda: self.hub.of("hello"))
            self.hub.say({"type": "resize", "id": 11, "gpus": 1, "devices": [0]})
            wait_until(lambda: run.next_gpus == 1)
            for _ in run.steps(range(2)):
                pass
        wait_until(lambda: self.hub.of("bye"))
        self.assertNotIn("resizes", self.hub.lines[0])
        self.assertEqual(self.hub.of("resized"), [])

    def test_saves_when_asked_and_goes_on(self):
        saved = []
        with berth.training(save=lambda: saved.append(run.iteration) or "last.pt") as run:
            wait_until(lambda: self.hub.of("hello"))
            self.hub.say({"type": "checkpoint", "deadline_seconds": 5, "stop": False})
            wait_until(run.should_checkpoint)
            for _ in run.steps(range(3)):
                pass
            self.assertFalse(run.should_checkpoint())
            self.assertEqual(run.iteration, 3)
        wait_until(lambda: self.hub.of("checkpointed"))
        self.assertEqual(saved, [0])
        self.assertEqual(self.hub.of("checkpointed")[0], {"type": "checkpointed", "iteration": 0, "path": "last.pt"})

    def test_a_signal_saves_and_leaves_between_two_steps(self):
        saved = []
        with self.assertRaises(SystemExit) as left:
            with berth.training(save=lambda: saved.append(run.iteration)) as run:
                for i in run.steps(range(100)):
                    if i == 4:
                        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(left.exception.code, berth.EXIT_CODE)
        self.assertEqual(saved, [5])
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)

    def test_code_that_saves_by_itself(self):
        with berth.training() as run:
            for i in run.steps(range(3)):
                if i == 1:
                    os.kill(os.getpid(), signal.SIGTERM)
            self.assertEqual(run.iteration, 3)
            self.assertTrue(run.should_checkpoint() and run.should_stop())
            with self.assertRaises(berth.Stop):
                run.checkpoint("written.pt")

    def test_a_scheduler_that_goes_and_comes_again(self):
        with mock.patch.object(_link, "LONGEST_PAUSE", 0.2), berth.training() as run:
            run.report(loss=1)
            wait_until(lambda: self.hub.of("report"))
            self.hub.close()
            for _ in run.steps(range(1000)):  # nothing of this blocks or fails
                run.report(loss=2)
            self.hub = FakeHub(self.path)
            wait_until(lambda: self.hub.of("hello"))
            run.report(loss=3)
            wait_until(lambda: self.hub.of("report"))
        self.assertLessEqual(len(self.hub.of("report")), 5)  # nothing was queued

    def test_a_scheduler_that_comes_again_hears_the_phase(self):
        with mock.patch.object(_link, "LONGEST_PAUSE", 0.2), berth.training() as run:
            with run.validation():
                wait_until(lambda: self.hub.of("phase"))
                self.hub.close()
            self.hub = FakeHub(self.path)
            wait_until(lambda: self.hub.of("phase"))
        self.assertEqual(self.hub.of("phase")[0]["phase"], "training")

    def test_a_hub_that_does_not_read_does_not_block(self):
        self.hub.close()
        self.hub = None
        deaf = socket.socket(socket.AF_UNIX)
        self.addCleanup(deaf.close)
        deaf.bind(self.path)
        deaf.listen()
        with berth.training() as run:
            began = time.monotonic()
            for _ in run.steps(range(5000)):
                run.report(loss=1, **{f"m{i}": i for i in range(40)})
            self.assertLess(time.monotonic() - began, 60)  # blocked, it would be for ever

    def test_nonsense_from_the_hub_and_from_the_code(self):
        with berth.training() as run:
            wait_until(lambda: self.hub.of("hello"))
            self.hub.connections[-1].sendall(b"\xff\xfe\n[]\n5\n{\"type\":\"terms\",\"sub_steps\":\"x\"}\n")
            self.hub.say({"type": "resize", "gpus": 3})
            wait_until(lambda: run.next_gpus == 3)
            self.assertEqual(run.sub_steps, 1)
            run.report(loss=float("nan"), odd="text", fine=1)
            wait_until(lambda: self.hub.of("report"))
        report = self.hub.of("report")[-1]
        self.assertNotIn("loss", report)
        self.assertEqual(report["metrics"], {"fine": 1.0})

    def test_worker_processes_do_not_speak(self):
        with berth.training() as run:
            run.report(loss=1)
            wait_until(lambda: self.hub.of("report"))
            before = len(self.hub.lines)
            child = os.fork()
            if child == 0:
                run.report(loss=9)
                run._link.close()
                os._exit(0)
            os.waitpid(child, 0)

            def reports_until_heard():  # one that follows another at once waits for the next
                run.report(loss=2)
                return any(r.get("loss") == 2 for r in self.hub.of("report"))

            wait_until(reports_until_heard)
        self.assertEqual([r for r in self.hub.lines[before:] if r.get("loss") == 9], [])


class OutsideBerth(unittest.TestCase):
    def test_everything_is_a_no_op(self):
        code = ("import berth, signal, threading\n"
                "with berth.training() as run:\n"
                "    for e in run.epochs(2):\n"
                "        for i in run.steps(range(3)): run.report(loss=object(), batch=3)\n"
                "    run.checkpoint(lambda: None)\n"
                "    assert threading.active_count() == 1\n"
                "    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL\n"
                "assert run.iteration == 6 and run.sub_steps == 1 and not run.should_checkpoint()\n"
                "assert 'torch' not in __import__('sys').modules\n")
        env = {k: v for k, v in os.environ.items() if not k.startswith("BERTH_")}
        subprocess.run([sys.executable, "-c", code], check=True, env=env, timeout=60)

    def test_a_socket_that_is_not_there(self):
        variables = {"BERTH_JOB_ID": "7", "BERTH_TRAINING_SOCKET": "/nowhere/hub"}
        with mock.patch.dict(os.environ, variables):
            began = time.monotonic()
            with berth.training() as run:
                for _ in run.steps(range(10)):
                    run.report(loss=1)
            self.assertLess(time.monotonic() - began, 60)


if __name__ == "__main__":
    unittest.main()
