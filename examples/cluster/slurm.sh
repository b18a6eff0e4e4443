#!/bin/bash
#SBATCH --job-name=search
#SBATCH --array=1-64%16           # 64 tasks, of which 16 run at a time
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@300       # 300 s before the end: no further trial
#SBATCH --requeue                 # after a preemption or a lost node
#SBATCH --open-mode=append        # a task that runs again goes on in its log
#SBATCH --output=worker-%a.log
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G

# Its argument is the storage. Create the study first:
#   python worker.py create /shared/search.log
#   sbatch slurm.sh /shared/search.log
set -euo pipefail
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
exec python worker.py work "$1"   # exec: Slurm's signals reach Python itself
