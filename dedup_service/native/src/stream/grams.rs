//! The grams of a page: the shortest runs of tokens that weigh as much as five characters.
//!
//! A character of a script without spaces weighs 1, a word or a number 5/3: a gram is five characters, three words, or a
//! mixture. One at the end may weigh less, for a last token that is in no other.
//!
//! Source: Broder, "On the resemblance and containment of documents", 1997 (shingles); docs/adr/0038 (the weights).

use super::tokens::{Class, Token};
use crate::memory::GAMMA;

/// Weight of a gram, in thirds of a character.
pub const GRAM: usize = 15;
/// Weight of a character and of any other token, in thirds of a character.
pub const WEIGHTS: [usize; 2] = [3, 5];

/// Replace `hashes` by those of the grams of some tokens, in order, and `ends` by the places behind their last tokens.
///
/// value: of a token, with which it is hashed, not 0, since a gram is a polynomial of them modulo 2^64; weight: of a token
/// in thirds of a character, 3 at least. least: what a gram weighs, 45 at most.
pub fn find_grams(
    count: usize,
    value: impl Fn(usize) -> u64,
    weight: impl Fn(usize) -> usize,
    least: usize,
    hashes: &mut Vec<u64>,
    ends: &mut Vec<u32>,
) {
    hashes.clear();
    ends.clear();
    let mut powers = [1_u64; 16];
    for place in 1..powers.len() {
        powers[place] = powers[place - 1].wrapping_mul(GAMMA);
    }
    let (mut end, mut sum, mut hash) = (0, 0, 0_u64);
    for start in 0..count {
        while sum < least && end < count {
            hash = hash.wrapping_mul(GAMMA).wrapping_add(value(end));
            sum += weight(end);
            end += 1;
        }
        let is_last = sum < least;
        if is_last && ends.last().is_none_or(|&last| last as usize == count) {
            break; // each token is in a gram, or none is
        }
        hashes.push((hash ^ hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9));
        ends.push(end as u32);
        if is_last {
            break;
        }
        sum -= weight(start);
        hash = hash.wrapping_sub(powers[end - start - 1].wrapping_mul(value(start)));
    }
}

/// Replace `hashes` by those of the grams of a page, in order.
pub fn grams_of(tokens: &[Token], hashes: &mut Vec<u64>, ends: &mut Vec<u32>) {
    let weight = |at: usize| WEIGHTS[usize::from(tokens[at].class != Class::Character)];
    find_grams(tokens.len(), |at| tokens[at].hash | 1, weight, GRAM, hashes, ends);
}
