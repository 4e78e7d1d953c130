#!/bin/bash
# A job on two to four nodes that goes on when a node dies. Three of four nodes work, the fourth is a
# spare: it takes the place of a node that is lost, and the training goes on with the same number of workers.
# --no-kill tells sbatch and srun to keep the other nodes. --slurm starts muster on every node, so that the
# script needs no srun.
#     sbatch examples/slurm/elastic.sh
#SBATCH --job-name=muster-elastic
#SBATCH --nodes=2-4
#SBATCH --no-kill
#SBATCH --ntasks-per-node=1
#SBATCH --time=30

muster run --slurm --nnodes=2:3 --max-restarts=3 "${TRAIN:-examples/ddp/train.py}" --checkpoint="${CHECKPOINT:-elastic.pt}" ${HOLD:+--hold="$HOLD"}
