#!/bin/bash
# shellcheck disable=SC2206
#SBATCH --job-name=test
#SBATCH --cpus-per-task=5
#SBATCH --mem-per-cpu=500MB
#SBATCH --nodes=1
#SBATCH --tasks-per-node=2
#SBATCH --gpus-per-task=1
#SBATCH --time=00:30:00
#
# Modelled on: ray-project/ray doc/source/cluster/doc_code/slurm-basic.sh (head by srun -w, workers in the background)
# Exercises: --tasks-per-node, srun -w, steps in the background that end with the job, SLURM_GPUS_PER_TASK
# Payload: a head that listens, a worker that reports to it, a driver that asks it
# Leave out: env port
# Unordered

nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
[ -n "$head_node_ip" ] && echo "Starting HEAD at $head_node"

cat > ray.py <<'P'
import os, socket, sys, time
role = sys.argv[1]
if role == "head":
    with socket.create_server(("127.0.0.1", 0)) as server:
        open("port.new", "w").write(str(server.getsockname()[1]))
        os.replace("port.new", "port")
        seen = []
        while True:
            peer, _ = server.accept()
            word = peer.recv(100).decode()
            seen += [word] if word != "status" else []
            peer.sendall(" ".join(sorted(seen)).encode())
            peer.close()
while not os.path.exists("port"):
    time.sleep(0.05)
def ask(word):
    with socket.create_connection(("127.0.0.1", int(open("port").read()))) as peer:
        peer.sendall(word.encode())
        return peer.recv(100).decode()
if role == "worker":
    ask(f"worker-with-{sys.argv[2]}-cpus-{sys.argv[3]}-gpus")
    time.sleep(600)
for _ in range(200):
    answer = ask("status")
    if answer:
        break
    time.sleep(0.1)
print("the head knows", answer)
P
srun --overlap --nodes=1 --ntasks=1 -w "$head_node" python3 ray.py head &
srun --overlap --nodes=1 --ntasks=1 -w "$head_node" \
  python3 ray.py worker "${SLURM_CPUS_PER_TASK}" "${SLURM_GPUS_PER_TASK}" &

python3 -u ray.py driver
