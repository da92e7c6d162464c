//! The tables in which kept pages are found: the sharded in-memory block index.

pub mod blocks;
pub mod cells;
pub mod hamming;
pub mod hash_rows;
mod level;
pub mod row_column;
mod slots;
