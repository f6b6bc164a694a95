#!/usr/bin/env bash
# One output in parts by GNU parallel: sh parallel.sh [PARTS [JOBS]]
#
# With --sshloginfile HOSTS and a shared file system the parts run on several machines. A part that
# fails is tried again; running the script again does only what is missing. `command` is the job, quoted
# as in a shell.
set -euo pipefail
command=(tslice input.npy '[::-1]' -o reversed.npy)

parts=${1:-16} jobs=${2:-4}
seq 0 $((parts - 1)) | parallel --quote --jobs "$jobs" --retries 3 --halt soon,fail=1 \
    "${command[@]}" --quiet --part "{}/$parts"
