_tslice() {
    local i cur prev opts cmd
    COMPREPLY=()
    if [[ "${BASH_VERSINFO[0]}" -ge 4 ]]; then
        cur="$2"
    else
        cur="${COMP_WORDS[COMP_CWORD]}"
    fi
    prev="$3"
    cmd=""
    opts=""

    for i in "${COMP_WORDS[@]:0:COMP_CWORD}"
    do
        case "${cmd},${i}" in
            ",$1")
                cmd="tslice"
                ;;
            tslice,assign)
                cmd="tslice__subcmd__assign"
                ;;
            tslice,completions)
                cmd="tslice__subcmd__completions"
                ;;
            tslice,concat)
                cmd="tslice__subcmd__concat"
                ;;
            tslice,diff)
                cmd="tslice__subcmd__diff"
                ;;
            tslice,explain)
                cmd="tslice__subcmd__explain"
                ;;
            tslice,gather)
                cmd="tslice__subcmd__gather"
                ;;
            tslice,info)
                cmd="tslice__subcmd__info"
                ;;
            tslice,scatter)
                cmd="tslice__subcmd__scatter"
                ;;
            tslice,slice)
                cmd="tslice__subcmd__slice"
                ;;
            tslice,split)
                cmd="tslice__subcmd__split"
                ;;
            tslice,stack)
                cmd="tslice__subcmd__stack"
                ;;
            tslice,view)
                cmd="tslice__subcmd__view"
                ;;
            *)
                ;;
        esac
    done

    case "${cmd}" in
        tslice)
            opts="-T -t -o -f -j -n -q -h -V --begin --end --strides --begin-mask --end-mask --ellipsis-mask --new-axis-mask --shrink-axis-mask --keepdims --outer --field --transpose --cast --casting --tensor --io --dtype --shape --offset --input-order --output --to --force --fsync --deflate --order --name --part --threads --dry-run --quiet --exclude --keep-rest --rename --help --version slice gather assign scatter concat stack split view diff info explain completions"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 1 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --begin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --strides)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ellipsis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --new-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shrink-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --transpose)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --dtype)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --input-order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --to)
                    COMPREPLY=($(compgen -W "npy npz safetensors raw csv txt json" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --part)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__assign)
            opts="-t -o -f -j -n -q -h --value --fill --value-tensor --broadcast --begin --end --strides --begin-mask --end-mask --ellipsis-mask --new-axis-mask --shrink-axis-mask --keepdims --outer --tensor --io --cast --casting --output --in-place --force --fsync --threads --dry-run --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --value)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --fill)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --value-tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --strides)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ellipsis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --new-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shrink-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__completions)
            opts="-h --help bash elvish fish powershell zsh"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__concat)
            opts="-0 -t -o -f -j -n -q -h --files-from --null --axis --index --keepdims --outer --tensor --io --dtype --shape --offset --input-order --field --cast --casting --output --to --force --fsync --deflate --order --name --part --threads --dry-run --quiet --keep-rest --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --files-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --axis)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --index)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --dtype)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --input-order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --to)
                    COMPREPLY=($(compgen -W "npy npz safetensors raw csv txt json" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --part)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__diff)
            opts="-t -j -q -h --begin --end --strides --begin-mask --end-mask --ellipsis-mask --new-axis-mask --shrink-axis-mask --keepdims --outer --field --tensor --io --atol --rtol --equal-nan --json --threads --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --begin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --strides)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ellipsis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --new-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shrink-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --atol)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rtol)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__explain)
            opts="-T -t -h --begin --end --strides --begin-mask --end-mask --ellipsis-mask --new-axis-mask --shrink-axis-mask --keepdims --outer --field --transpose --shape --tensor --io --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --begin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --strides)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ellipsis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --new-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shrink-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --transpose)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__gather)
            opts="-T -t -o -f -j -n -q -h --indices --axis --batch-dims --elements --negative --out-of-range --field --transpose --cast --casting --tensor --indices-tensor --io --output --to --force --fsync --deflate --order --name --part --threads --dry-run --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --indices)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --axis)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --batch-dims)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out-of-range)
                    COMPREPLY=($(compgen -W "error zero clip wrap" -- "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --transpose)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --indices-tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --to)
                    COMPREPLY=($(compgen -W "npy npz safetensors raw csv txt json" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --part)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__info)
            opts="-t -h --tensor --json --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__scatter)
            opts="-t -o -f -j -n -q -h --indices --values --axis --elements --out-of-range --indices-tensor --values-tensor --tensor --io --cast --casting --output --in-place --force --fsync --threads --dry-run --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --indices)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --values)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --axis)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --out-of-range)
                    COMPREPLY=($(compgen -W "error skip" -- "${cur}"))
                    return 0
                    ;;
                --indices-tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --values-tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__slice)
            opts="-T -t -o -f -j -n -q -h --begin --end --strides --begin-mask --end-mask --ellipsis-mask --new-axis-mask --shrink-axis-mask --keepdims --outer --field --transpose --cast --casting --tensor --io --dtype --shape --offset --input-order --output --to --force --fsync --deflate --order --name --part --threads --dry-run --quiet --exclude --keep-rest --rename --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --begin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --strides)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ellipsis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --new-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shrink-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --transpose)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --dtype)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --input-order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --to)
                    COMPREPLY=($(compgen -W "npy npz safetensors raw csv txt json" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --part)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --exclude)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --rename)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__split)
            opts="-t -f -j -n -q -o -h --parts --sizes --at --every --axis --begin --end --strides --begin-mask --end-mask --ellipsis-mask --new-axis-mask --shrink-axis-mask --keepdims --outer --tensor --io --dtype --shape --offset --input-order --field --cast --casting --to --force --fsync --deflate --order --name --part --threads --dry-run --quiet --keep-rest --output --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --parts)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --sizes)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --at)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --every)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --axis)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --strides)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ellipsis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --new-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shrink-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --dtype)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --input-order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --to)
                    COMPREPLY=($(compgen -W "npy npz safetensors raw csv txt json" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --part)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__stack)
            opts="-0 -t -o -f -j -n -q -h --files-from --null --axis --index --keepdims --outer --tensor --io --dtype --shape --offset --input-order --field --cast --casting --output --to --force --fsync --deflate --order --name --part --threads --dry-run --quiet --keep-rest --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --files-from)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --axis)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --index)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --dtype)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --input-order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --cast)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --casting)
                    COMPREPLY=($(compgen -W "safe same-kind unsafe" -- "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --to)
                    COMPREPLY=($(compgen -W "npy npz safetensors raw csv txt json" -- "${cur}"))
                    return 0
                    ;;
                --order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --name)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --part)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
        tslice__subcmd__view)
            opts="-T -t -o -f -n -j -q -h --begin --end --strides --begin-mask --end-mask --ellipsis-mask --new-axis-mask --shrink-axis-mask --keepdims --outer --field --transpose --tensor --io --dtype --shape --offset --input-order --full --edge --precision --stats --json --output --image --colormap --range --width --force --fsync --dry-run --threads --quiet --help"
            if [[ ${cur} == -* || ${COMP_CWORD} -eq 2 ]] ; then
                COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
                return 0
            fi
            case "${prev}" in
                --begin)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --strides)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --begin-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --end-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --ellipsis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --new-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shrink-axis-mask)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --field)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --transpose)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --tensor)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -t)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --io)
                    COMPREPLY=($(compgen -W "auto mmap read" -- "${cur}"))
                    return 0
                    ;;
                --dtype)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --shape)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --offset)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --input-order)
                    COMPREPLY=($(compgen -W "C F" -- "${cur}"))
                    return 0
                    ;;
                --edge)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --precision)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --output)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -o)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --colormap)
                    COMPREPLY=($(compgen -W "viridis magma inferno plasma cividis gray turbo rdbu" -- "${cur}"))
                    return 0
                    ;;
                --range)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --width)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                --threads)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                -j)
                    COMPREPLY=($(compgen -f "${cur}"))
                    return 0
                    ;;
                *)
                    COMPREPLY=()
                    ;;
            esac
            COMPREPLY=( $(compgen -W "${opts}" -- "${cur}") )
            return 0
            ;;
    esac
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _tslice -o nosort -o bashdefault -o default tslice
else
    complete -F _tslice -o bashdefault -o default tslice
fi
