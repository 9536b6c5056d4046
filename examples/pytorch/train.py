#!/usr/bin/env python3
"""Trains a small network; see README.md. Deterministic: the same seed gives the same loss."""

import argparse
import os
import pathlib
import random
import sys
import time

import torch

try:
    import berth
except ModuleNotFoundError:  # not installed: this example lies in a clone that has it
    sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent.parent / "python"))
    import berth
import berth.torch


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=1024, help="in an epoch")
    parser.add_argument("--batch", type=int, default=32, help="samples per step, over all workers")
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--pause", type=float, default=0, help="seconds a step takes at least")
    return parser.parse_args()


def data(options):
    generator = torch.Generator().manual_seed(options.seed)
    inputs = torch.rand(options.samples, 8, generator=generator) * 2 - 1
    targets = (inputs * inputs.roll(1, dims=1)).sum(dim=1, keepdim=True)
    return inputs, targets


class Batches:
    """This worker's part of each batch of an epoch that is left after so many samples."""

    def __init__(self, options, tensors, epoch, samples, rank, each, world):
        order = list(range(options.samples))
        random.Random(f"{options.seed}/{epoch}").shuffle(order)
        size = each * world
        self.first = -(-samples // size)
        self.total = options.samples // size
        self._parts = [order[i * size + rank * each:i * size + (rank + 1) * each] for i in range(self.total)]
        self._tensors = tensors

    def __len__(self):
        return self.total - self.first

    def __iter__(self):
        for part in self._parts[self.first:]:
            yield tuple(tensor[part] for tensor in self._tensors)


def main():
    options = parse()
    torch.manual_seed(options.seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if world > 1:
        torch.distributed.init_process_group("gloo")
    each, rate = berth.torch.elastic(options.batch, options.rate, world)

    layers = [torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Dropout(options.dropout), torch.nn.Linear(32, 1)]
    bare = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(bare.parameters(), lr=rate, momentum=0.9)
    tensors = data(options)
    criterion = torch.nn.MSELoss()

    progress = {"samples": 0}  # of this epoch: steps would mean another thing with other workers

    def save():
        return berth.torch.save(options.checkpoint, run, bare, optimizer, **progress)

    with berth.training(save=save if options.checkpoint else None, agree=berth.torch.agree) as run:
        known = berth.torch.restore(options.checkpoint, run, bare, optimizer) if options.checkpoint else None
        if known is not None:
            progress = known
            print(f"continues after {run.iteration} steps with {world} workers", flush=True)
        for group in optimizer.param_groups:
            group["lr"] = rate
        model = torch.nn.parallel.DistributedDataParallel(bare) if world > 1 else bare

        def loss_of(part):
            inputs, targets = part
            return criterion(model(inputs), targets)

        most_sub_steps = 1
        for epoch in run.epochs(options.epochs):
            batches = Batches(options, tensors, epoch, progress["samples"], rank, each, world)
            for batch in run.steps(batches, done=batches.first, total=batches.total):
                optimizer.zero_grad()
                loss = berth.torch.accumulate(run, batch, loss_of, model=model)
                optimizer.step()
                most_sub_steps = max(most_sub_steps, run.sub_steps)
                run.report(loss=loss, batch=each)
                progress["samples"] += each * world
                time.sleep(options.pause)
            progress["samples"] = 0
        if options.checkpoint:
            run.checkpoint()

    if rank == 0:
        bare.eval()
        with torch.no_grad():
            loss = criterion(bare(tensors[0]), tensors[1]).item()
        print(f"sub-steps {most_sub_steps}")
        print(f"loss {loss!r}")


if __name__ == "__main__":
    main()
