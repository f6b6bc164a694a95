# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_tslice_global_optspecs
    string join \n begin= end= strides= begin-mask= end-mask= ellipsis-mask= new-axis-mask= shrink-axis-mask= keepdims outer field= transpose= T cast= casting= t/tensor= io= dtype= shape= offset= input-order= o/output= to= f/force fsync deflate order= name= part= j/threads= n/dry-run q/quiet exclude= keep-rest rename= h/help V/version
end

function __fish_tslice_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_tslice_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_tslice_using_subcommand
    set -l cmd (__fish_tslice_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c tslice -n "__fish_tslice_needs_command" -l begin -d 'First positions, a comma list; \'\' is the empty list' -r
complete -c tslice -n "__fish_tslice_needs_command" -l end -d 'One past the last positions, as long as --begin' -r
complete -c tslice -n "__fish_tslice_needs_command" -l strides -d 'Steps, as long as --begin; 1s when left out' -r
complete -c tslice -n "__fish_tslice_needs_command" -l begin-mask -d 'Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)' -r
complete -c tslice -n "__fish_tslice_needs_command" -l end-mask -d 'Bit i: ignore end[i], take the fullest range' -r
complete -c tslice -n "__fish_tslice_needs_command" -l ellipsis-mask -d 'Bit i: item i is an ellipsis' -r
complete -c tslice -n "__fish_tslice_needs_command" -l new-axis-mask -d 'Bit i: item i is a new axis of length 1' -r
complete -c tslice -n "__fish_tslice_needs_command" -l shrink-axis-mask -d 'Bit i: item i is the integer begin[i], and its axis goes' -r
complete -c tslice -n "__fish_tslice_needs_command" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_needs_command" -l transpose -d 'Put the axes of the result in this order, as np.transpose does: 0,3,1,2; negative axes count from the end; `--transpose=` reverses them' -r
complete -c tslice -n "__fish_tslice_needs_command" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_needs_command" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_needs_command" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_needs_command" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_needs_command" -l dtype -d 'The dtype of raw bytes, or of a file\'s void type: float32 or f32, \'>i2\', bfloat16 or bf16, ...' -r
complete -c tslice -n "__fish_tslice_needs_command" -l shape -d 'The shape of raw bytes; one length may be -1; one axis when left out' -r
complete -c tslice -n "__fish_tslice_needs_command" -l offset -d 'Where the elements of raw bytes begin, in bytes' -r
complete -c tslice -n "__fish_tslice_needs_command" -l input-order -d 'The order of the elements of raw bytes' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_needs_command" -s o -l output -d 'The file to write, its format by its name; standard output when left out or `-`' -r -F
complete -c tslice -n "__fish_tslice_needs_command" -l to -d 'The format of the output, whatever its name' -r -f -a "npy\t'NumPy\'s .npy'
npz\t'NumPy\'s .npz'
safetensors\t'.safetensors'
raw\t'The bytes of the elements alone (.bin, .raw)'
csv\t'Text, columns parted by commas'
txt\t'Text, columns parted by spaces'
json\t'Text, nested lists'"
complete -c tslice -n "__fish_tslice_needs_command" -l order -d 'The order of the output\'s elements (.npy, raw)' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_needs_command" -l name -d 'The name of the tensor in the output (.safetensors)' -r
complete -c tslice -n "__fish_tslice_needs_command" -l part -d 'Write one of N parts of the output, so that several machines can share the work: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them' -r
complete -c tslice -n "__fish_tslice_needs_command" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_needs_command" -l exclude -d 'Leave out the tensors of this name or glob; without -t all others are chosen; may be given again' -r
complete -c tslice -n "__fish_tslice_needs_command" -l rename -d 'Give a tensor another name in the output; a * in OLD stands for any text, which the * in NEW carries over: \'model.layers.*=blk.*\'; may be given again' -r
complete -c tslice -n "__fish_tslice_needs_command" -l keepdims -d 'Keep the axes that integers index, with length 1'
complete -c tslice -n "__fish_tslice_needs_command" -l outer -d 'Take each list along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_needs_command" -s T -d 'Reverse the axes of the result, as NumPy\'s a.T does'
complete -c tslice -n "__fish_tslice_needs_command" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_needs_command" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_needs_command" -l deflate -d 'Compress the arrays of the output, as np.savez_compressed does (.npz)'
complete -c tslice -n "__fish_tslice_needs_command" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_needs_command" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_needs_command" -l keep-rest -d 'Copy the tensors that -t does not choose as they are (.safetensors, .npz)'
complete -c tslice -n "__fish_tslice_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_needs_command" -s V -l version -d 'Print version'
complete -c tslice -n "__fish_tslice_needs_command" -a "slice" -d 'Write the selected elements of a tensor to a new file (the default)'
complete -c tslice -n "__fish_tslice_needs_command" -a "gather" -d 'Take the slices that an index tensor names (gather_nd; with --axis gather)'
complete -c tslice -n "__fish_tslice_needs_command" -a "assign" -d 'Write a value into a slice of a tensor: TARGET[INDEX] = VALUE'
complete -c tslice -n "__fish_tslice_needs_command" -a "scatter" -d 'Write slices at the positions that an index tensor names (TensorScatterUpdate)'
complete -c tslice -n "__fish_tslice_needs_command" -a "concat" -d 'Join tensors along an axis that they have (np.concatenate)'
complete -c tslice -n "__fish_tslice_needs_command" -a "stack" -d 'Join tensors of one shape along a new axis (np.stack)'
complete -c tslice -n "__fish_tslice_needs_command" -a "split" -d 'Cut a tensor into several files along an axis (np.array_split, np.split)'
complete -c tslice -n "__fish_tslice_needs_command" -a "view" -d 'Print values as NumPy prints them'
complete -c tslice -n "__fish_tslice_needs_command" -a "diff" -d 'Tell whether two files hold the same, and where not'
complete -c tslice -n "__fish_tslice_needs_command" -a "info" -d 'Show what is in files: names, dtypes, shapes'
complete -c tslice -n "__fish_tslice_needs_command" -a "explain" -d 'Show what an index means, in NumPy\'s words and as StridedSlice\'s numbers'
complete -c tslice -n "__fish_tslice_needs_command" -a "completions" -d 'Print a completion script for a shell'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l begin -d 'First positions, a comma list; \'\' is the empty list' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l end -d 'One past the last positions, as long as --begin' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l strides -d 'Steps, as long as --begin; 1s when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l begin-mask -d 'Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l end-mask -d 'Bit i: ignore end[i], take the fullest range' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l ellipsis-mask -d 'Bit i: item i is an ellipsis' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l new-axis-mask -d 'Bit i: item i is a new axis of length 1' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l shrink-axis-mask -d 'Bit i: item i is the integer begin[i], and its axis goes' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l transpose -d 'Put the axes of the result in this order, as np.transpose does: 0,3,1,2; negative axes count from the end; `--transpose=` reverses them' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l dtype -d 'The dtype of raw bytes, or of a file\'s void type: float32 or f32, \'>i2\', bfloat16 or bf16, ...' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l shape -d 'The shape of raw bytes; one length may be -1; one axis when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l offset -d 'Where the elements of raw bytes begin, in bytes' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l input-order -d 'The order of the elements of raw bytes' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s o -l output -d 'The file to write, its format by its name; standard output when left out or `-`' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l to -d 'The format of the output, whatever its name' -r -f -a "npy\t'NumPy\'s .npy'
npz\t'NumPy\'s .npz'
safetensors\t'.safetensors'
raw\t'The bytes of the elements alone (.bin, .raw)'
csv\t'Text, columns parted by commas'
txt\t'Text, columns parted by spaces'
json\t'Text, nested lists'"
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l order -d 'The order of the output\'s elements (.npy, raw)' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l name -d 'The name of the tensor in the output (.safetensors)' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l part -d 'Write one of N parts of the output, so that several machines can share the work: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l exclude -d 'Leave out the tensors of this name or glob; without -t all others are chosen; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l rename -d 'Give a tensor another name in the output; a * in OLD stands for any text, which the * in NEW carries over: \'model.layers.*=blk.*\'; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l keepdims -d 'Keep the axes that integers index, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l outer -d 'Take each list along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s T -d 'Reverse the axes of the result, as NumPy\'s a.T does'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l deflate -d 'Compress the arrays of the output, as np.savez_compressed does (.npz)'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -l keep-rest -d 'Copy the tensors that -t does not choose as they are (.safetensors, .npz)'
complete -c tslice -n "__fish_tslice_using_subcommand slice" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l indices -d 'The positions: a file of integers, also as text (.txt, .csv), `-` for standard input, or a list: \'[[0, 1], [2, 3]]\'' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l axis -d 'Gather along this axis, each index by itself; negative values count from the end' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l batch-dims -d 'The first axes of params and indices go together, so many of them; with --axis, a negative number counts from the rank of the indices' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l out-of-range -d 'What becomes of indices out of range' -r -f -a "error\t'It is an error that names the first one'
zero\t'Its slice is zeros (TensorFlow on GPU)'
clip\t'It is the nearest position, 0 for a negative one (NumPy\'s mode)'
wrap\t'It counts on from the other end (NumPy\'s mode)'"
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l transpose -d 'Put the axes of the result in this order, as np.transpose does: 0,3,1,2; negative axes count from the end; `--transpose=` reverses them' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s t -l tensor -d 'The tensor to gather from, in a file of several' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l indices-tensor -d 'The tensor of the indices, in a file of several' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s o -l output -d 'The file to write, its format by its name; standard output when left out or `-`' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l to -d 'The format of the output, whatever its name' -r -f -a "npy\t'NumPy\'s .npy'
npz\t'NumPy\'s .npz'
safetensors\t'.safetensors'
raw\t'The bytes of the elements alone (.bin, .raw)'
csv\t'Text, columns parted by commas'
txt\t'Text, columns parted by spaces'
json\t'Text, nested lists'"
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l order -d 'The order of the output\'s elements (.npy, raw)' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l name -d 'The name of the tensor in the output (.safetensors)' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l part -d 'Write one of N parts of the output, so that several machines can share the work: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l elements -d 'With --axis: one element for each index, as np.take_along_axis; the indices have the rank of the params, and negative ones count from the end'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l negative -d 'Negative indices count from the end, as in np.take; without it they are out of range'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s T -d 'Reverse the axes of the result, as NumPy\'s a.T does'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -l deflate -d 'Compress the arrays of the output, as np.savez_compressed does (.npz)'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand gather" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l value -d 'The file whose elements are written, of the slice\'s shape; `-` is standard input' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l fill -d 'A number that is written everywhere: -1, 0x10, 1.5e-3, nan, -inf, 1+2j, true' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l value-tensor -d 'The tensor to take, in a value file of several' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l begin -d 'First positions, a comma list; \'\' is the empty list' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l end -d 'One past the last positions, as long as --begin' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l strides -d 'Steps, as long as --begin; 1s when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l begin-mask -d 'Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l end-mask -d 'Bit i: ignore end[i], take the fullest range' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l ellipsis-mask -d 'Bit i: item i is an ellipsis' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l new-axis-mask -d 'Bit i: item i is a new axis of length 1' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l shrink-axis-mask -d 'Bit i: item i is the integer begin[i], and its axis goes' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_using_subcommand assign" -s o -l output -d 'The file to write, a copy of TARGET with the change in it' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand assign" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l broadcast -d 'Stretch the value to the slice\'s shape, as NumPy does'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l keepdims -d 'Keep the axes that integers index, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l outer -d 'Take each list along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l in-place -d 'Change TARGET itself'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand assign" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l indices -d 'The positions: a file of integers, also as text (.txt, .csv), `-` for standard input, or a list: \'[[0, 1], [2, 3]]\'' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l values -d 'The file whose slices are written; `-` is standard input' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l axis -d 'With --elements: the axis of the positions; negative values count from the end' -r
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l out-of-range -d 'What becomes of positions out of range, negative ones included' -r -f -a "error\t'It is an error that names the first one'
skip\t'Nothing is written there'"
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l indices-tensor -d 'The tensor of the indices, in a file of several' -r
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l values-tensor -d 'The tensor of the values, in a file of several' -r
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -s o -l output -d 'The file to write, a copy of TARGET with the change in it' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l elements -d 'One element for each index, as np.put_along_axis; the indices have the rank of the target, negative ones count from the end, and the values are broadcast'
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l in-place -d 'Change TARGET itself'
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand scatter" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l files-from -d 'Read the names of the inputs from a file, one a line; `-` is standard input' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l axis -d 'The axis to join along; a negative one counts from the end; 0 when left out. With a name or glob before it the axis of those tensors, which may be given again: --axis \'*.o_proj.weight=1\'' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l index -d 'What to take of every input before it is joined, as in NumPy: \'[1, 2:4, ..., ::-1]\'' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l dtype -d 'The dtype of raw bytes, or of a file\'s void type: float32 or f32, \'>i2\', bfloat16 or bf16, ...' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l shape -d 'The shape of raw bytes; one length may be -1; one axis when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l offset -d 'Where the elements of raw bytes begin, in bytes' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l input-order -d 'The order of the elements of raw bytes' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s o -l output -d 'The file to write, its format by its name; standard output when left out or `-`' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l to -d 'The format of the output, whatever its name' -r -f -a "npy\t'NumPy\'s .npy'
npz\t'NumPy\'s .npz'
safetensors\t'.safetensors'
raw\t'The bytes of the elements alone (.bin, .raw)'
csv\t'Text, columns parted by commas'
txt\t'Text, columns parted by spaces'
json\t'Text, nested lists'"
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l order -d 'The order of the output\'s elements (.npy, raw)' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l name -d 'The name of the tensor in the output (.safetensors)' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l part -d 'Write one of N parts of the output, so that several machines can share the work: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s 0 -l null -d 'The names of --files-from end with NUL bytes, as find -print0 writes them'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l keepdims -d 'Keep the axes that integers of --index select, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l outer -d 'Take each list of --index along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l deflate -d 'Compress the arrays of the output, as np.savez_compressed does (.npz)'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -l keep-rest -d 'Take the tensors that -t does not choose once; they must be the same in all inputs'
complete -c tslice -n "__fish_tslice_using_subcommand concat" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l files-from -d 'Read the names of the inputs from a file, one a line; `-` is standard input' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l axis -d 'The axis to join along; a negative one counts from the end; 0 when left out. With a name or glob before it the axis of those tensors, which may be given again: --axis \'*.o_proj.weight=1\'' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l index -d 'What to take of every input before it is joined, as in NumPy: \'[1, 2:4, ..., ::-1]\'' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l dtype -d 'The dtype of raw bytes, or of a file\'s void type: float32 or f32, \'>i2\', bfloat16 or bf16, ...' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l shape -d 'The shape of raw bytes; one length may be -1; one axis when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l offset -d 'Where the elements of raw bytes begin, in bytes' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l input-order -d 'The order of the elements of raw bytes' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s o -l output -d 'The file to write, its format by its name; standard output when left out or `-`' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l to -d 'The format of the output, whatever its name' -r -f -a "npy\t'NumPy\'s .npy'
npz\t'NumPy\'s .npz'
safetensors\t'.safetensors'
raw\t'The bytes of the elements alone (.bin, .raw)'
csv\t'Text, columns parted by commas'
txt\t'Text, columns parted by spaces'
json\t'Text, nested lists'"
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l order -d 'The order of the output\'s elements (.npy, raw)' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l name -d 'The name of the tensor in the output (.safetensors)' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l part -d 'Write one of N parts of the output, so that several machines can share the work: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s 0 -l null -d 'The names of --files-from end with NUL bytes, as find -print0 writes them'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l keepdims -d 'Keep the axes that integers of --index select, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l outer -d 'Take each list of --index along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l deflate -d 'Compress the arrays of the output, as np.savez_compressed does (.npz)'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -l keep-rest -d 'Take the tensors that -t does not choose once; they must be the same in all inputs'
complete -c tslice -n "__fish_tslice_using_subcommand stack" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand split" -l parts -d 'Cut into N parts, the first ones longer where they cannot be equal (np.array_split)' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l sizes -d 'Cut into parts of these lengths, which must add up to that of the axis' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l at -d 'Cut before these positions (np.split)' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l every -d 'Cut into parts of N positions; the last one may be shorter' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l axis -d 'The axis to cut; a negative one counts from the end; 0 when left out. With a name or glob before it the axis of those tensors, which may be given again: --axis \'*.o_proj.weight=1\'' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l begin -d 'First positions, a comma list; \'\' is the empty list' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l end -d 'One past the last positions, as long as --begin' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l strides -d 'Steps, as long as --begin; 1s when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l begin-mask -d 'Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l end-mask -d 'Bit i: ignore end[i], take the fullest range' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l ellipsis-mask -d 'Bit i: item i is an ellipsis' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l new-axis-mask -d 'Bit i: item i is a new axis of length 1' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l shrink-axis-mask -d 'Bit i: item i is the integer begin[i], and its axis goes' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand split" -l dtype -d 'The dtype of raw bytes, or of a file\'s void type: float32 or f32, \'>i2\', bfloat16 or bf16, ...' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l shape -d 'The shape of raw bytes; one length may be -1; one axis when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l offset -d 'Where the elements of raw bytes begin, in bytes' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l input-order -d 'The order of the elements of raw bytes' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand split" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l cast -d 'Convert elements to this dtype, as NumPy\'s astype does: bfloat16, float8_e4m3fn, \'>i2\', ...; with FROM only those of that dtype; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l casting -d 'Which casts are allowed' -r -f -a "safe\t'Only those that keep every value'
same-kind\t'Those and casts within a kind, such as float64 to float32 (the default)'
unsafe\t'All: from float to integer the nearest end of the range where the number is out of it, 0 for NaN'"
complete -c tslice -n "__fish_tslice_using_subcommand split" -l to -d 'The format of the output, whatever its name' -r -f -a "npy\t'NumPy\'s .npy'
npz\t'NumPy\'s .npz'
safetensors\t'.safetensors'
raw\t'The bytes of the elements alone (.bin, .raw)'
csv\t'Text, columns parted by commas'
txt\t'Text, columns parted by spaces'
json\t'Text, nested lists'"
complete -c tslice -n "__fish_tslice_using_subcommand split" -l order -d 'The order of the output\'s elements (.npy, raw)' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand split" -l name -d 'The name of the tensor in the output (.safetensors)' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -l part -d 'Write one of N parts of the output, so that several machines can share the work: I/N, from 0 on; auto takes it from the scheduler. plan/N prints all parts, status which are missing, discard removes them' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand split" -s o -l output -d 'The files to write: {} stands for the number of the part, from 0 on, {:04} for four digits' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand split" -l keepdims -d 'Keep the axes that integers index, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand split" -l outer -d 'Take each list along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand split" -s f -l force -d 'Replace the output if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand split" -l fsync -d 'Wait until the disk has the output'
complete -c tslice -n "__fish_tslice_using_subcommand split" -l deflate -d 'Compress the arrays of the output, as np.savez_compressed does (.npz)'
complete -c tslice -n "__fish_tslice_using_subcommand split" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand split" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand split" -l keep-rest -d 'Copy the tensors that -t does not choose to every output (.safetensors, .npz)'
complete -c tslice -n "__fish_tslice_using_subcommand split" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand view" -l begin -d 'First positions, a comma list; \'\' is the empty list' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l end -d 'One past the last positions, as long as --begin' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l strides -d 'Steps, as long as --begin; 1s when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l begin-mask -d 'Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l end-mask -d 'Bit i: ignore end[i], take the fullest range' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l ellipsis-mask -d 'Bit i: item i is an ellipsis' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l new-axis-mask -d 'Bit i: item i is a new axis of length 1' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l shrink-axis-mask -d 'Bit i: item i is the integer begin[i], and its axis goes' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l transpose -d 'Put the axes of the result in this order, as np.transpose does: 0,3,1,2; negative axes count from the end; `--transpose=` reverses them' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand view" -l dtype -d 'The dtype of raw bytes, or of a file\'s void type: float32 or f32, \'>i2\', bfloat16 or bf16, ...' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l shape -d 'The shape of raw bytes; one length may be -1; one axis when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l offset -d 'Where the elements of raw bytes begin, in bytes' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l input-order -d 'The order of the elements of raw bytes' -r -f -a "C\t'Row-major'
F\t'Column-major, Fortran\'s'"
complete -c tslice -n "__fish_tslice_using_subcommand view" -l edge -d 'How many items to print at each end of an axis whose middle is left out [default: 3]' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l precision -d 'The most digits behind the point [default: 8]' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -s o -l output -d 'Write a picture: two axes in colours, (H, W, 3 or 4) of uint8 as it is, more axes as a contact sheet; one pixel an element' -r -F
complete -c tslice -n "__fish_tslice_using_subcommand view" -l colormap -d 'The colours [default: viridis]' -r -f -a "viridis\t''
magma\t''
inferno\t''
plasma\t''
cividis\t''
gray\t''
turbo\t''
rdbu\t''"
complete -c tslice -n "__fish_tslice_using_subcommand view" -l range -d 'The numbers at the ends of the colours, or percentiles: 0,1 or p1,p99; the smallest and the largest when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l width -d 'Pixels a row: means of elements, or elements repeated' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand view" -l keepdims -d 'Keep the axes that integers index, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand view" -l outer -d 'Take each list along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand view" -s T -d 'Reverse the axes of the result, as NumPy\'s a.T does'
complete -c tslice -n "__fish_tslice_using_subcommand view" -l full -d 'Print all values; above 1000 elements, the middle of long axes is left out otherwise'
complete -c tslice -n "__fish_tslice_using_subcommand view" -l stats -d 'Print statistics: extremes and their places, mean, deviation, quantiles, a histogram'
complete -c tslice -n "__fish_tslice_using_subcommand view" -l json -d 'Print the statistics as JSON'
complete -c tslice -n "__fish_tslice_using_subcommand view" -l image -d 'Draw the picture in the terminal, with half blocks'
complete -c tslice -n "__fish_tslice_using_subcommand view" -s f -l force -d 'Replace the picture if it exists'
complete -c tslice -n "__fish_tslice_using_subcommand view" -l fsync -d 'Wait until the disk has the picture'
complete -c tslice -n "__fish_tslice_using_subcommand view" -s n -l dry-run -d 'Check everything, print what would be written, write nothing'
complete -c tslice -n "__fish_tslice_using_subcommand view" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand view" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l begin -d 'First positions, a comma list; \'\' is the empty list' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l end -d 'One past the last positions, as long as --begin' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l strides -d 'Steps, as long as --begin; 1s when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l begin-mask -d 'Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l end-mask -d 'Bit i: ignore end[i], take the fullest range' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l ellipsis-mask -d 'Bit i: item i is an ellipsis' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l new-axis-mask -d 'Bit i: item i is a new axis of length 1' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l shrink-axis-mask -d 'Bit i: item i is the integer begin[i], and its axis goes' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l atol -d 'Elements are the same up to this difference; 0 when only --rtol is given' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l rtol -d 'Elements are the same up to this part of the absolute value in B; 0 when only --atol is given' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -s j -l threads -d 'How many threads work; as many as the machine has cores when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l keepdims -d 'Keep the axes that integers index, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l outer -d 'Take each list along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l equal-nan -d 'NaN is the same as any NaN'
complete -c tslice -n "__fish_tslice_using_subcommand diff" -l json -d 'Print JSON'
complete -c tslice -n "__fish_tslice_using_subcommand diff" -s q -l quiet -d 'Show no progress'
complete -c tslice -n "__fish_tslice_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand info" -s t -l tensor -d 'Show the tensors of this name or glob only; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand info" -l json -d 'Print JSON'
complete -c tslice -n "__fish_tslice_using_subcommand info" -s h -l help -d 'Print help'
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l begin -d 'First positions, a comma list; \'\' is the empty list' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l end -d 'One past the last positions, as long as --begin' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l strides -d 'Steps, as long as --begin; 1s when left out' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l begin-mask -d 'Bit i: ignore begin[i], take the fullest range (decimal, 0x.., 0b.., or 1<<4|1<<5)' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l end-mask -d 'Bit i: ignore end[i], take the fullest range' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l ellipsis-mask -d 'Bit i: item i is an ellipsis' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l new-axis-mask -d 'Bit i: item i is a new axis of length 1' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l shrink-axis-mask -d 'Bit i: item i is the integer begin[i], and its axis goes' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l field -d 'Take this field of a structured dtype before the index is applied: `x`; `pos.x` for a field of a field; `x,y` for several, packed into a structure' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l transpose -d 'Put the axes of the result in this order, as np.transpose does: 0,3,1,2; negative axes count from the end; `--transpose=` reverses them' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l shape -d 'Explain against this shape, without a file' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -s t -l tensor -d 'The tensor to take, in a file of several: a name or a glob; may be given again' -r
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l io -d 'How to read: map local files, or read by position (for network file systems)' -r -f -a "auto\t'Map local files, read those of network file systems'
mmap\t'Map the file'
read\t'Read the file by position, in large pieces'"
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l keepdims -d 'Keep the axes that integers index, with length 1'
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l outer -d 'Take each list along its own axis, as np.ix_ does'
complete -c tslice -n "__fish_tslice_using_subcommand explain" -s T -d 'Reverse the axes of the result, as NumPy\'s a.T does'
complete -c tslice -n "__fish_tslice_using_subcommand explain" -l json -d 'Print JSON'
complete -c tslice -n "__fish_tslice_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c tslice -n "__fish_tslice_using_subcommand completions" -s h -l help -d 'Print help'
