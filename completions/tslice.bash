# Completions of tslice for bash (4.4 or newer): the program itself says what may stand at the cursor.
_tslice() {
    local kind text about files= before=${COMP_LINE:0:COMP_POINT} after=${COMP_LINE:COMP_POINT}
    COMPREPLY=()
    while IFS=$'\t' read -r kind text about; do
        case $kind in
            f) files=yes ;;
            # the value goes on
            p) compopt -o nospace && COMPREPLY+=("$text") ;;
            *) COMPREPLY+=("$text") ;;
        esac
    done < <(TSLICE_COMPLETE=bash command tslice -- "$before" "$after" "$2" 2> /dev/null)
    if [[ $files && ${#COMPREPLY[@]} == 0 ]]; then
        # names of files, as if this function were not there
        compopt -o bashdefault -o default
    elif [[ $files ]]; then
        compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$2")
    fi
}
complete -o nosort -F _tslice tslice
