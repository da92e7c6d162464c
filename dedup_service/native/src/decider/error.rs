//! What stops a decider.

use thiserror::Error;

use crate::error::TableError;
use crate::store::StoreError;

/// What a decider returns that may be stopped.
pub type Result<T> = std::result::Result<T, DeciderError>;

/// Why a decider could not go on. Pages before are decided, and no later one.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum DeciderError {
    /// A table and the entries differ.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The store refused, or is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller contradicts the decider or itself.
    #[error("{0}")]
    State(String),
    /// There is no live entry at this sequence.
    #[error("there is no entry at {0}")]
    Gone(i64),
}
