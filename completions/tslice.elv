# Completions of tslice for elvish: the program itself says what may stand at the cursor.
use str
set edit:completion:arg-completer[tslice] = {|@words|
  var before = $words[..-1]
  var current = $words[-1]
  try {
    (external env) TSLICE_COMPLETE=elvish tslice -- $@before .$current 2>/dev/null | from-lines | each {|line|
      var kind text about = (str:split "\t" $line)
      if (eq $kind f) {
        edit:complete-filename $current
      } else {
        var display = $text
        if (not-eq $about '') {
          set display = $text' ('$about')'
        }
        var suffix = ' '
        if (eq $kind p) {
          set suffix = ''
        }
        edit:complex-candidate $text &display=$display &code-suffix=$suffix
      }
    }
  } catch e {
    nop
  }
}
