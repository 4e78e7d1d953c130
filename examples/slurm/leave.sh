#!/bin/bash
# A job that needs longer than its time limit, and loses no step. A minute before the limit Slurm sends SIGUSR1 to
# every process of the step: muster has all ranks save and leave after the same step, and ends with 94, "start me
# again"; then the script has the job queued again. Ranks that do not come to that within 50 s are stopped. The program asks muster.stop_after() after each step, and
# needs muster's Python package for that. Output is appended.
#     sbatch examples/slurm/leave.sh
#SBATCH --job-name=muster-leave
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=30
#SBATCH --signal=USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append

srun --cpu-bind=none muster run --nproc-per-node=2 --notice="${NOTICE:-50s}" "${TRAIN:-examples/ddp/train.py}" --checkpoint="${CHECKPOINT:-leave.pt}" \
	${HOLD:+--hold="$HOLD" --hold-at="$HOLD_AT"}
status=$?
[ $status != 94 ] || exec scontrol requeue "$SLURM_JOB_ID"
exit $status
