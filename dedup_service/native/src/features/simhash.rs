//! `SimHash`: one fingerprint of many weighted features, which changes little when they change little.
//!
//! Each feature adds its weight to the sum of every bit that its hash sets, and subtracts it from the sums of the
//! others. A bit of the fingerprint is 1 if its sum is > 0, so a tie gives 0. Sums are integers, so the order of features
//! cannot matter.
//!
//! Source: Charikar, STOC 2002; Manku, Jain, Das Sarma, WWW 2007, section 2.

use crate::memory::vectorised;

const BITS: usize = u64::BITS as usize;
const PLANES: usize = 32;

/// Return the fingerprint of hashes with their weights. Sums are modulo 2⁶⁴.
pub fn weighted(hashes: &[u64], weights: &[i64]) -> u64 {
    let mut ones = [0_i64; BITS];
    vectorised(
        #[inline(always)]
        || {
            for (&hash, &weight) in hashes.iter().zip(weights) {
                for (bit, sum) in ones.iter_mut().enumerate() {
                    *sum = sum.wrapping_add(weight & -((hash >> bit & 1) as i64));
                }
            }
        },
    );
    let total = weights.iter().fold(0_i64, |total, weight| total.wrapping_add(*weight));
    let is_set = |ones: i64| ones.wrapping_mul(2).wrapping_sub(total) > 0;
    ones.iter().enumerate().fold(0, |bits, (bit, &ones)| bits | u64::from(is_set(ones)) << bit)
}

/// Return the fingerprint of fewer than 2³¹ hashes that weigh the same.
///
/// The 64 counters are stored as planes, bit j of every counter in plane j: an addition takes a few operations. Eight
/// hashes are added at once by a tree of adders, of which only the carry to the fourth plane has to be taken further.
/// Source: Muła, Kurz, Lemire, "Faster population counts using AVX2 instructions", 2018 (Harley-Seal).
pub fn majority(hashes: &[u64]) -> u64 {
    let mut planes = [0; PLANES];
    let [mut ones, mut twos, mut fours] = [0; 3];
    let eights = hashes.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        let (sum, first) = added(ones, eight[0], eight[1]);
        let (sum, second) = added(sum, eight[2], eight[3]);
        let (sum, third) = added(sum, eight[4], eight[5]);
        let (sum, fourth) = added(sum, eight[6], eight[7]);
        ones = sum;
        let (sum, fifth) = added(twos, first, second);
        let (sum, sixth) = added(sum, third, fourth);
        twos = sum;
        let (sum, eights) = added(fours, fifth, sixth);
        fours = sum;
        carry(&mut planes[3..], eights);
    }
    [planes[0], planes[1], planes[2]] = [ones, twos, fours];
    for &hash in rest {
        carry(&mut planes, hash);
    }
    // Each counter is compared with half of the hashes, from the lowest plane on: a higher one outweighs those before.
    let half = hashes.len() / 2;
    planes.iter().enumerate().fold(0, |larger, (plane, bits)| match half >> plane & 1 {
        1 => larger & bits,
        _ => larger | bits,
    })
}

/// Return the sum of three bits and its carry, for 64 places at once.
fn added(one: u64, two: u64, three: u64) -> (u64, u64) {
    let differing = one ^ two;
    (differing ^ three, (one & two) | (differing & three))
}

/// Add bits of the weight of the first plane to the counters.
fn carry(planes: &mut [u64], mut carry: u64) {
    for plane in planes {
        if carry == 0 {
            break;
        }
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bit_is_set_by_more_than_half_of_the_weight(
            features in vec((prop_oneof![any::<u64>(), 0..4_u64], 0..1000_i64), 0..70),
        ) {
            let (hashes, weights): (Vec<u64>, Vec<i64>) = features.into_iter().unzip();
            let sum_of = |bit: usize| -> i64 {
                hashes.iter().zip(&weights).map(|(hash, weight)| if hash >> bit & 1 == 1 { *weight } else { -weight }).sum()
            };
            let expected = (0..64).fold(0, |bits, bit| bits | u64::from(sum_of(bit) > 0) << bit);
            prop_assert_eq!(weighted(&hashes, &weights), expected);
            prop_assert_eq!(majority(&hashes), weighted(&hashes, &vec![1; hashes.len()]));
        }
    }
}
