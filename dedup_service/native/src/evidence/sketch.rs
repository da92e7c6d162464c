//! A set of shingles in 64 bytes, from which the Jaccard similarity of two sets is estimated.
//!
//! Fast similarity sketching fills 512 bins with the smallest of independent hash values, as so many permutations
//! would, in some 3,000 steps whatever the size of the set. One bit of the value of each bin is kept. Two sets of
//! similarity J have equal bits with probability (1 + J)/2, so J is estimated as 2·(share of equal bits) − 1. The
//! standard error is at most √((1 − J²)/512) from the bits, plus √(J(1 − J)/512) if both sets are larger than the
//! sketch: .044 at J = .5.
//!
//! Source: Dahlgaard, Knudsen, Thorup, "Fast similarity sketching", FOCS 2017; Li and König, "b-bit minwise hashing",
//! WWW 2010.

use crate::memory::{GAMMA, mix64, vectorised};

/// Bins, and bits of a sketch.
pub const BINS: usize = 512;

/// The bits of the bins.
pub type Sketch = [u8; BINS / 8];

const EMPTY: u64 = u64::MAX;
const BIN_SHIFT: u32 = u64::BITS - BINS.ilog2();

/// Makes sketches. It is kept for many pages, whose values then need no new memory.
#[derive(Debug, Default)]
pub struct Sketcher {
    values: Vec<u64>,
    chosen: Vec<u64>,
}

impl Sketcher {
    /// Return the sketch of distinct hashes; without any, all its bits are 0.
    pub fn sketch(&mut self, shingles: &[u64]) -> Sketch {
        if shingles.is_empty() {
            return [0; BINS / 8];
        }
        let mut minima = [EMPTY; BINS];
        vectorised(
            #[inline(always)]
            || self.fill(shingles, &mut minima),
        );
        std::array::from_fn(|byte| {
            let bins = minima[8 * byte..][..8].iter().enumerate();
            bins.fold(0, |bits, (bit, value)| bits | ((value & 1) as u8) << bit)
        })
    }

    /// Fill bins with hash values in `BINS` rounds at most, then those left with the smallest of a round of their own.
    ///
    /// A round fills only bins that were empty when it began, since the smallest value of a bin is of the first round
    /// that reached it. Most values of later rounds reach bins that are full: those for empty ones are collected first,
    /// without a branch, since none could be predicted.
    #[inline(always)]
    #[allow(clippy::inline_always)] // as `vectorised` says
    fn fill(&mut self, shingles: &[u64], minima: &mut [u64; BINS]) {
        self.values.resize(shingles.len(), 0);
        self.chosen.resize(shingles.len() + 1, 0);
        let (values, chosen) = (&mut self.values[..], &mut self.chosen[..]);
        let (mut is_empty, mut empty, mut seed) = ([true; BINS], BINS, 0_u64);
        for _ in 0..BINS {
            seed = seed.wrapping_add(GAMMA);
            for (value, shingle) in values.iter_mut().zip(shingles) {
                *value = mix64(shingle.wrapping_add(seed));
            }
            let mut count = 0;
            for &value in &*values {
                chosen[count] = value;
                count += usize::from(is_empty[bin(value)]);
            }
            for &value in &chosen[..count] {
                let smallest = &mut minima[bin(value)];
                *smallest = (*smallest).min(value & ((1 << BIN_SHIFT) - 1));
            }
            for &value in &chosen[..count] {
                empty -= usize::from(std::mem::take(&mut is_empty[bin(value)]));
            }
            if empty == 0 {
                return;
            }
        }
        for (number, smallest) in minima.iter_mut().enumerate().filter(|(_, smallest)| **smallest == EMPTY) {
            let seed = GAMMA.wrapping_mul((BINS + number + 1) as u64);
            *smallest = shingles.iter().map(|shingle| mix64(shingle.wrapping_add(seed))).min().unwrap_or(EMPTY);
        }
    }
}

/// Return the bin of a value, by its upper bits.
fn bin(value: u64) -> usize {
    (value >> BIN_SHIFT) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    /// The definition: each bin has the smallest value of the first round that reached it.
    fn defined(shingles: &[u64]) -> Sketch {
        let mut sketch = [0; BINS / 8];
        for place in 0..BINS {
            let of_round = |round: usize| {
                let values = shingles.iter().map(|s| mix64(s.wrapping_add(GAMMA.wrapping_mul(round as u64))));
                values.filter(|&value| round > BINS || bin(value) == place).min()
            };
            let value = (1..=BINS).find_map(of_round).or_else(|| of_round(BINS + place + 1)).unwrap_or(0);
            sketch[place / 8] |= ((value & 1) as u8) << (place % 8);
        }
        sketch
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn a_bin_has_the_smallest_value_of_the_first_round_that_reached_it(shingles in btree_set(any::<u64>(), 0..40)) {
            let shingles: Vec<u64> = shingles.into_iter().collect();
            let mut sketcher = Sketcher::default();
            sketcher.sketch(&[7; 100]);
            prop_assert_eq!(sketcher.sketch(&shingles), defined(&shingles));
        }
    }

    #[test]
    fn equal_bits_estimate_the_jaccard_similarity() {
        let set = |from: u64, to: u64| (from..to).map(mix64).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
        let mut sketcher = Sketcher::default();
        let (one, other) = (sketcher.sketch(&set(0, 3000)), sketcher.sketch(&set(1000, 4000)));
        let differing: u32 = one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum();
        let jaccard = 1.0 - 2.0 * f64::from(differing) / BINS as f64;
        assert!((jaccard - 0.5).abs() < 0.09, "{jaccard}"); // four standard errors
    }
}
