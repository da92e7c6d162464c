//! The metadata of a page: its keywords, tags and references, as one set.
//!
//! Layout: `S` and the hashes of up to 64 members, ascending and distinct, or `M` and the signature of more members, 128
//! values of `MinHash`, 64 bits each, little-endian. Nearly every page has a small set, which is compared exactly. The
//! 100 functions (x + i) mod 100 of the paper are rotations of one order, far from independent, so independent
//! permutations are used.
//!
//! Source: Wang & Wang 2019 (metadata as one set, `MinHash`); Broder 1997 (`MinHash`).

use crate::memory::{GAMMA, mix64};

/// Members of a set up to which it is stored, and compared exactly.
pub const EXACT_LIMIT: usize = 64;
/// Values of the signature of a larger set.
pub const PERMUTATIONS: u64 = 128;

const SET: u8 = b'S';
const SIGNATURE: u8 = b'M';

/// Return the set of so many hashes of members, in any order, as bytes; none without members.
pub fn pack(mut hashes: Vec<u64>) -> Vec<u8> {
    hashes.sort_unstable();
    hashes.dedup();
    let kind = if hashes.len() > EXACT_LIMIT { SIGNATURE } else { SET };
    if kind == SIGNATURE {
        hashes = signature(&hashes.iter().copied());
    }
    let values = hashes.iter().flat_map(|hash| hash.to_le_bytes());
    if hashes.is_empty() { Vec::new() } else { std::iter::once(kind).chain(values).collect() }
}

/// Return the smallest hash of the members in each permutation; none without members.
fn signature(hashes: &(impl Iterator<Item = u64> + Clone)) -> Vec<u64> {
    let smallest = |step| hashes.clone().map(|hash| mix64(hash.wrapping_add(step))).min();
    (1..=PERMUTATIONS).filter_map(|row| smallest(GAMMA.wrapping_mul(row))).collect()
}

/// A view of packed metadata.
#[derive(Clone, Copy, Debug)]
pub struct Metadata<'a> {
    /// Whether it is the signature of a set, not the set.
    pub is_signature: bool,
    bytes: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// Read packed metadata; None if the page states none, or if it is not packed so.
    pub fn read(packed: &'a [u8]) -> Option<Self> {
        let (kind, bytes) = packed.split_first()?;
        let read = Self { is_signature: *kind == SIGNATURE, bytes };
        let (count, values) = (bytes.len() / 8, read.values());
        let is_set = *kind == SET && (1..=EXACT_LIMIT).contains(&count) && values.is_sorted_by(|one, next| one < next);
        let is_signature = read.is_signature && count as u64 == PERMUTATIONS;
        (bytes.len() % 8 == 0 && (is_set || is_signature)).then_some(read)
    }

    /// The hashes of the members, ascending, or the values of the signature.
    pub fn values(&self) -> impl Iterator<Item = u64> + Clone + use<'a> {
        self.bytes.chunks_exact(8).map(|bytes| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }

    /// The signature of the set.
    pub fn signature(&self) -> Vec<u64> {
        if self.is_signature { self.values().collect() } else { signature(&self.values()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn metadata_reads_as_it_was_packed(hashes in vec(0..200_u64, 0..150)) {
            let members: std::collections::BTreeSet<u64> = hashes.iter().copied().collect();
            let packed = pack(hashes);
            let read = Metadata::read(&packed);
            prop_assert_eq!(read.is_none(), members.is_empty());
            if let Some(read) = read {
                prop_assert_eq!(read.is_signature, members.len() > EXACT_LIMIT);
                let (values, expected) = (read.values(), members.iter().copied());
                prop_assert!(read.is_signature || values.eq(expected.clone()));
                prop_assert_eq!(read.signature(), signature(&expected));
            }
        }
    }
}
