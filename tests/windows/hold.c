/* Opens a file as many programs of Windows do, so that no other may remove or replace it, until its input ends. */
#include <stdio.h>
#include <windows.h>

int main(int count, char **arguments) {
    HANDLE file = CreateFileA(arguments[count - 1], GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    puts(file == INVALID_HANDLE_VALUE ? "failed" : "open");
    fflush(stdout);
    return getchar() == EOF && file != INVALID_HANDLE_VALUE ? 0 : 1;
}
