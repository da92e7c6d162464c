//! Character n-grams: the features of the `body` channel, and the shingles of evidence.
//!
//! Only letters and digits count, so typography and layout do not, and each distinct n-gram counts once. Its hash is a
//! polynomial of its code points modulo 2^64, mixed.

use crate::memory::{GAMMA, mix64, vectorised};

/// Finds distinct n-grams. It is kept for many pages, whose tables then need no new memory.
#[derive(Default)]
pub struct NgramFinder {
    /// A table a quarter full at most: which of the distinct hashes is there, from 1 on. These are in the processor's
    /// nearest cache more often than a table of hashes would be.
    places: Vec<u32>,
}

impl NgramFinder {
    /// Replace `hashes` by those of the distinct n-grams of letters, in order; none is 0.
    pub fn find(&mut self, letters: &[u32], n: usize, hashes: &mut Vec<u64>) {
        vectorised(
            #[inline(always)]
            || hash_all(letters, n, hashes),
        );
        self.keep_distinct(hashes);
    }

    /// Leave of some hashes the distinct ones, in order; of 0 another one.
    pub fn keep_distinct(&mut self, hashes: &mut Vec<u64>) {
        self.places.clear();
        self.places.resize((4 * hashes.len()).next_power_of_two().max(16), 0);
        let mask = self.places.len() - 1;
        let mut distinct = 0;
        for at in 0..hashes.len() {
            let value = if hashes[at] == 0 { GAMMA } else { hashes[at] };
            let mut slot = value as usize & mask;
            loop {
                match self.places[slot] {
                    0 => {
                        hashes[distinct] = value;
                        distinct += 1;
                        self.places[slot] = distinct as u32;
                        break;
                    }
                    place if hashes[place as usize - 1] == value => break,
                    _ => slot = (slot + 1) & mask,
                }
            }
        }
        hashes.truncate(distinct);
    }
}

/// Replace `hashes` by those of all n-grams. The compiler vectorises each loop.
#[inline(always)]
#[allow(clippy::inline_always)] // it is compiled for two kinds of processors
fn hash_all(letters: &[u32], n: usize, hashes: &mut Vec<u64>) {
    let count = (letters.len() + 1).saturating_sub(n);
    let last = (0..n).fold(1, |power: u64, _| power.wrapping_mul(GAMMA));
    hashes.clear();
    hashes.resize(count, last.wrapping_mul(n as u64));
    let mut power = 1u64;
    for place in (0..n).rev().filter(|_| count > 0) {
        for (hash, &letter) in hashes.iter_mut().zip(&letters[place..]) {
            *hash = hash.wrapping_add(power.wrapping_mul(u64::from(letter)));
        }
        power = power.wrapping_mul(GAMMA);
    }
    for hash in &mut *hashes {
        *hash = mix64(*hash);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash_of(letters: &[u32]) -> u64 {
        let first = letters.len() as u64;
        mix64(letters.iter().fold(first, |sum, &letter| sum.wrapping_mul(GAMMA).wrapping_add(u64::from(letter))))
    }

    proptest! {
        /// Found are the hashes of all n-grams, each where it first occurs, also by a finder that has seen other pages.
        #[test]
        fn ngrams_are_distinct_and_in_order(pages in prop::collection::vec(prop::collection::vec(0..4u32, 0..60), 1..4), n in 1..6usize) {
            let mut finder = NgramFinder::default();
            for letters in pages {
                let mut expected = Vec::new();
                for hash in letters.windows(n).map(hash_of) {
                    if !expected.contains(&hash) {
                        expected.push(hash);
                    }
                }
                let mut found = vec![7];
                finder.find(&letters, n, &mut found);
                prop_assert_eq!(found, expected);
            }
        }
    }
}
