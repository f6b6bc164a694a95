#compdef tslice

autoload -U is-at-least

_tslice() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'--begin=[First positions, a comma list; '\'''\'' is the empty list]:LIST:_default' \
'--end=[One past the last positions, as long as --begin]:LIST:_default' \
'--strides=[Steps, as long as --begin; 1s when left out]:LIST:_default' \
'--begin-mask=[Bit i\: ignore begin\[i\], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)]:MASK:_default' \
'--end-mask=[Bit i\: ignore end\[i\], take the fullest range]:MASK:_default' \
'--ellipsis-mask=[Bit i\: item i is an ellipsis]:MASK:_default' \
'--new-axis-mask=[Bit i\: item i is a new axis of length 1]:MASK:_default' \
'--shrink-axis-mask=[Bit i\: item i is the integer begin\[i\], and its axis goes]:MASK:_default' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'--transpose=[Put the axes of the result in this order, as np.transpose does\: 0,3,1,2; negative axes count from the end; \`--transpose=\` reverses them]:AXES:_default' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--dtype=[The dtype of raw bytes, or of a file'\''s void type\: float32 or f32, '\''>i2'\'', bfloat16 or bf16, ...]:DTYPE:_default' \
'--shape=[The shape of raw bytes; one length may be -1; one axis when left out]:LIST:_default' \
'--offset=[Where the elements of raw bytes begin, in bytes]:BYTES:_default' \
'--input-order=[The order of the elements of raw bytes]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'-o+[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--output=[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--to=[The format of the output, whatever its name]:FORMAT:((npy\:"NumPy'\''s .npy"
npz\:"NumPy'\''s .npz"
safetensors\:".safetensors"
raw\:"The bytes of the elements alone (.bin, .raw)"
csv\:"Text, columns parted by commas"
txt\:"Text, columns parted by spaces"
json\:"Text, nested lists"))' \
'--order=[The order of the output'\''s elements (.npy, raw)]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--name=[The name of the tensor in the output (.safetensors)]:NAME:_default' \
'--part=[Write one of N parts of the output, so that several machines can share the work\: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them]:I/N:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'*--exclude=[Leave out the tensors of this name or glob; without -t all others are chosen; may be given again]:NAME:_default' \
'*--rename=[Give a tensor another name in the output; a * in OLD stands for any text, which the * in NEW carries over\: '\''model.layers.*=blk.*'\''; may be given again]:OLD=NEW:_default' \
'--keepdims[Keep the axes that integers index, with length 1]' \
'(--begin)--outer[Take each list along its own axis, as np.ix_ does]' \
'(--transpose)-T[Reverse the axes of the result, as NumPy'\''s a.T does]' \
'-f[Replace the output if it exists]' \
'--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'--deflate[Compress the arrays of the output, as np.savez_compressed does (.npz)]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'--keep-rest[Copy the tensors that -t does not choose as they are (.safetensors, .npz)]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
':input -- The file to read; `-` is standard input:_files' \
'::text -- What to select, as in NumPy\: '\''\[1, 2\:4, None, ..., \:\:-1\]'\''; everything when left out:_default' \
":: :_tslice_commands" \
"*::: :->tslice" \
&& ret=0
    case $state in
    (tslice)
        words=($line[3] "${words[@]}")
        (( CURRENT += 1 ))
        curcontext="${curcontext%:*:*}:tslice-command-$line[3]:"
        case $line[3] in
            (slice)
_arguments "${_arguments_options[@]}" : \
'--begin=[First positions, a comma list; '\'''\'' is the empty list]:LIST:_default' \
'--end=[One past the last positions, as long as --begin]:LIST:_default' \
'--strides=[Steps, as long as --begin; 1s when left out]:LIST:_default' \
'--begin-mask=[Bit i\: ignore begin\[i\], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)]:MASK:_default' \
'--end-mask=[Bit i\: ignore end\[i\], take the fullest range]:MASK:_default' \
'--ellipsis-mask=[Bit i\: item i is an ellipsis]:MASK:_default' \
'--new-axis-mask=[Bit i\: item i is a new axis of length 1]:MASK:_default' \
'--shrink-axis-mask=[Bit i\: item i is the integer begin\[i\], and its axis goes]:MASK:_default' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'--transpose=[Put the axes of the result in this order, as np.transpose does\: 0,3,1,2; negative axes count from the end; \`--transpose=\` reverses them]:AXES:_default' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--dtype=[The dtype of raw bytes, or of a file'\''s void type\: float32 or f32, '\''>i2'\'', bfloat16 or bf16, ...]:DTYPE:_default' \
'--shape=[The shape of raw bytes; one length may be -1; one axis when left out]:LIST:_default' \
'--offset=[Where the elements of raw bytes begin, in bytes]:BYTES:_default' \
'--input-order=[The order of the elements of raw bytes]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'-o+[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--output=[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--to=[The format of the output, whatever its name]:FORMAT:((npy\:"NumPy'\''s .npy"
npz\:"NumPy'\''s .npz"
safetensors\:".safetensors"
raw\:"The bytes of the elements alone (.bin, .raw)"
csv\:"Text, columns parted by commas"
txt\:"Text, columns parted by spaces"
json\:"Text, nested lists"))' \
'--order=[The order of the output'\''s elements (.npy, raw)]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--name=[The name of the tensor in the output (.safetensors)]:NAME:_default' \
'--part=[Write one of N parts of the output, so that several machines can share the work\: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them]:I/N:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'*--exclude=[Leave out the tensors of this name or glob; without -t all others are chosen; may be given again]:NAME:_default' \
'*--rename=[Give a tensor another name in the output; a * in OLD stands for any text, which the * in NEW carries over\: '\''model.layers.*=blk.*'\''; may be given again]:OLD=NEW:_default' \
'--keepdims[Keep the axes that integers index, with length 1]' \
'(--begin)--outer[Take each list along its own axis, as np.ix_ does]' \
'(--transpose)-T[Reverse the axes of the result, as NumPy'\''s a.T does]' \
'-f[Replace the output if it exists]' \
'--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'--deflate[Compress the arrays of the output, as np.savez_compressed does (.npz)]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'--keep-rest[Copy the tensors that -t does not choose as they are (.safetensors, .npz)]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':input -- The file to read; `-` is standard input:_files' \
'::text -- What to select, as in NumPy\: '\''\[1, 2\:4, None, ..., \:\:-1\]'\''; everything when left out:_default' \
&& ret=0
;;
(gather)
_arguments "${_arguments_options[@]}" : \
'--indices=[The positions\: a file of integers, also as text (.txt, .csv), \`-\` for standard input, or a list\: '\''\[\[0, 1\], \[2, 3\]\]'\'']:FILE:_files' \
'--axis=[Gather along this axis, each index by itself; negative values count from the end]:AXIS:_default' \
'--batch-dims=[The first axes of params and indices go together, so many of them; with --axis, a negative number counts from the rank of the indices]:N:_default' \
'--out-of-range=[What becomes of indices out of range]:WHAT:((error\:"It is an error that names the first one"
zero\:"Its slice is zeros (TensorFlow on GPU)"
clip\:"It is the nearest position, 0 for a negative one (NumPy'\''s mode)"
wrap\:"It counts on from the other end (NumPy'\''s mode)"))' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'--transpose=[Put the axes of the result in this order, as np.transpose does\: 0,3,1,2; negative axes count from the end; \`--transpose=\` reverses them]:AXES:_default' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'-t+[The tensor to gather from, in a file of several]:NAME:_default' \
'--tensor=[The tensor to gather from, in a file of several]:NAME:_default' \
'--indices-tensor=[The tensor of the indices, in a file of several]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'-o+[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--output=[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--to=[The format of the output, whatever its name]:FORMAT:((npy\:"NumPy'\''s .npy"
npz\:"NumPy'\''s .npz"
safetensors\:".safetensors"
raw\:"The bytes of the elements alone (.bin, .raw)"
csv\:"Text, columns parted by commas"
txt\:"Text, columns parted by spaces"
json\:"Text, nested lists"))' \
'--order=[The order of the output'\''s elements (.npy, raw)]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--name=[The name of the tensor in the output (.safetensors)]:NAME:_default' \
'--part=[Write one of N parts of the output, so that several machines can share the work\: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them]:I/N:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'(--batch-dims --negative)--elements[With --axis\: one element for each index, as np.take_along_axis; the indices have the rank of the params, and negative ones count from the end]' \
'--negative[Negative indices count from the end, as in np.take; without it they are out of range]' \
'(--transpose)-T[Reverse the axes of the result, as NumPy'\''s a.T does]' \
'-f[Replace the output if it exists]' \
'--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'--deflate[Compress the arrays of the output, as np.savez_compressed does (.npz)]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::params -- The file to gather from; standard input when left out or `-`:_files' \
&& ret=0
;;
(assign)
_arguments "${_arguments_options[@]}" : \
'--value=[The file whose elements are written, of the slice'\''s shape; \`-\` is standard input]:FILE:_files' \
'(--cast)--fill=[A number that is written everywhere\: -1, 0x10, 1.5e-3, nan, -inf, 1+2j, true]:NUMBER:_default' \
'(--fill)--value-tensor=[The tensor to take, in a value file of several]:NAME:_default' \
'--begin=[First positions, a comma list; '\'''\'' is the empty list]:LIST:_default' \
'--end=[One past the last positions, as long as --begin]:LIST:_default' \
'--strides=[Steps, as long as --begin; 1s when left out]:LIST:_default' \
'--begin-mask=[Bit i\: ignore begin\[i\], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)]:MASK:_default' \
'--end-mask=[Bit i\: ignore end\[i\], take the fullest range]:MASK:_default' \
'--ellipsis-mask=[Bit i\: item i is an ellipsis]:MASK:_default' \
'--new-axis-mask=[Bit i\: item i is a new axis of length 1]:MASK:_default' \
'--shrink-axis-mask=[Bit i\: item i is the integer begin\[i\], and its axis goes]:MASK:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'-o+[The file to write, a copy of TARGET with the change in it]:FILE:_files' \
'--output=[The file to write, a copy of TARGET with the change in it]:FILE:_files' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'(--fill)--broadcast[Stretch the value to the slice'\''s shape, as NumPy does]' \
'--keepdims[Keep the axes that integers index, with length 1]' \
'(--begin)--outer[Take each list along its own axis, as np.ix_ does]' \
'--in-place[Change TARGET itself]' \
'(--in-place)-f[Replace the output if it exists]' \
'(--in-place)--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':target -- The file to change:_files' \
'::text -- Where to write, as in NumPy\: '\''\[1, 2\:4, ..., \:\:-1\]'\''; everywhere when left out:_default' \
&& ret=0
;;
(scatter)
_arguments "${_arguments_options[@]}" : \
'--indices=[The positions\: a file of integers, also as text (.txt, .csv), \`-\` for standard input, or a list\: '\''\[\[0, 1\], \[2, 3\]\]'\'']:FILE:_files' \
'--values=[The file whose slices are written; \`-\` is standard input]:FILE:_files' \
'--axis=[With --elements\: the axis of the positions; negative values count from the end]:AXIS:_default' \
'--out-of-range=[What becomes of positions out of range, negative ones included]:WHAT:((error\:"It is an error that names the first one"
skip\:"Nothing is written there"))' \
'--indices-tensor=[The tensor of the indices, in a file of several]:NAME:_default' \
'--values-tensor=[The tensor of the values, in a file of several]:NAME:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'-o+[The file to write, a copy of TARGET with the change in it]:FILE:_files' \
'--output=[The file to write, a copy of TARGET with the change in it]:FILE:_files' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--elements[One element for each index, as np.put_along_axis; the indices have the rank of the target, negative ones count from the end, and the values are broadcast]' \
'--in-place[Change TARGET itself]' \
'(--in-place)-f[Replace the output if it exists]' \
'(--in-place)--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':target -- The file to change:_files' \
&& ret=0
;;
(concat)
_arguments "${_arguments_options[@]}" : \
'--files-from=[Read the names of the inputs from a file, one a line; \`-\` is standard input]:FILE:_files' \
'*--axis=[The axis to join along; a negative one counts from the end; 0 when left out. With a name or glob before it the axis of those tensors, which may be given again\: --axis '\''*.o_proj.weight=1'\'']:[NAME=]AXIS:_default' \
'--index=[What to take of every input before it is joined, as in NumPy\: '\''\[1, 2\:4, ..., \:\:-1\]'\'']:INDEX:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--dtype=[The dtype of raw bytes, or of a file'\''s void type\: float32 or f32, '\''>i2'\'', bfloat16 or bf16, ...]:DTYPE:_default' \
'--shape=[The shape of raw bytes; one length may be -1; one axis when left out]:LIST:_default' \
'--offset=[Where the elements of raw bytes begin, in bytes]:BYTES:_default' \
'--input-order=[The order of the elements of raw bytes]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'-o+[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--output=[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--to=[The format of the output, whatever its name]:FORMAT:((npy\:"NumPy'\''s .npy"
npz\:"NumPy'\''s .npz"
safetensors\:".safetensors"
raw\:"The bytes of the elements alone (.bin, .raw)"
csv\:"Text, columns parted by commas"
txt\:"Text, columns parted by spaces"
json\:"Text, nested lists"))' \
'--order=[The order of the output'\''s elements (.npy, raw)]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--name=[The name of the tensor in the output (.safetensors)]:NAME:_default' \
'--part=[Write one of N parts of the output, so that several machines can share the work\: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them]:I/N:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'-0[The names of --files-from end with NUL bytes, as find -print0 writes them]' \
'--null[The names of --files-from end with NUL bytes, as find -print0 writes them]' \
'--keepdims[Keep the axes that integers of --index select, with length 1]' \
'--outer[Take each list of --index along its own axis, as np.ix_ does]' \
'-f[Replace the output if it exists]' \
'--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'--deflate[Compress the arrays of the output, as np.savez_compressed does (.npz)]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'--keep-rest[Take the tensors that -t does not choose once; they must be the same in all inputs]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::inputs -- The files to join, in this order; `-` is standard input:_files' \
&& ret=0
;;
(stack)
_arguments "${_arguments_options[@]}" : \
'--files-from=[Read the names of the inputs from a file, one a line; \`-\` is standard input]:FILE:_files' \
'*--axis=[The axis to join along; a negative one counts from the end; 0 when left out. With a name or glob before it the axis of those tensors, which may be given again\: --axis '\''*.o_proj.weight=1'\'']:[NAME=]AXIS:_default' \
'--index=[What to take of every input before it is joined, as in NumPy\: '\''\[1, 2\:4, ..., \:\:-1\]'\'']:INDEX:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--dtype=[The dtype of raw bytes, or of a file'\''s void type\: float32 or f32, '\''>i2'\'', bfloat16 or bf16, ...]:DTYPE:_default' \
'--shape=[The shape of raw bytes; one length may be -1; one axis when left out]:LIST:_default' \
'--offset=[Where the elements of raw bytes begin, in bytes]:BYTES:_default' \
'--input-order=[The order of the elements of raw bytes]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'-o+[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--output=[The file to write, its format by its name; standard output when left out or \`-\`]:FILE:_files' \
'--to=[The format of the output, whatever its name]:FORMAT:((npy\:"NumPy'\''s .npy"
npz\:"NumPy'\''s .npz"
safetensors\:".safetensors"
raw\:"The bytes of the elements alone (.bin, .raw)"
csv\:"Text, columns parted by commas"
txt\:"Text, columns parted by spaces"
json\:"Text, nested lists"))' \
'--order=[The order of the output'\''s elements (.npy, raw)]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--name=[The name of the tensor in the output (.safetensors)]:NAME:_default' \
'--part=[Write one of N parts of the output, so that several machines can share the work\: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them]:I/N:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'-0[The names of --files-from end with NUL bytes, as find -print0 writes them]' \
'--null[The names of --files-from end with NUL bytes, as find -print0 writes them]' \
'--keepdims[Keep the axes that integers of --index select, with length 1]' \
'--outer[Take each list of --index along its own axis, as np.ix_ does]' \
'-f[Replace the output if it exists]' \
'--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'--deflate[Compress the arrays of the output, as np.savez_compressed does (.npz)]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'--keep-rest[Take the tensors that -t does not choose once; they must be the same in all inputs]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'*::inputs -- The files to join, in this order; `-` is standard input:_files' \
&& ret=0
;;
(split)
_arguments "${_arguments_options[@]}" : \
'--parts=[Cut into N parts, the first ones longer where they cannot be equal (np.array_split)]:N:_default' \
'--sizes=[Cut into parts of these lengths, which must add up to that of the axis]:LIST:_default' \
'--at=[Cut before these positions (np.split)]:LIST:_default' \
'--every=[Cut into parts of N positions; the last one may be shorter]:N:_default' \
'*--axis=[The axis to cut; a negative one counts from the end; 0 when left out. With a name or glob before it the axis of those tensors, which may be given again\: --axis '\''*.o_proj.weight=1'\'']:[NAME=]AXIS:_default' \
'--begin=[First positions, a comma list; '\'''\'' is the empty list]:LIST:_default' \
'--end=[One past the last positions, as long as --begin]:LIST:_default' \
'--strides=[Steps, as long as --begin; 1s when left out]:LIST:_default' \
'--begin-mask=[Bit i\: ignore begin\[i\], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)]:MASK:_default' \
'--end-mask=[Bit i\: ignore end\[i\], take the fullest range]:MASK:_default' \
'--ellipsis-mask=[Bit i\: item i is an ellipsis]:MASK:_default' \
'--new-axis-mask=[Bit i\: item i is a new axis of length 1]:MASK:_default' \
'--shrink-axis-mask=[Bit i\: item i is the integer begin\[i\], and its axis goes]:MASK:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--dtype=[The dtype of raw bytes, or of a file'\''s void type\: float32 or f32, '\''>i2'\'', bfloat16 or bf16, ...]:DTYPE:_default' \
'--shape=[The shape of raw bytes; one length may be -1; one axis when left out]:LIST:_default' \
'--offset=[Where the elements of raw bytes begin, in bytes]:BYTES:_default' \
'--input-order=[The order of the elements of raw bytes]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'*--cast=[Convert elements to this dtype, as NumPy'\''s astype does\: bfloat16, float8_e4m3fn, '\''>i2'\'', ...; with FROM only those of that dtype; may be given again]:[FROM:]DTYPE:_default' \
'--casting=[Which casts are allowed]:RULE:((safe\:"Only those that keep every value"
same-kind\:"Those and casts within a kind, such as float64 to float32 (the default)"
unsafe\:"All\: from float to integer the nearest end of the range where the number is out of it, 0 for NaN"))' \
'--to=[The format of the output, whatever its name]:FORMAT:((npy\:"NumPy'\''s .npy"
npz\:"NumPy'\''s .npz"
safetensors\:".safetensors"
raw\:"The bytes of the elements alone (.bin, .raw)"
csv\:"Text, columns parted by commas"
txt\:"Text, columns parted by spaces"
json\:"Text, nested lists"))' \
'--order=[The order of the output'\''s elements (.npy, raw)]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'--name=[The name of the tensor in the output (.safetensors)]:NAME:_default' \
'--part=[Write one of N parts of the output, so that several machines can share the work\: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them]:I/N:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'-o+[The files to write\: {} stands for the number of the part, from 0 on, {\:04} for four digits]:PATTERN:_files' \
'--output=[The files to write\: {} stands for the number of the part, from 0 on, {\:04} for four digits]:PATTERN:_files' \
'--keepdims[Keep the axes that integers index, with length 1]' \
'(--begin)--outer[Take each list along its own axis, as np.ix_ does]' \
'-f[Replace the output if it exists]' \
'--force[Replace the output if it exists]' \
'--fsync[Wait until the disk has the output]' \
'--deflate[Compress the arrays of the output, as np.savez_compressed does (.npz)]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'--keep-rest[Copy the tensors that -t does not choose to every output (.safetensors, .npz)]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':input -- The file to split; `-` is standard input:_files' \
'::text -- What to select before it is cut, as in NumPy\: '\''\[1, 2\:4, ..., \:\:-1\]'\''; everything when left out:_default' \
&& ret=0
;;
(view)
_arguments "${_arguments_options[@]}" : \
'--begin=[First positions, a comma list; '\'''\'' is the empty list]:LIST:_default' \
'--end=[One past the last positions, as long as --begin]:LIST:_default' \
'--strides=[Steps, as long as --begin; 1s when left out]:LIST:_default' \
'--begin-mask=[Bit i\: ignore begin\[i\], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)]:MASK:_default' \
'--end-mask=[Bit i\: ignore end\[i\], take the fullest range]:MASK:_default' \
'--ellipsis-mask=[Bit i\: item i is an ellipsis]:MASK:_default' \
'--new-axis-mask=[Bit i\: item i is a new axis of length 1]:MASK:_default' \
'--shrink-axis-mask=[Bit i\: item i is the integer begin\[i\], and its axis goes]:MASK:_default' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'--transpose=[Put the axes of the result in this order, as np.transpose does\: 0,3,1,2; negative axes count from the end; \`--transpose=\` reverses them]:AXES:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--dtype=[The dtype of raw bytes, or of a file'\''s void type\: float32 or f32, '\''>i2'\'', bfloat16 or bf16, ...]:DTYPE:_default' \
'--shape=[The shape of raw bytes; one length may be -1; one axis when left out]:LIST:_default' \
'--offset=[Where the elements of raw bytes begin, in bytes]:BYTES:_default' \
'--input-order=[The order of the elements of raw bytes]:ORDER:((C\:"Row-major"
F\:"Column-major, Fortran'\''s"))' \
'(--full)--edge=[How many items to print at each end of an axis whose middle is left out \[default\: 3\]]:N:_default' \
'--precision=[The most digits behind the point \[default\: 8\]]:N:_default' \
'(--full --edge --precision --stats)-o+[Write a picture\: two axes in colours, (H, W, 3 or 4) of uint8 as it is, more axes as a contact sheet; one pixel an element]:PICTURE.png:_files' \
'(--full --edge --precision --stats)--output=[Write a picture\: two axes in colours, (H, W, 3 or 4) of uint8 as it is, more axes as a contact sheet; one pixel an element]:PICTURE.png:_files' \
'--colormap=[The colours \[default\: viridis\]]:NAME:(viridis magma inferno plasma cividis gray turbo rdbu)' \
'--range=[The numbers at the ends of the colours, or percentiles\: 0,1 or p1,p99; the smallest and the largest when left out]:LO,HI:_default' \
'--width=[Pixels a row\: means of elements, or elements repeated]:PIXELS:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--keepdims[Keep the axes that integers index, with length 1]' \
'(--begin)--outer[Take each list along its own axis, as np.ix_ does]' \
'(--transpose)-T[Reverse the axes of the result, as NumPy'\''s a.T does]' \
'--full[Print all values; above 1000 elements, the middle of long axes is left out otherwise]' \
'(--full --edge --precision)--stats[Print statistics\: extremes and their places, mean, deviation, quantiles, a histogram]' \
'--json[Print the statistics as JSON]' \
'(--full --edge --precision --stats -o --output)--image[Draw the picture in the terminal, with half blocks]' \
'-f[Replace the picture if it exists]' \
'--force[Replace the picture if it exists]' \
'--fsync[Wait until the disk has the picture]' \
'-n[Check everything, print what would be written, write nothing]' \
'--dry-run[Check everything, print what would be written, write nothing]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':input -- The file to look at; `-` is standard input:_files' \
'::text -- What to look at, as in NumPy\: '\''\[0, \:\:-1\]'\''; everything when left out:_default' \
&& ret=0
;;
(diff)
_arguments "${_arguments_options[@]}" : \
'--begin=[First positions, a comma list; '\'''\'' is the empty list]:LIST:_default' \
'--end=[One past the last positions, as long as --begin]:LIST:_default' \
'--strides=[Steps, as long as --begin; 1s when left out]:LIST:_default' \
'--begin-mask=[Bit i\: ignore begin\[i\], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)]:MASK:_default' \
'--end-mask=[Bit i\: ignore end\[i\], take the fullest range]:MASK:_default' \
'--ellipsis-mask=[Bit i\: item i is an ellipsis]:MASK:_default' \
'--new-axis-mask=[Bit i\: item i is a new axis of length 1]:MASK:_default' \
'--shrink-axis-mask=[Bit i\: item i is the integer begin\[i\], and its axis goes]:MASK:_default' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--atol=[Elements are the same up to this difference; 0 when only --rtol is given]:NUMBER:_default' \
'--rtol=[Elements are the same up to this part of the absolute value in B; 0 when only --atol is given]:NUMBER:_default' \
'-j+[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--threads=[How many threads work; as many as the machine has cores when left out]:N:_default' \
'--keepdims[Keep the axes that integers index, with length 1]' \
'(--begin)--outer[Take each list along its own axis, as np.ix_ does]' \
'--equal-nan[NaN is the same as any NaN]' \
'--json[Print JSON]' \
'-q[Show no progress]' \
'--quiet[Show no progress]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
':first -- A file; `-` is standard input:_files' \
':second -- The file to compare it with:_files' \
'::text -- What to compare of both, as in NumPy\: '\''\[0, \:\:-1\]'\''; everything when left out:_default' \
&& ret=0
;;
(info)
_arguments "${_arguments_options[@]}" : \
'*-t+[Show the tensors of this name or glob only; may be given again]:NAME:_default' \
'*--tensor=[Show the tensors of this name or glob only; may be given again]:NAME:_default' \
'--json[Print JSON]' \
'-h[Print help]' \
'--help[Print help]' \
'*::inputs -- The files to look at; `-` is standard input:_files' \
&& ret=0
;;
(explain)
_arguments "${_arguments_options[@]}" : \
'--begin=[First positions, a comma list; '\'''\'' is the empty list]:LIST:_default' \
'--end=[One past the last positions, as long as --begin]:LIST:_default' \
'--strides=[Steps, as long as --begin; 1s when left out]:LIST:_default' \
'--begin-mask=[Bit i\: ignore begin\[i\], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)]:MASK:_default' \
'--end-mask=[Bit i\: ignore end\[i\], take the fullest range]:MASK:_default' \
'--ellipsis-mask=[Bit i\: item i is an ellipsis]:MASK:_default' \
'--new-axis-mask=[Bit i\: item i is a new axis of length 1]:MASK:_default' \
'--shrink-axis-mask=[Bit i\: item i is the integer begin\[i\], and its axis goes]:MASK:_default' \
'--field=[Take this field of a structured dtype before the index is applied\: \`x\`; \`pos.x\` for a field of a field; \`x,y\` for several, packed into a structure]:NAME:_default' \
'--transpose=[Put the axes of the result in this order, as np.transpose does\: 0,3,1,2; negative axes count from the end; \`--transpose=\` reverses them]:AXES:_default' \
'(--io)--shape=[Explain against this shape, without a file]:LIST:_default' \
'*-t+[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'*--tensor=[The tensor to take, in a file of several\: a name or a glob; may be given again]:NAME:_default' \
'--io=[How to read\: map local files, or read by position (for network file systems)]:HOW:((auto\:"Map local files, read those of network file systems"
mmap\:"Map the file"
read\:"Read the file by position, in large pieces"))' \
'--keepdims[Keep the axes that integers index, with length 1]' \
'(--begin)--outer[Take each list along its own axis, as np.ix_ does]' \
'(--transpose)-T[Reverse the axes of the result, as NumPy'\''s a.T does]' \
'--json[Print JSON]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'::input -- The file whose shape counts, or with --shape the index itself:_default' \
'::text -- The index, as in NumPy; everything when left out:_default' \
&& ret=0
;;
(completions)
_arguments "${_arguments_options[@]}" : \
'-h[Print help]' \
'--help[Print help]' \
':shell -- The shell:(bash elvish fish powershell zsh)' \
&& ret=0
;;
        esac
    ;;
esac
}

(( $+functions[_tslice_commands] )) ||
_tslice_commands() {
    local commands; commands=(
'slice:Write the selected elements of a tensor to a new file (the default)' \
'gather:Take the slices that an index tensor names (gather_nd; with --axis gather)' \
'assign:Write a value into a slice of a tensor\: TARGET\[INDEX\] = VALUE' \
'scatter:Write slices at the positions that an index tensor names (TensorScatterUpdate)' \
'concat:Join tensors along an axis that they have (np.concatenate)' \
'stack:Join tensors of one shape along a new axis (np.stack)' \
'split:Cut a tensor into several files along an axis (np.array_split, np.split)' \
'view:Print values as NumPy prints them' \
'diff:Tell whether two files hold the same, and where not' \
'info:Show what is in files\: names, dtypes, shapes' \
'explain:Show what an index means, in NumPy'\''s words and as StridedSlice'\''s numbers' \
'completions:Print a completion script for a shell' \
    )
    _describe -t commands 'tslice commands' commands "$@"
}
(( $+functions[_tslice__subcmd__assign_commands] )) ||
_tslice__subcmd__assign_commands() {
    local commands; commands=()
    _describe -t commands 'tslice assign commands' commands "$@"
}
(( $+functions[_tslice__subcmd__completions_commands] )) ||
_tslice__subcmd__completions_commands() {
    local commands; commands=()
    _describe -t commands 'tslice completions commands' commands "$@"
}
(( $+functions[_tslice__subcmd__concat_commands] )) ||
_tslice__subcmd__concat_commands() {
    local commands; commands=()
    _describe -t commands 'tslice concat commands' commands "$@"
}
(( $+functions[_tslice__subcmd__diff_commands] )) ||
_tslice__subcmd__diff_commands() {
    local commands; commands=()
    _describe -t commands 'tslice diff commands' commands "$@"
}
(( $+functions[_tslice__subcmd__explain_commands] )) ||
_tslice__subcmd__explain_commands() {
    local commands; commands=()
    _describe -t commands 'tslice explain commands' commands "$@"
}
(( $+functions[_tslice__subcmd__gather_commands] )) ||
_tslice__subcmd__gather_commands() {
    local commands; commands=()
    _describe -t commands 'tslice gather commands' commands "$@"
}
(( $+functions[_tslice__subcmd__info_commands] )) ||
_tslice__subcmd__info_commands() {
    local commands; commands=()
    _describe -t commands 'tslice info commands' commands "$@"
}
(( $+functions[_tslice__subcmd__scatter_commands] )) ||
_tslice__subcmd__scatter_commands() {
    local commands; commands=()
    _describe -t commands 'tslice scatter commands' commands "$@"
}
(( $+functions[_tslice__subcmd__slice_commands] )) ||
_tslice__subcmd__slice_commands() {
    local commands; commands=()
    _describe -t commands 'tslice slice commands' commands "$@"
}
(( $+functions[_tslice__subcmd__split_commands] )) ||
_tslice__subcmd__split_commands() {
    local commands; commands=()
    _describe -t commands 'tslice split commands' commands "$@"
}
(( $+functions[_tslice__subcmd__stack_commands] )) ||
_tslice__subcmd__stack_commands() {
    local commands; commands=()
    _describe -t commands 'tslice stack commands' commands "$@"
}
(( $+functions[_tslice__subcmd__view_commands] )) ||
_tslice__subcmd__view_commands() {
    local commands; commands=()
    _describe -t commands 'tslice view commands' commands "$@"
}

if [ "$funcstack[1]" = "_tslice" ]; then
    _tslice "$@"
else
    compdef _tslice tslice
fi
