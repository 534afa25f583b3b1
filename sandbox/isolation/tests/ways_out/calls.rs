//! System calls of the hostile program.

use std::io;

/// Makes a system call with any arguments.
pub(crate) fn call(number: libc::c_long, arguments: &[i64]) -> io::Result<i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: the callers pass numbers, or pointers to values that live until the call returns.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The address of a value, as an argument of [`call`].
pub(crate) fn address<T>(value: &T) -> i64 {
    std::ptr::from_ref(value) as i64
}

/// An attempt that got out if the call succeeded.
pub(crate) fn attempt(number: libc::c_long, arguments: &[i64]) -> Result<String, String> {
    got_out(call(number, arguments))
}

/// An attempt that got out unless the call failed for lack of permission: the arguments are such that Linux
/// refuses them after it has checked the permission.
pub(crate) fn attempt_unless_denied(
    number: libc::c_long,
    arguments: &[i64],
) -> Result<String, String> {
    match call(number, arguments) {
        Err(error)
            if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS)) =>
        {
            Err(error.to_string())
        }
        Err(error) => Ok(format!("permitted ({error})")),
        Ok(_) => Ok("it succeeded".into()),
    }
}

/// The attempt got out if this is a success.
pub(crate) fn got_out<T>(result: io::Result<T>) -> Result<String, String> {
    match result {
        Ok(_) => Ok("it succeeded".into()),
        Err(error) => Err(error.to_string()),
    }
}
