# Completions of tslice for PowerShell: the program itself says what may stand at the cursor.
Register-ArgumentCompleter -Native -CommandName tslice -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $words = @(foreach ($element in $commandAst.CommandElements) {
        if ($element.Extent.EndOffset -ge $cursorPosition) { break }
        if ($element -is [System.Management.Automation.Language.StringConstantExpressionAst]) {
            $element.Value
        } else {
            $element.Extent.Text
        }
    })
    $typed = "$wordToComplete".Trim("'", '"')
    $previous = $env:TSLICE_COMPLETE
    $env:TSLICE_COMPLETE = 'powershell'
    try {
        # PowerShell hands over no empty words: a dot stands before the last one
        $answer = @(& tslice '--' @words ".$typed" 2> $null)
    } catch {
        $answer = @()
    } finally {
        $env:TSLICE_COMPLETE = $previous
    }
    foreach ($line in $answer) {
        $kind, $text, $about = $line -split "`t", 3
        if ($kind -eq 'f') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete)
            continue
        }
        $type = switch ($kind) { 'c' { 'Command' } 'o' { 'ParameterName' } default { 'ParameterValue' } }
        if (-not $about) { $about = $text }
        [System.Management.Automation.CompletionResult]::new($text, $text, $type, $about)
    }
}
