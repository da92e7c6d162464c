//! The tables in which kept pages are found: the sharded in-memory block index.

pub mod blocks;
pub mod cells;
pub mod hamming;
pub mod hash_rows;
pub mod row_column;
pub mod sieve_column;
pub mod slots;
