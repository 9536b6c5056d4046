#!/usr/bin/env python3
"""A small training run: fits y = 3x - 1 by stochastic gradient descent. Same seed, same numbers, on every machine."""
import argparse
import json
import os
import random
import signal
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--checkpoint", help="file to save to and to resume from")
parser.add_argument("--epoch-seconds", type=float, default=0.0, help="how long an epoch takes at least")
parser.add_argument("--fail-at", type=int, help="exit with code 3 after this epoch")
args = parser.parse_args()

weight, bias, first = 0.0, 0.0, 0
if args.checkpoint and os.path.exists(args.checkpoint):
    with open(args.checkpoint) as file:
        state = json.load(file)
    weight, bias, first = state["weight"], state["bias"], state["epoch"]
    print(f"resumed at epoch {first}", flush=True)


def save(epoch):
    if not args.checkpoint:
        return
    with open(args.checkpoint + ".new", "w") as file:
        json.dump({"weight": weight, "bias": bias, "epoch": epoch}, file)
    os.replace(args.checkpoint + ".new", args.checkpoint)


stop = []
signal.signal(signal.SIGUSR1, lambda number, frame: stop.append(number))
signal.signal(signal.SIGTERM, lambda number, frame: stop.append(number))

loss = 0.0
for epoch in range(first, args.epochs):
    numbers = random.Random(args.seed * 1000 + epoch)
    loss = 0.0
    for _ in range(32):
        x = numbers.random() * 2 - 1
        error = weight * x + bias - (3 * x - 1)
        weight -= args.lr * error * x
        bias -= args.lr * error
        loss += error * error / 32
    time.sleep(args.epoch_seconds)
    save(epoch + 1)
    if stop:
        print(f"{signal.Signals(stop[0]).name}: saved", flush=True)
        sys.exit(0 if args.checkpoint is None else 75)
    if args.fail_at == epoch + 1:
        print(f"epoch {epoch + 1}: loss is not a number", file=sys.stderr)
        sys.exit(3)
print(f"seed {args.seed} lr {args.lr:g}: loss {loss:.6f} weight {weight:.4f} bias {bias:.4f}")
