#!/usr/bin/env bash
#SBATCH --job-name=tslice
#SBATCH --array=0-15
#SBATCH --cpus-per-task=1
#SBATCH --output=slurm-%A_%a.log
#
# One output in parts by a Slurm array: sbatch slurm.sh
#
# `command` is the job, quoted as in a shell: a slice here, a gather or a join just as well.
#
# To run again only the parts that `tslice ... --part status` calls missing, say 2 and 5 to 7 of 16:
#     TSLICE_PARTS=16 sbatch --array=2,5-7 slurm.sh
set -euo pipefail
command=(tslice input.npy '[::-1]' -o reversed.npy)

"${command[@]}" --quiet --threads "${SLURM_CPUS_PER_TASK:-1}" --part auto
echo "part $SLURM_ARRAY_TASK_ID on $SLURMD_NODENAME"
