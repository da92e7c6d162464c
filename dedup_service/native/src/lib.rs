//! The native core of twinsieve: what is made of the text of a page, which kept pages may be near-duplicates of it, and
//! what is kept of them.
//!
//! No module but `python` knows Python: it takes and returns plain values, and has the lock released while it works.

pub mod building;
pub mod characters;
pub mod decider;
pub mod error;
pub mod evidence;
pub mod expiry;
pub mod features;
pub mod guards;
pub mod host_text;
mod huge_pages;
pub mod memory;
pub mod overrides;
pub mod prepare;
pub mod rule;
pub mod segmentation;
pub mod similarity;
pub mod store;
pub mod stream;
pub mod tables;
pub mod text;
pub mod window;

#[cfg(feature = "python")]
mod python;
