//! Hashes that turn a word into bits.
//!
//! The usual one is xxh3, in which every output bit depends on every input bit. The seed's Java program uses a rolling
//! hash without that property, which is kept for comparison.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The hash of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordHash {
    /// xxh3 of the UTF-8 bytes.
    Xxh3,
    /// The rolling hash x = u₀·2⁷; x = (x·1000003 ⊕ u) mod 2^f per unit of UTF-16; x ⊕ length.
    ///
    /// Source: `SimHash` introduction with Java code, section 4.
    Java,
}

impl WordHash {
    /// Return the hash of a word. identity: its [`xxh3_of`]. `is_wide`: of 128 bits, not 64.
    pub fn of(self, word: &[u32], identity: u64, is_wide: bool) -> u128 {
        match (self, is_wide) {
            (Self::Xxh3, false) => identity.into(),
            (Self::Xxh3, true) => with_utf8(word, xxh3_128),
            (Self::Java, _) => java_hash(word, if is_wide { u128::MAX } else { u64::MAX.into() }),
        }
    }
}

/// Return the xxh3 hash of the UTF-8 bytes of a word, 64 bits.
#[inline]
pub fn xxh3_of(word: &[u32]) -> u64 {
    with_utf8(word, xxh3_64)
}

#[inline]
fn with_utf8<T>(word: &[u32], hash: impl FnOnce(&[u8]) -> T) -> T {
    const SHORT: usize = 16;
    let characters = word.iter().filter_map(|&code| char::from_u32(code));
    if word.len() > SHORT {
        return hash(characters.collect::<String>().as_bytes());
    }
    let (mut bytes, mut size) = ([0; 4 * SHORT], 0);
    for character in characters {
        size += character.encode_utf8(&mut bytes[size..]).len();
    }
    hash(&bytes[..size])
}

fn java_hash(word: &[u32], mask: u128) -> u128 {
    let units: Vec<u16> = word
        .iter()
        .filter_map(|&code| char::from_u32(code))
        .flat_map(|of| of.encode_utf16(&mut [0; 2]).to_vec())
        .collect();
    let Some(&first) = units.first() else { return 0 };
    let roll = |value: u128, unit: &u16| (value.wrapping_mul(1_000_003) ^ u128::from(*unit)) & mask;
    units.iter().fold(u128::from(first) << 7, roll) ^ units.len() as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_hashes_that_other_programs_give() {
        let word: Vec<u32> = "大桥 bridge 𠮷 of any length".chars().map(u32::from).collect();
        for end in 0..word.len() {
            let text: String = word[..end].iter().filter_map(|&code| char::from_u32(code)).collect();
            assert_eq!(xxh3_of(&word[..end]), xxh3_64(text.as_bytes()));
        }
        let hash = |text: &str| WordHash::Java.of(&text.chars().map(u32::from).collect::<Vec<_>>(), 0, false);
        // Python 2's hash of a string, modulo 2^64.
        assert_eq!((hash(""), hash("a"), hash("the")), (0, 12_416_037_344, 16_951_513_139_072_902_650));
    }
}
