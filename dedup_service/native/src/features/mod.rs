//! From the words and n-grams of a page to its fingerprints.

pub mod cutter;
pub mod lexicon;
pub mod simhash;
pub mod word_hash;
pub mod word_table;
pub mod words;
