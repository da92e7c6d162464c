//! Errors of a store, one variant for each reaction of a caller.

use std::io;
use std::path::Path;

use thiserror::Error;

/// What a store returns that may refuse.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why a store refused something. The message names the file and the place, both values that disagree, and what to do.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// A file is missing, too short or altered.
    #[error("{0}; restore the folder from a copy, or delete it and build it again from the log")]
    Damaged(String),
    /// The store belongs to another log, space, base or version.
    #[error("{0}")]
    Foreign(String),
    /// The disk did not take something. What was committed is unchanged, and so is a store that refused to append.
    #[error("{0}; free space or make it writable, and open the store again")]
    Full(String),
    /// The system does not give something: rights, open files, memory, a disk that fails. Nothing changed.
    #[error("{0}; it may be whole: make it readable, or allow more open files or memory, and open the store again")]
    Unreadable(String),
    /// All row numbers are used.
    #[error("{0}; delete the folder and build it again from the log, which numbers from 0")]
    NumbersUsed(String),
    /// The row was removed or erased, or there never was one.
    #[error("there is no row {0}")]
    Gone(u32),
    /// The caller contradicts the store or itself. Nothing changed.
    #[error("{0}")]
    State(String),
}

/// Return what makes an error of reading or mapping `path` an error of the store.
pub(super) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |error| {
        let text = format!("{} cannot be read: {error}", path.display());
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData => StoreError::Damaged(text),
            _ => StoreError::Unreadable(text),
        }
    }
}

/// Return what makes an error of writing to `path` an error of the store.
pub(super) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |error| StoreError::Full(format!("disk full or not writable: {}: {error}", path.display()))
}
