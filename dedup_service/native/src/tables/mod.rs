//! The tables in which kept pages are found: the sharded in-memory block index.
