#!/usr/bin/env python3
"""Distributed data parallel training of a tiny model with PyTorch on CPUs (gloo): every rank ends with the same weights."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
for name, other in (("RANK", "SLURM_PROCID"), ("WORLD_SIZE", "SLURM_NTASKS"), ("LOCAL_RANK", "SLURM_LOCALID")):
    if name not in os.environ:
        os.environ[name] = os.environ[other]
if "--fail-once" in sys.argv and os.environ["RANK"] == "1" and not os.path.exists("failed.once"):
    open("failed.once", "w").close()
    sys.exit(1)  # torchrun starts all workers again
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    torch.manual_seed(step * size + rank)
    x = torch.rand(16, 1) * 2 - 1
    loss = ((model(x) - (3 * x - 1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
weight = model.module.weight.item()
total = torch.tensor([weight])
dist.all_reduce(total)
same = abs(total.item() / size - weight) < 1e-6
line = f"rank {rank} of {size} local {os.environ['LOCAL_RANK']} weight {weight:.2f} the same everywhere {same}\n"
os.write(1, line.encode())  # in one piece, beside the other ranks
dist.destroy_process_group()
