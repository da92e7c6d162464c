//! The native core of twinsieve: which kept pages may be near-duplicates of a page.
//!
//! No module but `python` knows Python: it takes and returns plain values, and has the lock released while it works.

pub mod error;
mod huge_pages;
pub mod memory;
pub mod tables;

#[cfg(feature = "python")]
mod python;
