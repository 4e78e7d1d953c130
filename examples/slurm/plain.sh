#!/bin/bash
# A job on two nodes with two workers each. Submit it from the top of the source tree:
#     sbatch examples/slurm/plain.sh
#SBATCH --job-name=muster-plain
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=30

srun --cpu-bind=none muster run --nproc-per-node=2 "${TRAIN:-examples/ddp/train.py}" --checkpoint="${CHECKPOINT:-plain.pt}"
