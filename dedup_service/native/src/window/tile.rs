//! Rows of the window that are compared with all pages of a batch at once, while they are in the cache.
//!
//! The comparison of a page with the window is the hottest loop of a decision, so it is laid out for vectors: the bytes
//! of the sieve are in planes, of which each has the same byte of all rows, and what is found is a word with a bit for
//! each row. The compiler makes vectors of plain loops, with AVX2 where the processor has it.

use super::{Found, Matches, Search};
use crate::evidence::sketch::{BINS, Sketch};
use crate::memory::vectorised;
use crate::similarity::sketch_distance;
use crate::tables::cells::MOST_DIFFERING;

/// Rows of a tile: as many as a word has bits.
pub(super) const ROWS: usize = 64;

/// Bits in which two words differ at most that have one of four blocks in common for certain.
const MAX_BLOCK_RADIUS: u32 = 3;

/// Bytes of the sieve.
const SIEVE: usize = 16;

/// Bytes of a fingerprint.
const WORD: usize = 8;

/// The first byte of all rows, then the second, and so on.
type Planes<const BYTES: usize> = [[u8; ROWS]; BYTES];

/// What a page is compared by; a page without shingles, or without a fingerprint, is not found by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) shingles: bool,
    pub(super) words: bool,
    pub(super) body: bool,
}

/// A page of a batch, which is compared with the rows before its own place.
pub(super) struct Asked<'a> {
    pub(super) place: usize,
    pub(super) marks: Marks,
    pub(super) sketch: &'a Sketch,
    pub(super) words: u64,
    pub(super) body: u64,
}

/// `ROWS` rows. Of those that nobody has put yet, and of those of former batches, any values are there.
#[repr(align(64))]
pub(super) struct Tile {
    sieves: Planes<SIEVE>,
    words: Planes<WORD>,
    body: Planes<WORD>,
    sketches: [Sketch; ROWS],
    with_shingles: u64,
    with_words: u64,
    with_body: u64,
}

impl Tile {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            sieves: [[0; ROWS]; SIEVE],
            words: [[0; ROWS]; WORD],
            body: [[0; ROWS]; WORD],
            sketches: [[0; BINS / 8]; ROWS],
            with_shingles: 0,
            with_words: 0,
            with_body: 0,
        })
    }

    /// Write a row.
    pub(super) fn put(&mut self, row: usize, asked: &Asked) {
        put_bytes(&mut self.sieves, row, sieve_of(asked.sketch));
        put_bytes(&mut self.words, row, asked.words.to_le_bytes());
        put_bytes(&mut self.body, row, asked.body.to_le_bytes());
        self.sketches[row] = *asked.sketch;
        let Marks { shingles, words, body } = asked.marks;
        let bits = [&mut self.with_shingles, &mut self.with_words, &mut self.with_body];
        for (word, mark) in bits.into_iter().zip([shingles, words, body]) {
            *word = *word & !(1 << row) | u64::from(mark) << row;
        }
    }

    pub(super) fn sketch(&self, row: usize) -> &Sketch {
        &self.sketches[row]
    }

    /// Compare pages with rows from place `start` on. first: place of the first row. matches: of the pages.
    pub(super) fn compare(
        &self,
        first: usize,
        start: usize,
        pages: &[Asked],
        search: &Search,
        matches: &mut [Matches],
    ) {
        vectorised(
            #[inline(always)]
            || self.compare_all(first, start, pages, search, matches),
        );
    }

    #[inline(always)]
    #[allow(clippy::inline_always)] // as `vectorised` says
    fn compare_all(&self, first: usize, start: usize, pages: &[Asked], search: &Search, matches: &mut [Matches]) {
        let not_left = u64::MAX << start.saturating_sub(first).min(ROWS - 1);
        for (page, matches) in pages.iter().zip(matches) {
            if page.place <= first {
                continue;
            }
            let before = u64::MAX >> ROWS.saturating_sub(page.place - first);
            let rows = not_left & before;
            let mut alike = 0;
            if page.marks.shingles {
                alike = rows_within(&self.sieves, sieve_of(page.sketch), MOST_DIFFERING) & self.with_shingles & rows;
            }
            let mut near = 0;
            if let (Some(radius), true) = (search.words_radius, page.marks.words) {
                near |= near_rows(&self.words, page.words, radius) & self.with_words & rows;
            }
            if let (Some(radius), true) = (search.body_radius, page.marks.body) {
                near |= near_rows(&self.body, page.body, radius) & self.with_body & rows;
            }
            matches.passed += alike.count_ones() as usize;
            let mut left = alike | near;
            while left != 0 {
                let row = left.trailing_zeros() as usize;
                left &= left - 1;
                let by_sieve = alike >> row & 1 == 1
                    && search
                        .most_bits_apart
                        .is_some_and(|most| sketch_distance(page.sketch, &self.sketches[row]) <= most);
                let by_distance = near >> row & 1 == 1;
                if by_sieve || by_distance {
                    matches.found.push(Found { place: first + row, by_sieve, by_distance });
                }
            }
        }
    }
}

/// Return the first bits of a sketch.
#[inline(always)]
#[allow(clippy::inline_always)]
fn sieve_of(sketch: &Sketch) -> [u8; SIEVE] {
    std::array::from_fn(|place| sketch[place])
}

fn put_bytes<const BYTES: usize>(planes: &mut Planes<BYTES>, row: usize, bytes: [u8; BYTES]) {
    for (plane, byte) in planes.iter_mut().zip(bytes) {
        plane[lane_of(row)] = byte;
    }
}

/// Return the rows of which at most so many bits differ from a page's. bytes: of the page; 31 at most.
#[inline(always)]
#[allow(clippy::inline_always)]
fn rows_within<const BYTES: usize>(planes: &Planes<BYTES>, bytes: [u8; BYTES], most: u32) -> u64 {
    let most = most.min(u32::from(u8::MAX)) as u8;
    let mut differing = [0u8; ROWS];
    for (plane, byte) in planes.iter().zip(bytes) {
        for (sum, row) in differing.iter_mut().zip(plane) {
            *sum += (row ^ byte).count_ones() as u8;
        }
    }
    bits_of(differing.map(|sum| u8::from(sum <= most)))
}

/// Return the rows whose fingerprints differ in at most `radius` bits from a page's.
#[inline(always)]
#[allow(clippy::inline_always)]
fn near_rows(planes: &Planes<WORD>, value: u64, radius: u32) -> u64 {
    let bytes = value.to_le_bytes();
    if radius <= MAX_BLOCK_RADIUS && !have_equal_block(planes, bytes) {
        return 0;
    }
    rows_within(planes, bytes, radius)
}

/// Whether any row has one of the four 16-bit blocks of a fingerprint in its place.
///
/// Only such a one can differ from it in `MAX_BLOCK_RADIUS` bits, and it takes a quarter of the time to see that there
/// is none.
#[inline(always)]
#[allow(clippy::inline_always)]
fn have_equal_block(planes: &Planes<WORD>, bytes: [u8; WORD]) -> bool {
    let mut equal = [0u8; ROWS];
    for (planes, block) in planes.chunks_exact(2).zip(bytes.chunks_exact(2)) {
        for (equal, (low, high)) in equal.iter_mut().zip(planes[0].iter().zip(&planes[1])) {
            *equal |= u8::from(*low == block[0]) & u8::from(*high == block[1]);
        }
    }
    equal != [0; ROWS]
}

/// Return bytes that are 0 or 1, each at the lane of a row, as the bits of a word: that of row 0 is lowest.
#[inline(always)]
#[allow(clippy::inline_always)]
fn bits_of(flags: [u8; ROWS]) -> u64 {
    let words: [u64; 8] = bytemuck::cast(flags);
    words.iter().enumerate().fold(0, |bits, (place, word)| bits | word.to_le() << place)
}

/// Return the place of the byte of a row in a plane: eight planes of bits give a word for the least work then.
fn lane_of(row: usize) -> usize {
    row % 8 * 8 + row / 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::mix64;

    /// A sketch of which bits differ from those of sketch 0: so many of the first 128, and of the others.
    fn sketch(in_sieve: u32, others: u32) -> Sketch {
        let mut sketch = [0; BINS / 8];
        for bit in (0..in_sieve).chain(128..128 + others) {
            sketch[bit as usize / 8] |= 1 << (bit % 8);
        }
        sketch
    }

    /// What a page may be compared by: sketch, words, body, and whether it has each.
    fn pages() -> impl Strategy<Value = Vec<(Sketch, u64, u64, [bool; 3])>> {
        let bits = prop_oneof![Just(0), Just(53), Just(54), 0..128u32];
        let sketches = (bits, 0..300u32).prop_map(|(in_sieve, others)| sketch(in_sieve, others));
        let words =
            || prop_oneof![Just(0u64), (0..=9u32).prop_map(|bits| (1 << bits) - 1), any::<u64>().prop_map(mix64)];
        prop::collection::vec((sketches, words(), words(), any::<[bool; 3]>()), 1..=2 * ROWS)
    }

    proptest! {
        /// Both loops find what the definition says: at any place, for any radius.
        #[test]
        fn finds_what_the_definition_says(
            pages in pages(),
            start in 0..2 * ROWS,
            most in prop::option::of(0..400u32),
            radii in any::<[Option<u8>; 2]>(),
        ) {
            let [words_radius, body_radius] = radii.map(|radius| radius.map(|radius| u32::from(radius) % 10));
            let search = Search { by_keys: true, most_bits_apart: most, words_radius, body_radius };
            let asked = |place: usize| {
                let (sketch, words, body, marks) = &pages[place];
                let marks = Marks { shingles: marks[0], words: marks[1], body: marks[2] };
                Asked { place, marks, sketch, words: *words, body: *body }
            };
            let all: Vec<Asked> = (0..pages.len()).map(asked).collect();
            let mut tiles = [Tile::new(), Tile::new()];
            for page in &all {
                tiles[page.place / ROWS].put(page.place % ROWS, page);
            }
            let (mut by_any, mut plainly) = (vec![Matches::default(); all.len()], vec![Matches::default(); all.len()]);
            for (tile, first) in tiles.iter().zip([0, ROWS]).skip(start / ROWS) {
                tile.compare(first, start, &all, &search, &mut by_any);
                tile.compare_all(first, start, &all, &search, &mut plainly);
            }
            let mut expected = vec![Matches::default(); all.len()];
            for (page, matches) in all.iter().zip(&mut expected) {
                for row in all.iter().take(page.place).skip(start) {
                    let differing = |byte: usize| (page.sketch[byte] ^ row.sketch[byte]).count_ones();
                    let sieve = (0..SIEVE).map(differing).sum::<u32>();
                    let passes = page.marks.shingles && row.marks.shingles && sieve <= MOST_DIFFERING;
                    let by_sieve = passes && most.is_some_and(|most| sketch_distance(page.sketch, row.sketch) <= most);
                    let near = |both: bool, xor: u64, radius: Option<u32>| {
                        both && radius.is_some_and(|radius| xor.count_ones() <= radius)
                    };
                    let by_distance = near(page.marks.words && row.marks.words, page.words ^ row.words, words_radius)
                        || near(page.marks.body && row.marks.body, page.body ^ row.body, body_radius);
                    matches.passed += usize::from(passes);
                    if by_sieve || by_distance {
                        matches.found.push(Found { place: row.place, by_sieve, by_distance });
                    }
                }
            }
            prop_assert_eq!(&by_any, &expected);
            prop_assert_eq!(&plainly, &expected);
        }
    }
}
