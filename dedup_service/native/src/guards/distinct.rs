//! An estimate of how many different values were seen, in 16 bytes: `HyperLogLog` with 32 registers of four bits.
//!
//! The low five bits of a value's hash choose a register. The register keeps the largest rank seen: the number of zeros
//! that the remaining bits begin with (from the low end), plus one, at most 15. Small counts come from the number of
//! empty registers (linear counting). The standard error is 1.04/√32, a fifth.
//!
//! Invariants: a repeated value changes nothing; the order of values does not matter; all arithmetic is in integers, so
//! the estimate is the same on every machine.
//!
//! Source: Flajolet, Fusy, Gandouet, Meunier, "`HyperLogLog`", `AofA` 2007, figure 3; α₃₂ = .697.

const REGISTERS: u64 = 32;
const MAX_RANK: u32 = 15;

/// α₃₂ · 32² as a multiple of 1/1000 · 2⁻¹⁵, as which powers of two of the registers are summed.
const RAW: u64 = (697 * REGISTERS * REGISTERS) << MAX_RANK;
const LINEAR_BELOW: u64 = REGISTERS * 5 / 2;

/// 32 · ln(32/n), rounded, for 1 to 32 empty registers.
const LINEAR: [u64; REGISTERS as usize] = [
    111, 89, 76, 67, 59, 54, 49, 44, 41, 37, 34, 31, 29, 26, 24, 22, 20, 18, 17, 15, 13, 12, 11, 9, 8, 7, 5, 4, 3, 2,
    1, 0,
];

/// Bytes of a sketch.
pub(super) const SKETCH_BYTES: usize = REGISTERS as usize / 2;

/// What is remembered of values: two registers a byte, the first one's bits lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DistinctSketch(pub(super) [u8; SKETCH_BYTES]);

impl DistinctSketch {
    /// See one more value, by its hash, well mixed.
    pub(super) fn see(&mut self, value: u32) {
        let (register, rest) = (value % REGISTERS as u32, value / REGISTERS as u32);
        let rank = if rest == 0 { MAX_RANK } else { MAX_RANK.min(rest.trailing_zeros() + 1) } as u8;
        let byte = &mut self.0[register as usize / 2];
        let (low, high) = (*byte & 15, *byte >> 4);
        *byte = if register % 2 == 0 { high << 4 | low.max(rank) } else { high.max(rank) << 4 | low };
    }

    /// Return the estimated number of different values; exact for none and one.
    pub(super) fn estimate(&self) -> u64 {
        let ranks = || self.0.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        let raw = RAW / (1000 * ranks().map(|rank| 1 << (MAX_RANK - u32::from(rank))).sum::<u64>());
        let empty = ranks().filter(|rank| *rank == 0).count();
        if raw > LINEAR_BELOW || empty == 0 { raw } else { LINEAR[empty - 1] }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::mix64;

    fn sketch_of(values: &[u32]) -> DistinctSketch {
        let mut sketch = DistinctSketch::default();
        for value in values {
            sketch.see(*value);
        }
        sketch
    }

    proptest! {
        /// A sketch depends on the set of values alone: neither order nor repetition counts.
        #[test]
        fn neither_order_nor_repetition_counts(values in prop::collection::vec(any::<u32>(), 0..200)) {
            let reversed: Vec<u32> = values.iter().rev().chain(&values[..values.len() / 2]).copied().collect();
            prop_assert_eq!(sketch_of(&reversed), sketch_of(&values));
        }
    }

    /// This holds for any value, 0 included.
    #[test]
    fn none_and_one_are_exact() {
        assert_eq!(DistinctSketch::default().estimate(), 0);
        for value in [0, 1, 31, 32, u32::MAX].into_iter().chain((0..100).map(|number| mix64(number) as u32)) {
            assert_eq!(sketch_of(&[value]).estimate(), 1);
        }
    }

    /// Over 200 sets the mean is within a twelfth of the count.
    #[test]
    fn the_error_is_a_fifth() {
        for count in [3u64, 10, 30, 80, 100, 300, 1000] {
            let of_seed = |seed: u64| -> Vec<u32> { (0..count).map(|at| mix64(seed << 32 | at) as u32).collect() };
            let sum: u64 = (0..200).map(|seed| sketch_of(&of_seed(seed)).estimate()).sum();
            assert!((sum as f64 / 200.0 - count as f64).abs() <= 0.08 * count as f64, "{count}: {sum}");
        }
    }

    /// The table of small counts is that of the formula.
    #[test]
    fn linear_counts_are_those_of_the_formula() {
        for (place, expected) in LINEAR.iter().enumerate() {
            let count = (32.0 * (32.0 / (place + 1) as f64).ln()).round() as u64;
            assert_eq!(*expected, count);
        }
    }
}
