#!/bin/bash
# Modelled on: scripts written on Windows and copied to the cluster (line ends of two characters)
# Exercises: what sbatch says to a script with Windows line ends
# Payload: none
# Driver

printf '#!/bin/bash\r\n#SBATCH --job-name=dos\r\necho hello\r\n' > dos.sh
sbatch dos.sh > out.txt 2> message.txt
echo "exit $?"
head -n 1 message.txt | cut -d: -f1-2
rm -f out.txt message.txt
