//! A table of words by their hashes: eight bytes a word, so that a look-up waits for one cache line.

use crate::memory::prefetch;

/// What a word is, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind(u8);

impl Kind {
    /// It is a feature of a page.
    pub const FEATURE: Self = Self(1);
    /// It marks its sentence.
    pub const MARKER: Self = Self(2);
    /// It ends a sentence.
    pub const SENTENCE_END: Self = Self(4);
    /// A marker phrase, of several words, may begin with it.
    pub const PHRASE: Self = Self(8);
    /// Of every word in a table, so that none is an empty slot.
    const KNOWN: Self = Self(128);

    /// Whether it has all bits of another kind.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Return it with the bits of another kind, or without them.
    #[must_use]
    pub fn with(self, other: Self, is_set: bool) -> Self {
        Self(if is_set { self.0 | other.0 } else { self.0 & !other.0 })
    }
}

/// What is known of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What it is.
    pub kind: Kind,
    /// The place of its IDF among all values, below 2²⁴.
    pub idf: u32,
}

/// Words with their facts. Two words are the same if 32 bits of their hashes and their places in the table are.
///
/// Invariant: at most 5/8 of the slots are in use.
#[derive(Debug)]
pub struct WordTable {
    /// Bits 0 to 7: kind; 8 to 31: IDF; 32 to 63: of the hash. 0 without a word. As many as a power of two.
    slots: Vec<u64>,
    room: usize,
}

impl WordTable {
    /// Return a table for so many words.
    pub fn with_capacity(words: usize) -> Self {
        Self { slots: vec![0; (words.saturating_mul(8) / 5 + 16).next_power_of_two()], room: words }
    }

    /// Ask memory for a word that is looked up later.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, hash as usize & (self.slots.len() - 1));
    }

    /// Return the facts of a word.
    #[inline]
    pub fn get(&self, hash: u64) -> Option<Facts> {
        let slot = self.slots[self.place(hash)];
        (slot != 0).then_some(Facts { kind: Kind(slot as u8), idf: slot as u32 >> 8 })
    }

    /// Set the facts of a word; a new one beyond the capacity is left out.
    pub fn insert(&mut self, hash: u64, facts: Facts) {
        let place = self.place(hash);
        if self.slots[place] == 0 {
            let Some(room) = self.room.checked_sub(1) else { return };
            self.room = room;
        }
        let kind = facts.kind.with(Kind::KNOWN, true);
        self.slots[place] = hash >> 32 << 32 | u64::from(facts.idf) << 8 | u64::from(kind.0);
    }

    /// Return the slot of a word, or the empty one where it belongs.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        while self.slots[place] != 0 && self.slots[place] >> 32 != hash >> 32 {
            place = (place + 1) & mask;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::memory::mix64;

    proptest! {
        #[test]
        fn a_word_has_the_facts_that_it_got_last(words in vec((0..200_u64, any::<u8>(), 0..1_u32 << 24), 0..300)) {
            let (mut table, mut expected) = (WordTable::with_capacity(200), BTreeMap::new());
            for (number, kind, idf) in words {
                let facts = Facts { kind: Kind(kind & 15), idf };
                table.insert(mix64(number), facts);
                expected.insert(number, facts);
            }
            for number in 0..300 {
                let found = table.get(mix64(number)).map(|facts| (facts.kind.with(Kind::KNOWN, false), facts.idf));
                prop_assert_eq!(found, expected.get(&number).map(|facts| (facts.kind, facts.idf)));
            }
        }
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut table = WordTable::with_capacity(10);
        (0..100).for_each(|number| table.insert(mix64(number), Facts::default()));
        assert_eq!((0..100).filter(|&number| table.get(mix64(number)).is_some()).count(), 10);
    }
}
