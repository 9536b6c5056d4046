#!/bin/bash
#SBATCH -N 1
#SBATCH -n 1
#SBATCH --time 02:00:00
#SBATCH --job-name jupyter-notebook
#SBATCH --output jupyter-notebook-%J.log
#SBATCH --gres=gpu:1
#
# Modelled on: tlmakinen/21cm-unet jupyter.sh (tunnel instructions in the log, then the notebook on the node)
# Exercises: %J, hostname and whoami in a job, a server that runs inside the job, empty XDG_RUNTIME_DIR
# Payload: a web server in the place of the notebook, asked once

# get tunneling info
XDG_RUNTIME_DIR=""
node=$(hostname -s)
user=$(whoami)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

# print tunneling instructions jupyter-log
echo -e "
Command to create ssh tunnel:
ssh -N -f -L PORT:${node}:PORT ${user}@login.example.org

Use a Browser on your local machine to go to:
localhost:PORT
"
mkdir notebooks && echo '<title>notebooks</title>' > notebooks/index.html
python3 -m http.server --bind 127.0.0.1 --directory notebooks "$port" 2> /dev/null &
server=$!
python3 - "$port" <<'P'
import sys, time, urllib.request
for _ in range(200):
    try:
        print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/").read().decode().strip())
        break
    except OSError:
        time.sleep(0.05)
P
kill $server
wait $server 2>/dev/null
rm -r notebooks
