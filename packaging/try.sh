# What packaging/build does with a package that it has built. Each function takes the processor that the
# package is for; `$out` is the folder of the packages.

# A folder with a program `tslice` in it that runs that of another processor under qemu, or its own folder
# where it is for this machine.
runnable() { # PROGRAM PROCESSOR
    if [[ $2 == $(uname -m) ]]; then
        dirname "$1"
        return
    fi
    local folder emulator=qemu-$2-static
    command -v "$emulator" > /dev/null || { echo "$emulator is missing (apt-get install qemu-user-static)" >&2; return 1; }
    folder=$(dirname "$1")/emulated
    mkdir -p "$folder"
    # the libraries of the other processor, where the program is not static (libc6-arm64-cross)
    printf '#!/bin/sh\nexec %s -L /usr/%s-linux-gnu "%s" "$@"\n' "$emulator" "$2" "$1" > "$folder/tslice"
    chmod +x "$folder/tslice"
    echo "$folder"
}

# The main job, with the program that PATH leads to, against what it must be.
main_job() {
    local folder
    folder=$(mktemp -d)
    echo "trying $(command -v tslice): $(tslice --version)"
    tslice fixtures/cube.npy '[1, 2:4, None, ..., :-3:-1, :]' -o "$folder/out.npy"
    tslice explain "$folder/out.npy" > /dev/null
    # two rows, a new axis, all columns, the last two reversed
    tslice fixtures/cube.npy '[1]' | tslice - '[2:4]' | tslice - '[:, None, ..., :-3:-1, :]' > "$folder/again.npy"
    cmp "$folder/out.npy" "$folder/again.npy"
    rm -r "$folder"
}

# The features that are linked in, by what a program without them says.
all_features() {
    local folder said
    folder=$(mktemp -d)
    said=$(tslice http://127.0.0.1:9/none.npy -o "$folder/x.npy" 2>&1 || true)
    [[ $said == *"no connection"* ]] || { echo "without remote: $said" >&2; return 1; }
    printf '\x89HDF\r\n\x1a\n' > "$folder/a.h5"
    said=$(tslice info "$folder/a.h5" 2>&1 || true)
    [[ $said != *"--features"* ]] || { echo "without hdf5: $said" >&2; return 1; }
    mkdir "$folder/a.zarr"
    echo '{"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|u1", "order": "C", "compressor": null, "filters": null, "fill_value": 7}' \
        > "$folder/a.zarr/.zarray"
    tslice "$folder/a.zarr" --to raw -o "$folder/a.raw"
    [[ $(< "$folder/a.raw") == $'\a\a' ]] || { echo "without zarr" >&2; return 1; }
    rm -r "$folder"
}

# Both, with a program from that path.
try_program() { # PROGRAM PROCESSOR
    local folder
    folder=$(runnable "$1" "$2")
    PATH=$folder:$PATH main_job
    PATH=$folder:$PATH all_features
}

try_static() {
    local folder program
    folder=$(mktemp -d)
    tar -C "$folder" -xzf "$out"/tslice-*-"$1"-unknown-linux-musl.tar.gz
    program=$(echo "$folder"/tslice-*/tslice)
    if readelf --program-headers "$program" | grep -q INTERP; then
        echo "the program in the archive is not static" >&2
        return 1
    fi
    try_program "$program" "$1"
    rm -r "$folder"
}

# Installed by pip where it is for this machine, else unpacked.
try_wheel() {
    local folder wheel
    folder=$(mktemp -d)
    wheel=$(ls "$out"/*manylinux2014_"$1".whl)
    if [[ $1 == $(uname -m) ]]; then
        "${PYTHON:-python3}" -m venv "$folder"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
        try_program "$folder/bin/tslice" "$1"
    else
        unzip -q "$wheel" -d "$folder"
        chmod +x "$folder"/tslice-*.data/scripts/tslice
        try_program "$(echo "$folder"/tslice-*.data/scripts/tslice)" "$1"
    fi
    rm -r "$folder"
}

try_deb() {
    local package=$out/tslice_${version}_$1.deb folder
    dpkg --info "$package" | grep -E '^ (Architecture|Depends|Installed-Size):'
    if [[ $1 != $(uname -m) ]]; then
        folder=$(mktemp -d)
        dpkg -x "$package" "$folder"
        try_program "$folder/usr/bin/tslice" "$1"
        rm -r "$folder"
        return
    fi
    dpkg -i "$package"
    PATH=/usr/bin:/bin main_job
    PATH=/usr/bin:/bin all_features
    dpkg -L tslice | grep -v '/$'
    PATH=/usr/bin:/bin bash -c 'source /usr/share/bash-completion/completions/tslice && complete -p tslice'
    dpkg -r tslice
    if [[ -e /usr/bin/tslice ]]; then
        echo "dpkg -r left the program" >&2
        return 1
    fi
}

# Programs for another system can only be looked at: what they are, and whether their signature is that of
# their bytes, without which Apple's processors do not start them.
try_macos() {
    local folder program
    folder=$(mktemp -d)
    tar -C "$folder" -xzf "$out"/tslice-*-"$1"-apple-darwin.tar.gz
    program=$(echo "$folder"/tslice-*/tslice)
    file "$program" | grep 'Mach-O 64-bit .* executable'
    python3 packaging/signature.py "$program"
    rm -r "$folder"
}
