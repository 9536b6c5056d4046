#!/usr/bin/env python3
"""What a task of a step sees of its place: rank, size, devices. With --reduce all ranks sum a gradient over TCP at rank 0."""
import os
import socket
import sys
import time


def variable(*names, default="-"):
    for name in names:
        if name in os.environ:
            return os.environ[name]
    return default


def connect(address, port):
    """The other ranks may be here before rank 0 listens."""
    for _ in range(600):
        try:
            return socket.create_connection((address, port), timeout=30)
        except OSError:
            time.sleep(0.05)
    sys.exit("rank 0 does not answer")


def reduce(rank, size, value):
    address = "127.0.0.1"  # whatever MASTER_ADDR says: all nodes of these tests are this machine
    port = int(os.environ["MASTER_PORT"])
    if rank > 0:
        with connect(address, port) as peer:
            peer.sendall(f"{value}\n".encode())
            return float(peer.makefile().readline())
    with socket.create_server((address, port)) as server:
        server.settimeout(30)
        peers = [server.accept()[0] for _ in range(size - 1)]
        total = value + sum(float(peer.makefile().readline()) for peer in peers)
        for peer in peers:
            peer.sendall(f"{total}\n".encode())
            peer.close()
    return total


rank = int(variable("RANK", "SLURM_PROCID", default="0"))
size = int(variable("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", default="1"))
line = f"rank {rank} of {size} local {variable('LOCAL_RANK', 'SLURM_LOCALID')} node {variable('SLURM_NODEID')}"
devices = variable("CUDA_VISIBLE_DEVICES", default="")
line += f" gpus {len(devices.split(',')) if devices else 0}"
if "--devices" in sys.argv:
    line += f" devices={devices}"
if "--reduce" in sys.argv:
    line += f" sum {reduce(rank, size, float(rank + 1)):g}"
for name in sys.argv[1:]:
    if not name.startswith("--"):
        line += f" {name}={variable(name)}"
os.write(1, f"{line}\n".encode())  # in one piece, beside the other ranks
