"""One training run as its code sees it."""

import contextlib
import os
import signal
import sys
import threading
import time

from berth._link import Link, finite

EXIT_CODE = 143  # as if ended by SIGTERM: the job is not done
_MOST_METRICS = 32


class Stop(SystemExit):
    """Raised once a checkpoint is saved for a job that is being stopped."""

    def __init__(self, code=EXIT_CODE):
        super().__init__(code)


class Run:
    """Made by training(). Its methods are for one thread, usually the main one."""

    def __init__(self, save=None, exit_code=EXIT_CODE, signals=(signal.SIGTERM,), agree=None, resize=None):
        self._save = save
        self._agree = agree
        self._resize = resize
        self._exit_code = exit_code
        self._signals = signals
        self._old_handlers = {}
        self._link = None
        self.iteration = 0  # done, over all attempts
        self.epoch = 0
        self._epoch_share = 0.0
        self._in_step = False
        self._reported_at = None
        self._flushed_at = 0.0
        self._unreported = {}
        # Written by the link's thread or a signal handler: plain assignments, read between steps.
        self._sub_steps = 1
        self._batch = None
        self._cores = None
        self._memory_mib = None
        self._memory_set = None
        self._next_gpus = None
        self._wanted_size = None  # (id, devices)
        self._wants_checkpoint = False
        self._wants_stop = False
        self._deadline = None

    # --- beginning and end

    def __enter__(self):
        job = os.environ.get("BERTH_JOB_ID")
        if job is None:
            return self
        self._catch_signals()
        path = os.environ.get("BERTH_TRAINING_SOCKET")
        if path and job.isdigit():
            token = os.environ.get("BERTH_TRAINING_TOKEN", "")
            rank = os.environ.get("RANK", "0")
            self._link = Link(path, int(job), token, int(rank) if rank.isdigit() else 0, self._hear,
                              resizes=self._resize is not None)
        return self

    def __exit__(self, kind, value, traceback):
        if self._link is not None:
            self._flush_report()
            self._link.close()
            self._link = None
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        self._old_handlers = {}
        return False

    def _catch_signals(self):
        if threading.current_thread() is not threading.main_thread():
            return  # Python delivers signals to the main thread only
        for number in self._signals:
            self._old_handlers[number] = signal.signal(number, self._on_signal)

    def _on_signal(self, number, frame):
        self._wants_stop = True
        self._wants_checkpoint = True

    def _hear(self, message):
        kind = message.get("type")
        if kind == "terms":
            steps = message.get("sub_steps")
            self._sub_steps = steps if isinstance(steps, int) and steps >= 1 else 1
            self._batch = message.get("batch")
            self._cores = message.get("cores")
            memory = message.get("memory_mib")
            self._memory_mib = memory if isinstance(memory, int) and memory > 0 else None
        elif kind == "checkpoint":
            seconds = message.get("deadline_seconds")
            if isinstance(seconds, (int, float)):
                self._deadline = time.monotonic() + seconds
            if message.get("stop"):
                self._wants_stop = True
            self._wants_checkpoint = True
        elif kind == "resize":
            self._next_gpus = message.get("gpus")
            size, devices = message.get("id"), message.get("devices")
            is_list = isinstance(devices, list) and devices and all(isinstance(d, int) for d in devices)
            if self._resize is not None and isinstance(size, int) and is_list:
                self._wanted_size = (size, devices)

    # --- what the scheduler wants

    @property
    def sub_steps(self):
        """Micro-batches into which a batch is to be split."""
        return self._sub_steps

    @property
    def batch(self):
        """Samples per worker and iteration the scheduler chose; None: the code's own."""
        return self._batch

    @property
    def cores(self):
        """CPU cores per GPU; None: as many as there are."""
        return self._cores

    @property
    def memory_mib(self):
        """Device memory the allocator may hold; None: all there is. PyTorch is told by itself."""
        return self._memory_mib

    @property
    def next_gpus(self):
        return self._next_gpus

    @property
    def deadline(self):
        """time.monotonic() by which a checkpoint that was asked for should be written, or None."""
        return self._deadline

    def should_checkpoint(self):
        return self._wants_checkpoint

    def should_stop(self):
        return self._wants_stop

    # --- what the code says

    def resume(self, iteration, epoch=0):
        """After loading a checkpoint by hand: where the training stands."""
        self.iteration = iteration
        self.epoch = epoch

    def epochs(self, total):
        """The epochs that are left."""
        while self.epoch < total:
            yield self.epoch
            self.epoch += 1
            self._epoch_share = 0.0

    def steps(self, iterable, done=0, total=None):
        """One iteration per turn, timed with the loading of its data.

        done, total: iterations of this epoch that were done before, and that it has in all, for
        the share of the epoch that is reported; by default 0 and what is left.
        """
        if total is None:
            try:
                total = done + len(iterable)
            except TypeError:
                total = None
        source = iter(iterable)
        while True:
            self._obey()
            began = time.monotonic()
            try:
                item = next(source)
            except StopIteration:
                return
            self._in_step = True
            try:
                yield item
            finally:
                self._in_step = False
            done += 1
            self.iteration += 1
            if total:
                self._epoch_share = min(1.0, done / total)
            self._count(time.monotonic() - began)

    def report(self, loss=None, batch=None, samples=None, noise_scale=None, **metrics):
        said = self._unreported
        if self._link is not None:
            for key, value in (("loss", loss), ("noise_scale", noise_scale)):
                if value is not None:
                    said[key] = value  # a tensor stays one until it is sent
            if batch is not None:
                said["batch"] = int(batch)
            if samples is not None:
                said["samples"] = said.get("samples", 0) + samples
            if metrics:
                said.setdefault("metrics", {}).update(metrics)
        if self._in_step:
            return
        now = time.monotonic()
        seconds = 0.0 if self._reported_at is None else now - self._reported_at
        self._reported_at = now
        self.iteration += 1
        self._count(seconds)

    def _count(self, seconds):
        if self._link is None:
            return
        said = self._unreported
        said["seconds"] = said.get("seconds", 0.0) + seconds
        # Reading a loss waits for the device: not more often than it can be sent.
        now = time.monotonic()
        if now - self._flushed_at >= 0.1:
            self._flushed_at = now
            self._flush_report()

    def _flush_report(self):
        said, self._unreported = self._unreported, {}
        if not said or self._link is None:
            return
        message = {"type": "report", "iteration": self.iteration, "epoch": self.epoch + self._epoch_share,
                   "sub_steps": self._sub_steps}
        for key, value in said.items():
            if key == "metrics":
                numbers = {str(name)[:64]: finite(number) for name, number in value.items()}
                known = [(name, number) for name, number in numbers.items() if number is not None]
                message["metrics"] = dict(known[:_MOST_METRICS])
            elif key == "batch":
                message[key] = value
            else:
                number = finite(value)
                if number is not None:
                    message[key] = number
        self._link.report(message)

    # --- phases

    @contextlib.contextmanager
    def validation(self):
        """While the code validates: cores may go where they are needed meanwhile."""
        self._say_phase("validation")
        try:
            yield self
        finally:
            self._reported_at = None  # it was no training
            self._say_phase("training")

    def _say_phase(self, phase):
        if self._link is not None:
            self._flush_report()
            self._link.say_phase(phase)

    # --- checkpoints

    def checkpoint(self, save=None):
        """Saves, says so, and leaves if the job is being stopped.

        save: a function that writes the checkpoint, or the path of one that is written.
        """
        save = save if save is not None else self._save
        path = ""
        if callable(save):
            result = save()
            path = result if isinstance(result, (str, os.PathLike)) else ""
        elif save is not None:
            path = save
        self._wants_checkpoint = False
        self._deadline = None
        self._reported_at = None  # writing it was no training
        if self._link is not None:
            self._flush_report()
            self._link.say({"type": "checkpointed", "iteration": self.iteration, "path": os.fspath(path)})
        if self._wants_stop:
            raise Stop(self._exit_code)

    def _limit_memory(self):
        if self._memory_mib == self._memory_set or "torch" not in sys.modules:
            return
        from berth.torch import limit_memory

        self._memory_set = self._memory_mib
        limit_memory(self._memory_mib)

    def _resize_if_asked(self):
        wanted, self._wanted_size = self._wanted_size, None
        if wanted is None or self._wants_stop or self._link is None:
            return
        done = self._resize(wanted[1]) is not False
        self._link.say({"type": "resized", "id": wanted[0], "done": done})

    def _obey(self):
        self._limit_memory()
        self._resize_if_asked()
        if self._agree is not None:
            self._wants_checkpoint, self._wants_stop = self._agree(self._wants_checkpoint, self._wants_stop)
        if self._wants_checkpoint and self._save is not None:
            self.checkpoint()


def training(save=None, exit_code=EXIT_CODE, signals=(signal.SIGTERM,), agree=None, resize=None):
    """A training run, as a context manager.

    save: writes a checkpoint. With it, run.steps() saves when asked to, and leaves with exit_code
    when the job is being stopped. Without it the code looks at run.should_checkpoint() itself.
    signals: those that warn of the end.
    agree: of a gang, makes (checkpoint?, stop?) of this process that of all, between two steps, so
    that none waits for one that has left; see berth.torch.agree.
    resize: goes on with other devices. Called between two steps with their numbers (as in
    CUDA_VISIBLE_DEVICES); returns once no process of the job is on any other, or False if it cannot:
    then the job is stopped with a checkpoint and started anew. Without it that is always so.
    """
    return Run(save=save, exit_code=exit_code, signals=signals, agree=agree, resize=resize)
