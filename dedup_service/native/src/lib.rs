//! The native core of twinsieve: which kept pages may be near-duplicates of a page, and what is kept of them.
//!
//! No module but `python` knows Python: it takes and returns plain values, and has the lock released while it works.

pub mod building;
pub mod decider;
pub mod error;
pub mod evidence;
pub mod expiry;
pub mod guards;
pub mod host_text;
mod huge_pages;
pub mod memory;
pub mod overrides;
pub mod rule;
pub mod similarity;
pub mod store;
pub mod tables;
pub mod window;

#[cfg(feature = "python")]
mod python;
