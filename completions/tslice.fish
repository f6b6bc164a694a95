# Completions of tslice for fish: the program itself says what may stand at the cursor.
function __tslice_complete
    set -l before (commandline --current-process --cut-at-cursor | string collect)
    set -l token (commandline --current-token --cut-at-cursor)
    TSLICE_COMPLETE=fish command tslice -- "$before" 2>/dev/null | while read -l --delimiter \t kind text about
        if test "$kind" = f
            # the names of files, behind what is typed before them
            set -l path (string sub --start (math 1 + (string length -- "$text")) -- "$token")
            complete --do-complete "'' $path" | string replace --regex '^' -- "$text"
        else
            printf '%s\t%s\n' $text $about
        end
    end
end
complete --command tslice --no-files --keep-order --arguments '(__tslice_complete)'
