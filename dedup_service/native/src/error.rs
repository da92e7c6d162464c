//! What can go wrong, as values with the messages that people read.

use thiserror::Error;

/// Why a table refused something. Nothing changed, unless the method says otherwise.
#[derive(Debug, Error, PartialEq, Eq, Clone)]
pub enum TableError {
    /// A value outside its range: the caller's configuration is wrong.
    #[error("{0}")]
    Configuration(String),
    /// The table and what the caller says of it differ.
    #[error("{0}")]
    State(String),
    /// A fault of ours: a panic. What it was working on may be changed in part.
    #[error("{0}")]
    Internal(String),
}

/// What a table returns that may refuse.
pub type Result<T> = std::result::Result<T, TableError>;
