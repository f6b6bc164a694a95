#!/usr/bin/env bash
# Little memory: jobs on a file of 3 GiB in a memory control group of 256 MiB, page cache included.
#
#     tests/python/cgroup.sh target/release/tslice [FOLDER]
#
# Needs the right to make control groups (root, or a delegated group), Python with NumPy as $PYTHON
# (python3), and 7 GB in FOLDER (by default a temporary one); without the rights it is skipped.
# The last line is `N passed, N failed`.
set -euo pipefail

program=$(realpath "${1:?the program to run}")
python=${PYTHON:-python3}
folder=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/tslice-cgroup-XXXXXX")
limit=$((256 << 20))
group='' passed=0 failed=0

# Makes the group under the one that this shell is in, in version 2 or 1 of control groups.
make_group() {
    local line parent root
    while IFS= read -r line; do
        case $line in
            0::*) root=/sys/fs/cgroup file=memory.max swap=memory.swap.max ;;
            *:memory:*) root=/sys/fs/cgroup/memory file=memory.limit_in_bytes swap=memory.memsw.limit_in_bytes ;;
            *) continue ;;
        esac
        parent=$root${line##*:}
        [[ -e $parent/cgroup.procs ]] || parent=$root
        # version 2 gives no controllers to the children of a group with processes, the root excepted
        if mkdir "$parent/tslice-test-$$" 2> /dev/null; then
            group=$parent/tslice-test-$$
            if echo "$limit" 2> /dev/null > "$group/$file"; then
                echo 0 2> /dev/null > "$group/$swap" || true
                return 0
            fi
            rmdir "$group"
            group=
        fi
    done < /proc/self/cgroup
    return 1
}

finish() {
    rm -rf "$folder"
    [[ -z $group ]] || rmdir "$group" 2> /dev/null || true
}
trap finish EXIT

if ! make_group 2> /dev/null; then
    echo "SKIPPED  everything: no right to make a memory control group"
    echo "0 passed, 0 failed"
    exit 0
fi

# A .npy of float32 of the given name, shape and order, random where it is cheap.
make() {
    "$python" - "$folder/$1" "$2" "$3" << 'END'
import sys
import numpy as np
path, shape, fortran = sys.argv[1], eval(sys.argv[2]), sys.argv[3] == "F"
with open(path, "wb") as file:
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": fortran, "shape": shape})
    left, piece = 4 * int(np.prod(shape)), np.random.default_rng(1).bytes((16 << 20) + 4)
    while left:
        left -= file.write(piece[:left])
END
}

# A few thousand elements, anywhere, are those that NumPy sees through a map of the input.
judge() {
    "$python" - "$folder/$1" "$2" "$folder/out.npy" << 'END'
import sys
import numpy as np
whole, found = np.load(sys.argv[1], mmap_mode="r"), np.load(sys.argv[3], mmap_mode="r")
expected = eval("whole" + sys.argv[2])
assert found.shape == expected.shape, f"{found.shape}, not {expected.shape}"
rng = np.random.default_rng(2)
for _ in range(4000):
    at = tuple(int(rng.integers(n)) for n in found.shape)
    assert found[at].tobytes() == expected[at].tobytes(), f"another value at {at}"
END
}

# Runs `tslice INPUT INDEX -o out.npy MORE...` inside the group.
check() {
    local title=$1 input=$2 index=$3 begun=$SECONDS
    shift 3
    rm -f "$folder/out.npy"
    if (echo "$BASHPID" > "$group/cgroup.procs" && exec "$program" "$folder/$input" "$index" -o "$folder/out.npy" -j 2 "$@") &&
        judge "$input" "$index"; then
        passed=$((passed + 1))
        printf 'ok       %s %s (%d s)\n' "$title" "$*" $((SECONDS - begun))
    else
        failed=$((failed + 1))
        printf 'FAILED   %s %s\n' "$title" "$*"
    fi
}

# Drops a file from memory.
forget() {
    sync
    rm -f "$folder/out.npy"
    dd "if=$folder/$1" iflag=nocache count=0 status=none
}

make c.npy '(768, 1024, 1024)' C
for io in mmap read; do
    check "a crop of half of every row" c.npy '[:, :, 256:768]' --io "$io"
    check "every row backwards" c.npy '[:, ::-1, ::-2]' --io "$io"
    check "one column" c.npy '[:, :, 7]' --io "$io"
done
rm "$folder/c.npy"
# A page must stay until its last item was used: how long it takes outside says how well that goes.
make f.npy '(1024, 768, 1024)' F
for io in mmap read; do
    check "Fortran order to C" f.npy '[...]' --io "$io"
    forget f.npy
    check "Fortran order to C, not in memory" f.npy '[...]' --io "$io"
    forget f.npy
    begun=$SECONDS
    "$program" "$folder/f.npy" -o "$folder/out.npy" -f -q -j 2 --io "$io"
    echo "         outside the group it takes $((SECONDS - begun)) s"
done
echo "$passed passed, $failed failed"
((failed == 0))
