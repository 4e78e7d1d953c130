#!/bin/bash
# A job that needs longer than its time limit. A minute before the limit Slurm sends SIGUSR1 to this script (the
# "B:" of --signal), which has the job queued again; it goes on from its checkpoint. Output is appended.
# Preemption with PreemptMode=REQUEUE comes to the same without the signal.
#     sbatch examples/slurm/requeue.sh
#SBATCH --job-name=muster-requeue
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=30
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append

trap 'scontrol requeue "$SLURM_JOB_ID"' USR1
srun --cpu-bind=none muster run "${TRAIN:-examples/ddp/train.py}" --checkpoint="${CHECKPOINT:-requeue.pt}" ${HOLD:+--hold="$HOLD"} &

# The shell runs the trap when a signal ends its wait; then it waits on.
until wait $!; do
	status=$?
	kill -0 $! 2>/dev/null || exit $status
done
