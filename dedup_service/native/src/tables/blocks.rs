//! How a fingerprint is cut into four blocks, and which tables find a pair of fingerprints.
//!
//! A table is for one block: its bucket is the block's value, and an entry's *lane* is the block behind it on the ring of
//! four, or the two blocks behind it where blocks are short. For each radius, `ONE` and `TWO` say how many bits of the
//! block and of the lane may differ in each table, so that at least one table finds every pair within the radius: a
//! pigeonhole principle on a ring, found by search; a test tries all cases.
//!
//! Blocks may leave out bits of the fingerprint. Two fingerprints differ in fewer of some bits than of all, so every pair
//! is still found.
//!
//! Sources: Manku, Jain, Das Sarma, WWW 2007 (blocks); Norouzi, Punjani, Fleet, CVPR 2012 (near keys); Qin et al., "GPH",
//! ICDE 2018 (uneven bounds).

/// Largest radius, in bits, that four blocks search exactly.
pub const MAX_RADIUS: usize = 7;
/// Tables of a level, one for each block.
pub const TABLES: usize = 4;
/// Blocks of at most so many bits have lanes of two blocks.
const SHORT: u32 = 8;

/// Bits of a block (none: the table is not asked) and of its lane that may differ, by table.
pub type Bounds = [(Option<u32>, u32); TABLES];

const OFF: (Option<u32>, u32) = (None, 0);

const fn equal(lane: u32) -> (Option<u32>, u32) {
    (Some(0), lane)
}

const fn near(lane: u32) -> (Option<u32>, u32) {
    (Some(1), lane)
}

/// The bounds of each radius for lanes of one block.
const ONE: [Bounds; MAX_RADIUS + 1] = [
    [equal(0), OFF, OFF, OFF],
    [equal(0), OFF, equal(0), OFF],
    [equal(1), equal(1), equal(0), OFF],
    [equal(1), equal(1), equal(1), equal(1)],
    [equal(1), equal(1), equal(2), near(2)],
    [equal(2), near(2), equal(2), near(2)],
    [equal(2), near(3), near(3), near(2)],
    [near(3), near(3), near(3), near(3)],
];

/// The bounds of each radius for lanes of two blocks.
const TWO: [Bounds; MAX_RADIUS + 1] = [
    [equal(0), OFF, OFF, OFF],
    [equal(0), OFF, OFF, equal(1)],
    [OFF, equal(2), equal(1), equal(1)],
    [equal(2), equal(2), equal(2), equal(2)],
    [equal(2), equal(3), equal(3), near(3)],
    [equal(3), equal(4), near(4), near(3)],
    [near(4), near(4), near(4), near(4)],
    [near(5), near(5), near(5), near(5)],
];

/// Four blocks of some bits of a fingerprint.
#[derive(Debug)]
pub struct Blocks {
    bits: u32,
    gather: Option<Gather>,
    /// The bits of each block, and of its lane, in a fingerprint.
    keys: [u64; TABLES],
    lanes: [u64; TABLES],
}

impl Blocks {
    /// Cut the chosen bits, a multiple of four and at most 64, into four blocks.
    pub fn new(chosen: u64) -> Self {
        let bits = chosen.count_ones() / 4;
        let mut keys = [0; TABLES];
        (0..64).filter(|bit| chosen >> bit & 1 == 1).enumerate().for_each(|(place, bit)| {
            keys[(place / bits.max(1) as usize).min(TABLES - 1)] |= 1 << bit;
        });
        let behind = if bits <= SHORT { 2 } else { 1 };
        let lanes = [0, 1, 2, 3].map(|table| (1..=behind).fold(0, |lane, next| lane | keys[(table + next) % TABLES]));
        Self { bits, gather: (chosen != u64::MAX).then(|| Gather::new(chosen)), keys, lanes }
    }

    /// Number of bits of a block.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The bits of a fingerprint that are a block.
    pub fn mask(&self, table: usize) -> u64 {
        self.keys[table]
    }

    /// The chosen bits of a fingerprint side by side, which `key` and `lane` take.
    #[inline]
    pub fn dense(&self, fingerprint: u64) -> u64 {
        self.gather.as_ref().map_or(fingerprint, |gather| gather.of(fingerprint))
    }

    /// The value of a block.
    #[inline]
    pub fn key(&self, dense: u64, table: usize) -> usize {
        (dense >> (self.bits * (table as u32 & 3))) as usize & ((1 << self.bits) - 1)
    }

    /// The lane of a block.
    #[inline]
    pub fn lane(&self, dense: u64, table: usize) -> u16 {
        let next = self.key(dense, table + 1);
        (if self.bits <= SHORT { next | self.key(dense, table + 2) << self.bits } else { next }) as u16
    }

    /// How many bits may differ in each table. radius: at most `MAX_RADIUS`.
    #[inline]
    pub fn bounds(&self, radius: usize) -> &'static Bounds {
        if self.bits <= SHORT { &TWO[radius] } else { &ONE[radius] }
    }

    /// Whether a table is the first one that finds a pair of fingerprints that differ in these bits.
    #[inline]
    pub fn is_first(&self, table: usize, difference: u64, radius: usize) -> bool {
        let finds = |&table: &usize| {
            let (most, most_lane) = self.bounds(radius)[table];
            most.is_some_and(|most| (difference & self.keys[table]).count_ones() <= most)
                && (difference & self.lanes[table]).count_ones() <= most_lane
        };
        (0..TABLES).find(finds) == Some(table)
    }
}

/// Moves the chosen bits of a word to its lower end, in six steps.
///
/// Source: Warren, "Hacker's Delight", 2nd edition, section 7-4 (compress).
#[derive(Debug)]
struct Gather {
    chosen: u64,
    /// Which bits move by 1, 2, 4, 8, 16 and 32 places.
    moves: [u64; 6],
}

impl Gather {
    fn new(chosen: u64) -> Self {
        let (mut left, mut gaps) = (chosen, !chosen << 1);
        let moves = [0, 1, 2, 3, 4, 5].map(|step| {
            let odd = (0..6).fold(gaps, |odd, half| odd ^ odd << (1 << half));
            let moved = odd & left;
            left = (left ^ moved) | moved >> (1 << step);
            gaps &= !odd;
            moved
        });
        Self { chosen, moves }
    }

    #[inline]
    fn of(&self, word: u64) -> u64 {
        self.moves.iter().enumerate().fold(word & self.chosen, |word, (step, moves)| {
            let moved = word & moves;
            (word ^ moved) | moved >> (1 << step)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every way in which a pair within the radius can differ is within the bounds of a table.
    #[test]
    fn each_pair_within_the_radius_is_found_by_a_table() {
        for (bounds, behind) in [(ONE, 1), (TWO, 2)] {
            for (radius, bounds) in bounds.iter().enumerate() {
                for packed in 0..8u32.pow(4) {
                    let bits = |table: usize| packed >> (3 * (table & 3)) & 7;
                    let lane = |table| (1..=behind).map(|next| bits(table + next)).sum::<u32>();
                    let finds = |table: usize| {
                        bounds[table].0.is_some_and(|most| bits(table) <= most) && lane(table) <= bounds[table].1
                    };
                    let distance: u32 = (0..TABLES).map(bits).sum();
                    assert!((0..TABLES).any(finds) || distance as usize > radius, "radius {radius}, {packed:o}");
                }
            }
        }
    }

    proptest! {
        /// Dense words have the chosen bits in their order, and blocks and lanes the bits that their masks say.
        #[test]
        fn blocks_are_the_chosen_bits(word: u64, other: u64, chosen: u64) {
            let mut chosen = chosen;
            while chosen.count_ones() % 4 != 0 || chosen.count_ones() < 20 {
                chosen |= chosen + 1;
            }
            let blocks = Blocks::new(chosen);
            let bits: Vec<u64> = (0..64).filter(|bit| chosen >> bit & 1 == 1).map(|bit| word >> bit & 1).collect();
            let expected = bits.iter().enumerate().fold(0, |dense, (place, bit)| dense | bit << place);
            let (dense, other_dense) = (blocks.dense(word), blocks.dense(other));
            prop_assert_eq!(dense, expected);
            for table in 0..TABLES {
                let keys = blocks.key(dense, table) ^ blocks.key(other_dense, table);
                let lanes = blocks.lane(dense, table) ^ blocks.lane(other_dense, table);
                prop_assert_eq!(keys.count_ones(), ((word ^ other) & blocks.keys[table]).count_ones());
                prop_assert_eq!(lanes.count_ones(), ((word ^ other) & blocks.lanes[table]).count_ones());
            }
        }
    }
}
