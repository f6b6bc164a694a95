//! Errors of Windows, under POSIX's names.

use windows_sys::Win32::Foundation as codes;

pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// The number of a system error. Numbers with one meaning are replaced by one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(u32);

/// POSIX's names and texts for errors of Windows.
macro_rules! errors {
    ($($name:ident = $code:ident, $words:literal;)*) => {
        impl Errno {
            $(pub(crate) const $name: Errno = Errno(codes::$code);)*
        }

        fn words_of(error: Errno) -> Option<&'static str> {
            match error {
                $(Errno::$name => Some($words),)*
                _ => None,
            }
        }
    };
}

errors! {
    ACCES = ERROR_ACCESS_DENIED, "Permission denied";
    AGAIN = ERROR_NO_DATA, "Resource temporarily unavailable";
    BADF = ERROR_INVALID_HANDLE, "Bad file descriptor";
    BUSY = ERROR_BUSY, "Device or resource busy";
    DQUOT = ERROR_DISK_QUOTA_EXCEEDED, "Disk quota exceeded";
    EXIST = ERROR_ALREADY_EXISTS, "File exists";
    FBIG = ERROR_FILE_TOO_LARGE, "File too large";
    INTR = ERROR_OPERATION_ABORTED, "Interrupted system call";
    INVAL = ERROR_INVALID_PARAMETER, "Invalid argument";
    ISDIR = ERROR_DIRECTORY_NOT_SUPPORTED, "Is a directory";
    INUSE = ERROR_SHARING_VIOLATION, "another program has the file open";
    LOOP = ERROR_CANT_RESOLVE_FILENAME, "Too many levels of symbolic links";
    MAPPED = ERROR_USER_MAPPED_FILE, "the file is mapped";
    NOENT = ERROR_FILE_NOT_FOUND, "No such file or directory";
    NOSPC = ERROR_DISK_FULL, "No space left on device";
    NOSYS = ERROR_CALL_NOT_IMPLEMENTED, "Function not implemented";
    NOTDIR = ERROR_DIRECTORY, "Not a directory";
    NOTEMPTY = ERROR_DIR_NOT_EMPTY, "Directory not empty";
    NOTTY = ERROR_BAD_COMMAND, "Inappropriate ioctl for device";
    NXIO = ERROR_BAD_UNIT, "No such device or address";
    OPNOTSUPP = ERROR_NOT_SUPPORTED, "Operation not supported";
    PERM = ERROR_PRIVILEGE_NOT_HELD, "Operation not permitted";
    STALE = ERROR_FILE_INVALID, "Stale file handle";
    WOULDBLOCK = ERROR_LOCK_VIOLATION, "Resource temporarily unavailable";
    XDEV = ERROR_NOT_SAME_DEVICE, "Invalid cross-device link";
}

impl Errno {
    fn of(code: u32) -> Errno {
        match code {
            codes::ERROR_PATH_NOT_FOUND | codes::ERROR_INVALID_NAME | codes::ERROR_BAD_PATHNAME => {
                Errno::NOENT
            }
            codes::ERROR_FILE_EXISTS => Errno::EXIST,
            codes::ERROR_HANDLE_DISK_FULL => Errno::NOSPC,
            codes::ERROR_INVALID_FUNCTION => Errno::NOSYS,
            codes::ERROR_IO_PENDING => Errno::WOULDBLOCK,
            code => Errno(code),
        }
    }

    pub(crate) fn from_io_error(error: &std::io::Error) -> Option<Errno> {
        error.raw_os_error().map(|code| Errno::of(code.cast_unsigned()))
    }

    /// The error of the last call of this thread.
    pub(super) fn last() -> Errno {
        Errno::from(std::io::Error::last_os_error())
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno::from_io_error(&error).unwrap_or(match error.kind() {
            std::io::ErrorKind::NotFound => Errno::NOENT,
            _ => Errno::INVAL,
        })
    }
}

impl From<Errno> for std::io::Error {
    fn from(Errno(code): Errno) -> std::io::Error {
        std::io::Error::from_raw_os_error(code.cast_signed())
    }
}

/// POSIX's text for a system error; Windows' own texts depend on its language.
pub fn words(code: i32) -> Option<&'static str> {
    words_of(Errno::of(code.cast_unsigned()))
}

/// Calls are not interrupted here.
pub(crate) fn retry_on_intr<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    call()
}
