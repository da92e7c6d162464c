//! Equal hashes among the pages of a batch and the entries that are not settled yet.
//!
//! The tables have settled entries alone. The others are some thousands, and nearly all of them have no hash that a
//! batch asks for, so they pass a filter first.

/// The hashes of one kind that pages ask for.
///
/// Invariant: `asked` ascends; `filter` has the bit of the lowest `FILTER_BITS` bits of each value.
pub(super) struct AskedHashes {
    asked: Vec<(u64, usize)>,
    filter: Vec<u64>,
}

const FILTER_BITS: u32 = 15;

impl AskedHashes {
    /// asked: hashes, and the places of the pages that ask for them.
    pub(super) fn new(asked: impl Iterator<Item = (u64, usize)>) -> Self {
        let mut hashes = Self { asked: asked.collect(), filter: vec![0; 1 << FILTER_BITS >> 6] };
        hashes.asked.sort_unstable();
        for (value, _) in &hashes.asked {
            let (word, bit) = bit_of(*value);
            hashes.filter[word] |= bit;
        }
        hashes
    }

    /// Iterate over the pages behind a place that ask for a value.
    #[inline]
    pub(super) fn pages_behind(&self, place: usize, value: u64) -> impl Iterator<Item = usize> + '_ {
        let (word, bit) = bit_of(value);
        let asked = if self.filter[word] & bit == 0 { &[] } else { self.asked.as_slice() };
        let first = asked.partition_point(|asked| *asked <= (value, place));
        asked[first..].iter().take_while(move |asked| asked.0 == value).map(|asked| asked.1)
    }
}

fn bit_of(value: u64) -> (usize, u64) {
    let bit = value as usize & ((1 << FILTER_BITS) - 1);
    (bit >> 6, 1 << (bit & 63))
}
