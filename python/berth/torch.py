"""PyTorch helpers: checkpoints that are whole or not there, micro-batches, other numbers of workers.

torch is imported when it is needed, so that this module can be imported without it.
"""

import contextlib
import os
import random
import sys
import tempfile

_FORMAT = 1


def save(path, run, model, optimizer=None, scheduler=None, **extra):
    """Writes everything that a restart needs, atomically: a crash leaves the old file or the new.

    Of a gang the process with RANK 0 writes; the others return at once. Answers the path.
    """
    import torch

    path = os.fspath(path)
    if os.environ.get("RANK", "0") != "0":
        return path
    state = {
        "format": _FORMAT,
        "iteration": run.iteration,
        "epoch": run.epoch,
        "world_size": int(os.environ.get("WORLD_SIZE", "1")),
        "model": _bare(model).state_dict(),
        "optimizer": optimizer.state_dict() if optimizer is not None else None,
        "scheduler": scheduler.state_dict() if scheduler is not None else None,
        "random": _random_states(),
        "extra": extra,
    }
    folder = os.path.dirname(os.path.abspath(path))
    fd, temporary = tempfile.mkstemp(prefix=os.path.basename(path) + ".", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(fd, "wb") as out:
            torch.save(state, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return path


def restore(path, run, model, optimizer=None, scheduler=None):
    """Continues where the checkpoint was written; answers its extras, or None if there is none.

    Random states are restored for the process that wrote it only if the number of workers is the
    same: another number draws other samples anyway.
    """
    import torch

    if not os.path.exists(path):
        return None
    state = torch.load(path, map_location="cpu")
    if state.get("format") != _FORMAT:
        raise ValueError(f"{path}: written by another version ({state.get('format')})")
    _bare(model).load_state_dict(state["model"])
    if optimizer is not None and state["optimizer"] is not None:
        optimizer.load_state_dict(state["optimizer"])
    if scheduler is not None and state["scheduler"] is not None:
        scheduler.load_state_dict(state["scheduler"])
    if state["world_size"] == int(os.environ.get("WORLD_SIZE", "1")):
        if os.environ.get("RANK", "0") == "0":
            _set_random_states(state["random"])
    run.resume(state["iteration"], state["epoch"])
    return state["extra"]


def split(batch, parts):
    """Cuts a tensor, or a tuple, list or dict of tensors of one length, into (part, share) pairs.

    Parts differ by one sample at most; fewer samples than parts make fewer parts. The share is the
    part's of the batch.
    """
    whole = _length(batch)
    parts = max(1, min(parts, whole))
    begin = 0
    for i in range(parts):
        end = begin + whole // parts + (1 if i < whole % parts else 0)
        yield _cut(batch, begin, end), (end - begin) / whole
        begin = end


def accumulate(run, batch, loss_of, model=None, sub_steps=None):
    """Backward over run.sub_steps micro-batches; the gradients add up to that of the whole batch.

    loss_of(part) is the mean loss of a part. model: if it is a DistributedDataParallel, gradients
    are exchanged once, with the last part. Answers the mean loss of the batch, detached.
    """
    pieces = list(split(batch, sub_steps if sub_steps is not None else run.sub_steps))
    total = None
    for i, (part, share) in enumerate(pieces):
        is_last = i + 1 == len(pieces)
        quiet = model.no_sync() if not is_last and hasattr(model, "no_sync") else contextlib.nullcontext()
        with quiet:
            loss = loss_of(part)
            weighted = loss if len(pieces) == 1 else loss * share
            weighted.backward()
        total = weighted.detach() if total is None else total + weighted.detach()
    return total


def limit_memory(memory_mib):
    """Caps what PyTorch's allocator takes of each visible device; None: no cap.

    A run does this by itself when the scheduler asks for it. Beyond the cap an allocation fails
    as if the device were full, after unused blocks were given back.
    """
    import torch

    if not torch.cuda.is_available():
        return
    for device in range(torch.cuda.device_count()):
        fraction = 1.0
        if memory_mib is not None:
            fraction = memory_mib * 2**20 / torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, fraction), device)


def agree(checkpoint, stop):
    """For training(agree=...): what one process of the gang is asked, all do after the same step."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return checkpoint, stop
    wishes = torch.tensor([int(checkpoint), int(stop)])
    if torch.distributed.get_backend() == "nccl":
        wishes = wishes.cuda()
    torch.distributed.all_reduce(wishes, op=torch.distributed.ReduceOp.MAX)
    return bool(wishes[0]), bool(wishes[1])


def elastic(global_batch, learning_rate, world_size=None):
    """What one of world_size workers does so that the optimisation stays the same.

    Answers (samples per worker and iteration, learning rate). See README.md for the rule.
    """
    workers = world_size if world_size is not None else int(os.environ.get("WORLD_SIZE", "1"))
    each = max(1, global_batch // workers)
    return each, learning_rate * (each * workers) / global_batch


def _bare(model):
    return getattr(model, "module", model)


def _length(batch):
    if isinstance(batch, dict):
        return _length(next(iter(batch.values())))
    if isinstance(batch, (tuple, list)):
        return _length(batch[0])
    return len(batch)


def _cut(batch, begin, end):
    if isinstance(batch, dict):
        return {key: _cut(value, begin, end) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        parts = [_cut(value, begin, end) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch[begin:end]


def _random_states():
    import torch

    states = {"python": random.getstate(), "torch": torch.get_rng_state()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states):
    import torch

    random.setstate(states["python"])
    torch.set_rng_state(states["torch"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(states["numpy"])
    if torch.cuda.is_available() and len(states.get("cuda", [])) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
