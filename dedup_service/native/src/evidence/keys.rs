//! Min-hash keys: by which an index finds pages that share shingles.
//!
//! The shingles of a page are divided into eight parts by the upper bits of a hash. Of each part a page has its smallest
//! distinct hashes, in order. Two sets of similarity J share the smallest hash of a part with probability J; at J = .5
//! they share at least one of the eight with probability .996. The further hashes of a part are for pages whose
//! smallest ones are common to a whole site (`tables::cells`).
//!
//! Source: Broder, "On the resemblance and containment of documents", 1997 (min-hash); Li, Owen, Zhang, "One permutation
//! hashing", NIPS 2012 (one hash function, divided into parts).

use crate::memory::{mix64, vectorised};
use crate::tables::cells::PARTS;

/// Keys of each part, at most. On a site whose template is .8 of each page, .8⁸ of the parts have no own key.
pub const LEVELS: usize = 8;

/// The keys of a page. Each part ascends; 0, which is no key, follows the last key of a part with fewer shingles.
pub type Keys = [[u32; LEVELS]; PARTS];

const SEED: u64 = 0x5851_F42D_4C95_7F2D;
/// Keys of a part that are looked at first, for each level.
const WANTED: usize = 3;
/// Larger than any key.
const NONE: u64 = 1 << 32;

/// Finds keys. It is kept for many pages, whose values then need no new memory.
#[derive(Debug, Default)]
pub struct KeyFinder {
    values: Vec<u64>,
}

impl KeyFinder {
    /// Return the keys of shingles, hashes in any order.
    pub fn keys(&mut self, shingles: &[u64]) -> Keys {
        self.values.resize(shingles.len(), 0);
        vectorised(
            #[inline(always)]
            || {
                for (value, shingle) in self.values.iter_mut().zip(shingles) {
                    *value = mix64(shingle ^ SEED);
                }
            },
        );
        let values = &self.values;
        let wanted = WANTED * PARTS * LEVELS;
        let mut parts = [[NONE; LEVELS]; PARTS];
        if values.len() > wanted {
            // Keys are uniform, so larger ones than this are hardly ever among the smallest; if a part has too few
            // below, all are looked at (less than one page in a hundred).
            let bound = NONE / values.len() as u64 * wanted as u64;
            parts = smallest(values.iter().copied().filter(|&value| key(value) < bound));
        }
        if parts.iter().any(|part| part[LEVELS - 1] == NONE) {
            parts = smallest(values.iter().copied());
        }
        parts.map(|part| part.map(|key| u32::try_from(key).unwrap_or(0)))
    }
}

/// Return the key of a mixed hash, which the three bits above it are not part of: 1 to 2³² − 1.
fn key(value: u64) -> u64 {
    ((value << PARTS.ilog2()) >> 32).max(1)
}

/// Return the smallest different keys of each part, `NONE` where there are no more.
fn smallest(values: impl Iterator<Item = u64>) -> [[u64; LEVELS]; PARTS] {
    let mut parts = [[NONE; LEVELS]; PARTS];
    for value in values {
        let (mut key, part) = (key(value), &mut parts[(value >> (u64::BITS - PARTS.ilog2())) as usize]);
        if key < part[LEVELS - 1] && !part.contains(&key) {
            for place in part {
                (*place, key) = ((*place).min(key), (*place).max(key));
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_part_has_its_smallest_keys(size in 0..2000_usize, seed: u64, few in prop::option::of(1..20_u64)) {
            let shingles: Vec<u64> =
                (0..size as u64).map(|number| mix64(seed.wrapping_add(number % few.unwrap_or(u64::MAX)))).collect();
            let mut expected: [BTreeSet<u32>; PARTS] = std::array::from_fn(|_| BTreeSet::new());
            for value in shingles.iter().map(|shingle| mix64(shingle ^ SEED)) {
                expected[(value >> 61) as usize].insert(((value >> 29) as u32).max(1));
            }
            let padded = |part: &BTreeSet<u32>| -> [u32; LEVELS] {
                let mut keys = part.iter().copied().chain(std::iter::repeat(0));
                std::array::from_fn(|_| keys.next().unwrap_or(0))
            };
            let mut finder = KeyFinder::default();
            finder.keys(&[1, 2, 3]);
            prop_assert_eq!(finder.keys(&shingles), expected.each_ref().map(padded));
        }
    }
}
