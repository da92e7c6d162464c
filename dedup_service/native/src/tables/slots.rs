//! An open-addressing hash table in 4,096 parts, each of which grows alone.
//!
//! An element is one word: a tag of 29 bits, a count of 3 bits, a row of 32 bits. Its identity has 41 bits: the upper 12
//! choose the part, the other 29 are the tag. The upper 23 bits of the tag say where in the part the element would like
//! to be (its home); the lower 6 do not, so identities that differ in them alone are neighbours.
//!
//! Elements of a part ascend, with empty places between them. So a search ends at the first larger element, and a part
//! is copied in one pass without hashing. Linear probing never wraps around: a part has places behind its last home.
//!
//! An insertion or removal copies two parts at most, 1/2,048 of the table. Parts are resized in turn as soon as the
//! whole table is too full or too empty, so memory follows the number of elements evenly, and what one part leaves
//! lies beside what the part before it left.
//!
//! Source: Amble and Knuth, "Ordered hash tables", The Computer Journal 17(2), 1974.

use std::mem;
use std::thread;

use crate::huge_pages::{Block, SharedPool};
use crate::memory::prefetch;

/// Parts of a table.
pub const PARTS: usize = 1 << PART_BITS;
/// Bits of an identity.
pub const IDENTITY_BITS: u32 = PART_BITS + TAG_BITS;
/// Lower bits of an identity that do not move its home.
pub const NEAR_BITS: u32 = 6;
/// The row of an element that has none.
pub const NO_ROW: u32 = u32::MAX;
/// The largest count of an element.
pub const MAX_COUNT: u32 = 6;
/// Cache lines that a search reads at most, nearly always.
pub const TO_FIND: usize = 2;
/// Cache lines that an insertion or removal changes at most, in most cases.
pub const TO_CHANGE: usize = 4;

const PART_BITS: u32 = 12;
const TAG_BITS: u32 = 29;
const HOME_BITS: u32 = TAG_BITS - NEAR_BITS;
const ROW_BITS: u32 = 32;
const COUNT_BITS: u32 = 3;
const TAG_SHIFT: u32 = COUNT_BITS + ROW_BITS;

/// Percent of the homes in use, of the whole table: above `FULL` and below `SPARSE` parts are resized in turn, to 85%.
const FULL: usize = 88;
const SPARSE: usize = 72;
/// Percent at which a part grows at once: near it, searches become long.
const PART_FULL: usize = 96;
/// Elements for which a part has room once it has one.
const FIRST_ROOM: usize = 8;
/// Memory goes back to the system when so many times as many elements were there, and `MANY` of them.
const MOST_TIMES: usize = 4;
const MANY: usize = 1 << 16;
/// Elements of a cache line.
const LINE: usize = 8;
/// Empty places behind the last home, and how many a part gets more when they are used up.
const SPARE: usize = 16;

/// What is in a place of a part. Elements are ordered by tag, count and row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Element(u64);

impl Element {
    /// No element; larger than all of them, since their counts are at most [`MAX_COUNT`].
    const EMPTY: Self = Self(u64::MAX);

    /// The element of an identity. count: at most [`MAX_COUNT`].
    #[inline]
    pub fn new(identity: u64, count: u32, row: u32) -> Self {
        let tag = identity & ((1 << TAG_BITS) - 1);
        Self(tag << TAG_SHIFT | u64::from(count.min(MAX_COUNT)) << ROW_BITS | u64::from(row))
    }

    /// The 29 bits of its identity that are not the part.
    #[inline]
    pub fn tag(self) -> u32 {
        (self.0 >> TAG_SHIFT) as u32
    }

    /// A small number that the owner of the table gave it.
    #[inline]
    pub fn count(self) -> u32 {
        (self.0 >> ROW_BITS) as u32 & ((1 << COUNT_BITS) - 1)
    }

    /// Its row, or another number of 32 bits.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn home(self, homes: usize) -> usize {
        (((self.0 >> (TAG_SHIFT + NEAR_BITS)) * homes as u64) >> HOME_BITS) as usize
    }
}

/// A place of a table; good until the next insertion or removal.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    part: usize,
    place: usize,
}

/// Ascending elements with empty places between them, each at its home or behind it without a gap.
#[derive(Default)]
struct Part {
    places: Block<Element>,
    homes: usize,
    used: usize,
}

impl Part {
    /// Homes of a part with so many elements: 85% of many are in use, and fewer of a few.
    fn homes_for(used: usize) -> usize {
        used + used * 2 / 11 + used.min(8)
    }

    /// A part with these elements, ascending. room: how many elements it should have room for.
    fn of_sorted(pool: &SharedPool, room: usize, elements: impl Iterator<Item = Element>) -> Self {
        let homes = Self::homes_for(room);
        let places = if room > 0 { homes + SPARE } else { 0 };
        Self::spread(pool, pool.block(places, Element::EMPTY), homes, elements)
    }

    /// A part with these elements, ascending, in places that are empty.
    fn spread(
        pool: &SharedPool,
        places: Block<Element>,
        homes: usize,
        elements: impl Iterator<Item = Element>,
    ) -> Self {
        let mut part = Self { places, homes, used: 0 };
        let mut next = 0;
        for element in elements {
            let place = element.home(homes).max(next);
            while place >= part.places.len() {
                part.extend(pool);
            }
            part.places[place] = element;
            part.used += 1;
            next = place + 1;
        }
        part
    }

    /// Have more places behind the last one.
    fn extend(&mut self, pool: &SharedPool) {
        let before = self.places.len();
        let mut places = pool.block(before + SPARE + before / 32, Element::EMPTY);
        places[..before].copy_from_slice(&self.places);
        self.places = places;
    }

    /// Copy the elements into as many places as so many elements need.
    fn resize(&mut self, pool: &SharedPool, room: usize) {
        *self = Self::of_sorted(pool, room, self.elements());
    }

    fn elements(&self) -> impl Iterator<Item = Element> + '_ {
        self.places.iter().copied().filter(|&element| element != Element::EMPTY)
    }

    /// The place of the first element that is not smaller, or of the empty place before it.
    ///
    /// Counts the smaller ones of a cache line without a branch, which could not be predicted. None of them lies behind
    /// the place that is sought: an element behind an empty place has a later home.
    #[inline]
    fn seek(&self, element: Element) -> usize {
        let home = element.home(self.homes);
        let behind = self.places.get(home..).unwrap_or_default();
        let mut place = home;
        for line in behind.chunks(LINE) {
            let smaller = line.iter().filter(|&&other| other < element).count();
            place += smaller;
            if smaller < LINE {
                break;
            }
        }
        place
    }

    fn insert(&mut self, pool: &SharedPool, mut place: usize, element: Element) {
        if self.used * 100 >= self.homes * PART_FULL {
            self.resize(pool, (self.used + 1).max(FIRST_ROOM));
            place = self.seek(element);
        }
        let run = self.places[place..].iter().position(|&other| other == Element::EMPTY);
        let end = run.map_or(self.places.len(), |run| place + run);
        if end == self.places.len() {
            self.extend(pool);
        }
        self.places.copy_within(place..end, place + 1);
        self.places[place] = element;
        self.used += 1;
    }

    /// Take out the element at a place; those behind it move back as far as their homes allow.
    fn remove(&mut self, place: usize) {
        let behind = self.places[place + 1..].iter().zip(place + 1..);
        let movable = |&(element, at): &(&Element, usize)| *element != Element::EMPTY && element.home(self.homes) < at;
        let end = place + 1 + behind.take_while(movable).count();
        self.places.copy_within(place + 1..end, place);
        self.places[end - 1] = Element::EMPTY;
        self.used -= 1;
    }
}

/// Elements by identity; see the module.
pub struct SlotTable {
    pool: SharedPool,
    parts: Vec<Part>,
    homes: usize,
    used: usize,
    /// The part that is resized next.
    turn: usize,
    /// The most elements since memory last went back to the system.
    most: usize,
}

impl Default for SlotTable {
    fn default() -> Self {
        Self::of_parts(SharedPool::default(), (0..PARTS).map(|_| Part::default()).collect())
    }
}

impl SlotTable {
    fn of_parts(pool: SharedPool, parts: Vec<Part>) -> Self {
        let homes = parts.iter().map(|part| part.homes).sum();
        let used = parts.iter().map(|part| part.used).sum();
        Self { pool, parts, homes, used, turn: 0, most: used }
    }

    /// Where the first element of an identity is, or would be inserted.
    #[inline]
    pub fn find(&self, identity: u64) -> Spot {
        let part = part_of(identity);
        Spot { part, place: self.parts[part].seek(Element::new(identity, 0, 0)) }
    }

    /// Where the first element of an identity is, or would be inserted, and the element.
    #[inline]
    pub fn get(&self, identity: u64) -> (Spot, Option<Element>) {
        let spot = self.find(identity);
        (spot, self.same(spot, identity).next())
    }

    /// The elements from a spot on, as far as they follow without a gap.
    #[inline]
    pub fn from(&self, spot: Spot) -> impl Iterator<Item = Element> + '_ {
        let behind = self.parts[spot.part].places.get(spot.place..).unwrap_or_default();
        behind.iter().copied().take_while(|&element| element != Element::EMPTY)
    }

    /// The elements of an identity, ascending, where `find` led.
    #[inline]
    pub fn same(&self, spot: Spot, identity: u64) -> impl Iterator<Item = Element> + '_ {
        let tag = Element::new(identity, 0, 0).tag();
        self.from(spot).take_while(move |element| element.tag() == tag)
    }

    /// Put in an element `ahead` places behind the spot where `find` led: behind those of its identity that are smaller.
    pub fn insert(&mut self, spot: Spot, ahead: usize, element: Element) {
        self.change(spot.part, |pool, part| part.insert(pool, spot.place + ahead, element));
        self.used += 1;
        self.most = self.most.max(self.used);
        if self.used * 100 > self.homes * FULL {
            self.resize_next();
        }
    }

    /// Take out the element that lies `ahead` places behind the spot where `find` led.
    pub fn remove(&mut self, spot: Spot, ahead: usize) {
        self.parts[spot.part].remove(spot.place + ahead);
        self.used -= 1;
        if self.used * MOST_TIMES < self.most && self.most >= MANY {
            self.move_all();
        } else if self.used * 100 < self.homes * SPARSE {
            self.resize_next();
        }
    }

    /// Change the count and row of the only element of an identity, which lies where `find` led.
    #[inline]
    pub fn replace(&mut self, spot: Spot, element: Element) {
        self.parts[spot.part].places[spot.place] = element;
    }

    /// Let the part whose turn it is have as many places as it needs.
    fn resize_next(&mut self) {
        let next = self.turn;
        self.turn = (next + 1) % PARTS;
        self.change(next, |pool, part| {
            let homes = Part::homes_for(part.used);
            if homes > part.homes || homes < part.homes - part.homes / 8 {
                part.resize(pool, part.used);
            }
        });
    }

    /// Move all parts into a new pool: the few elements that are left, so that the old one goes.
    fn move_all(&mut self) {
        let pool = SharedPool::default();
        for part in &mut self.parts {
            part.resize(&pool, part.used);
        }
        *self = Self::of_parts(pool, mem::take(&mut self.parts));
    }

    fn change(&mut self, part: usize, change: impl FnOnce(&SharedPool, &mut Part)) {
        let part = &mut self.parts[part];
        let before = part.homes;
        change(&self.pool, part);
        self.homes = self.homes - before + part.homes;
    }

    /// Fetch what a search for an identity looks at, and, if it will be inserted, what moves then: `lines` from its home.
    #[inline]
    pub fn prefetch(&self, identity: u64, lines: usize) {
        let part = &self.parts[part_of(identity)];
        let home = Element::new(identity, 0, 0).home(part.homes);
        for line in 0..lines {
            prefetch(&part.places, home + line * LINE);
        }
    }

    /// All elements: those of each part in turn, ascending.
    #[cfg(test)]
    pub fn elements(&self) -> impl Iterator<Item = Element> + '_ {
        self.parts.iter().flat_map(Part::elements)
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Memory reserved.
    pub fn bytes(&self) -> usize {
        self.pool.bytes() + PARTS * size_of::<Part>()
    }
}

#[inline]
fn part_of(identity: u64) -> usize {
    (identity >> TAG_BITS) as usize % PARTS
}

/// A table to come, of elements in any order: each part is sorted and laid out once.
///
/// Threads fill it together, each its share. A part has its memory from the beginning, with a region for each share; what
/// a region has no room for waits beside it. Regions are written a cache line at a time: single elements would go to as
/// many places as there are parts, more than the processor has addresses at hand for.
pub struct SlotFilling {
    pool: SharedPool,
    expected: usize,
    parts: Vec<Block<Element>>,
    shares: Vec<Added>,
}

/// What a share has added, by part: how many elements, the last ones of them, and those for which its region was too small.
struct Added {
    count: Vec<u32>,
    last: Vec<[Element; LINE]>,
    others: Vec<Vec<Element>>,
}

/// What one thread adds to a table.
pub struct SlotShare<'a> {
    regions: Vec<&'a mut [Element]>,
    added: &'a mut Added,
}

impl SlotFilling {
    /// Nothing yet. expected: about how many elements will come. shares: how many threads add them, at least 1.
    pub fn new(expected: usize, shares: usize) -> Self {
        let pool = SharedPool::default();
        let places = Part::homes_for((expected / PARTS).max(FIRST_ROOM)) + SPARE;
        let parts = (0..PARTS).map(|_| pool.block(places, Element::EMPTY)).collect();
        let last = vec![[Element::EMPTY; LINE]; PARTS];
        let nothing = || Added { count: vec![0; PARTS], last: last.clone(), others: vec![Vec::new(); PARTS] };
        Self { pool, expected, parts, shares: (0..shares).map(|_| nothing()).collect() }
    }

    /// The shares, for some elements; later ones come behind these.
    pub fn shares(&mut self) -> Vec<SlotShare<'_>> {
        let count = self.shares.len();
        let mut shares: Vec<_> = self.shares.iter_mut().map(|added| SlotShare { regions: Vec::new(), added }).collect();
        for part in &mut self.parts {
            let len = part.len();
            let regions = part.chunks_mut(region(len, count)).chain(std::iter::repeat_with(Default::default));
            shares.iter_mut().zip(regions).for_each(|(share, region)| share.regions.push(region));
        }
        shares
    }

    /// The table of these elements, made by as many threads as there are shares. `merge` is told the first identity of a
    /// part and its elements, ascending, and may make fewer of them; what else it returns comes in the order of the parts.
    pub fn finish<T: Default + Send>(
        mut self,
        merge: impl Fn(u64, &mut Vec<Element>) -> T + Sync,
    ) -> (SlotTable, Vec<T>) {
        let mut made: Vec<_> = (0..PARTS).map(|_| (Part::default(), T::default())).collect();
        let count = PARTS.div_ceil(self.shares.len());
        let (pool, shares, merge) = (&self.pool, &self.shares, &merge);
        thread::scope(|scope| {
            let shared_out = self.parts.chunks_mut(count).zip(made.chunks_mut(count)).enumerate();
            for (number, (blocks, made)) in shared_out {
                scope.spawn(move || {
                    let mut elements = Vec::new();
                    for (part, (block, made)) in (number * count..).zip(blocks.iter_mut().zip(made)) {
                        let block = mem::take(block);
                        collect(shares, part, &block, &mut elements);
                        elements.sort_unstable();
                        made.1 = merge((part as u64) << TAG_BITS, &mut elements);
                        made.0 = laid_out(pool, block, &elements);
                    }
                });
            }
        });
        let (parts, others) = made.into_iter().unzip();
        let mut table = SlotTable::of_parts(self.pool, parts);
        if table.used * 2 < self.expected && self.expected >= MANY {
            table.move_all();
        }
        (table, others)
    }
}

impl SlotShare<'_> {
    /// Add an element.
    #[inline]
    pub fn add(&mut self, identity: u64, count: u32, row: u32) {
        let (part, element) = (part_of(identity), Element::new(identity, count, row));
        let (count, last) = (&mut self.added.count[part], &mut self.added.last[part]);
        last[*count as usize % LINE] = element;
        *count += 1;
        let end = *count as usize;
        if end % LINE == 0 {
            match self.regions[part].get_mut(end - LINE..end) {
                Some(line) => line.copy_from_slice(last),
                None => self.added.others[part].extend_from_slice(last),
            }
        } else if end % LINE == LINE - 1 {
            prefetch(self.regions[part], end);
        }
    }
}

/// Take what all shares have added to a part. block: their regions.
fn collect(shares: &[Added], part: usize, block: &[Element], elements: &mut Vec<Element>) {
    elements.clear();
    let regions = block.chunks(region(block.len(), shares.len())).chain(std::iter::repeat(&[][..]));
    for (added, region) in shares.iter().zip(regions) {
        let lines = added.count[part] as usize / LINE * LINE;
        elements.extend_from_slice(&region[..lines - added.others[part].len()]);
        elements.extend_from_slice(&added.others[part]);
        elements.extend_from_slice(&added.last[part][..added.count[part] as usize % LINE]);
    }
}

/// The places of a region, whole cache lines.
fn region(places: usize, shares: usize) -> usize {
    places.div_ceil(shares).next_multiple_of(LINE)
}

/// A part with these elements, ascending, in the memory that it has had unless that is much too little or too much.
fn laid_out(pool: &SharedPool, mut block: Block<Element>, elements: &[Element]) -> Part {
    let wanted = Part::homes_for(elements.len().max(FIRST_ROOM));
    block.truncate(wanted + SPARE);
    let homes = wanted.min(block.len().saturating_sub(SPARE));
    if elements.len() * 100 >= homes * PART_FULL {
        return Part::of_sorted(pool, elements.len(), elements.iter().copied());
    }
    block.fill(Element::EMPTY);
    Part::spread(pool, block, homes, elements.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mix64;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Identities that crowd a few homes of a few parts, their ends among them.
    fn identity(seed: u64) -> u64 {
        let part = [0, 1, PARTS as u64 - 1][seed as usize % 3];
        let home = [0, 1, 77 << 10, (1 << HOME_BITS) - 2, (1 << HOME_BITS) - 1][seed as usize / 3 % 5];
        part << TAG_BITS | home << NEAR_BITS | ((seed / 15) % (1 << NEAR_BITS))
    }

    fn put(table: &mut SlotTable, element: (u64, u32)) {
        let spot = table.find(element.0);
        let ahead = table.same(spot, element.0).take_while(|same| same.row() < element.1).count();
        table.insert(spot, ahead, Element::new(element.0, 0, element.1));
    }

    fn take(table: &mut SlotTable, element: (u64, u32)) {
        let spot = table.find(element.0);
        let ahead = table.same(spot, element.0).position(|same| same.row() == element.1).unwrap();
        table.remove(spot, ahead);
    }

    /// Each element is at its home or behind it without a gap, and they ascend.
    fn check(table: &SlotTable, expected: &BTreeSet<(u64, u32)>) {
        let elements: Vec<_> = expected.iter().map(|&(identity, row)| Element::new(identity, 0, row)).collect();
        assert_eq!(table.elements().collect::<Vec<_>>(), elements);
        assert_eq!(table.len(), elements.len());
        assert_eq!(table.homes, table.parts.iter().map(|part| part.homes).sum::<usize>());
        for part in &table.parts {
            for (place, element) in part.places.iter().enumerate().filter(|(_, element)| **element != Element::EMPTY) {
                let home = element.home(part.homes);
                assert!(home <= place && part.places[home..place].iter().all(|other| *other != Element::EMPTY));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A table has what a set has, after insertions and removals in any order, also when built at once.
        #[test]
        fn a_table_is_a_set(seeds in prop::collection::vec((0..4_000u64, any::<bool>(), 0..3u32), 0..1_500)) {
            let (mut table, mut expected) = (SlotTable::default(), BTreeSet::new());
            for (seed, removes, row) in seeds {
                let element = (identity(seed), u32::MAX - row);
                if removes == expected.contains(&element) {
                    if removes { take(&mut table, element) } else { put(&mut table, element) }
                    if removes { expected.remove(&element) } else { expected.insert(element) };
                }
            }
            check(&table, &expected);
            let mut filling = SlotFilling::new(expected.len() / 2, 3);
            for (number, &(identity, row)) in expected.iter().rev().enumerate() {
                filling.shares()[number % 3].add(identity, 0, row);
            }
            let (mut built, _) = filling.finish(|_, _| ());
            check(&built, &expected);
            while let Some(element) = expected.pop_last() {
                take(&mut built, element);
            }
            check(&built, &expected);
        }
    }

    /// A full table has 8.5 to 11 bytes an element at every size beside its first pages, and gives back what most left.
    #[test]
    fn memory_follows_the_elements() {
        let identity = |number: u64| mix64(number) >> (64 - IDENTITY_BITS);
        let (mut table, empty, count) = (SlotTable::default(), SlotTable::default().bytes() + (2 << 20), 1_500_000);
        for number in 0..count {
            put(&mut table, (identity(number), 7));
            if number % 100_000 == 99_999 && number > 500_000 {
                let bytes = (table.bytes() - empty) as f64 / (number + 1) as f64;
                assert!((8.5..11.0).contains(&bytes), "{bytes} bytes an element of {number}");
            }
        }
        let full = table.bytes();
        for number in 0..count {
            take(&mut table, (identity(number), 7));
            if number == count * 4 / 5 {
                assert!(table.bytes() < full / 2);
            }
        }
        assert!(table.bytes() < empty + (full - empty) / 50 && table.len() == 0);
    }

    /// Identities that all have one home make searches long, and nothing else.
    #[test]
    fn one_home_may_have_everything() {
        let (mut table, mut expected) = (SlotTable::default(), BTreeSet::new());
        for number in 0..3_000 {
            let element = ((1 << IDENTITY_BITS) - 1 - u64::from(number % 64), number);
            put(&mut table, element);
            expected.insert(element);
        }
        check(&table, &expected);
        let largest = Element::new(u64::MAX, u32::MAX, u32::MAX);
        assert!(largest < Element::EMPTY && largest.count() == MAX_COUNT);
    }

    /// A table of fewer or more elements than were expected has the memory of those that came.
    #[test]
    fn a_filling_need_not_know_how_many_come() {
        for (expected, count) in [(1_000_000, 1_000), (1_000, 1_000_000), (1_000_000, 600_000), (1, 0)] {
            let mut filling = SlotFilling::new(expected, 2);
            let mut shares = filling.shares();
            for number in 0..count {
                shares[number as usize % 2].add(mix64(number) >> (64 - IDENTITY_BITS), 0, 7);
            }
            drop(shares);
            let table = filling.finish(|_, _| ()).0;
            assert_eq!(table.len(), count as usize);
            let most = 20 * count as usize + SlotTable::default().bytes() + (2 << 20);
            assert!(table.bytes() <= most, "{} bytes, {most}", table.bytes());
        }
    }
}
