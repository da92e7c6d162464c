//! The window: the youngest kept pages, compared one by one before they enter the tables.
//!
//! All tables of an index change exactly so many pages behind the log as the window has, so that a part of the index on
//! another machine may be a bounded number of pages behind and still find the same candidates. The pages in between are
//! few: each new page is compared with all of them, in one loop for a batch of pages. A page of the window is a
//! candidate if
//!
//! - both have shingles, at most `MOST_DIFFERING` of the first 128 bits of their sketches differ (the sieve), and their
//!   whole sketches say that the Jaccard similarity may reach a bound; or
//! - a fingerprint of both is within the radius of its channel.
//!
//! Pages of a batch take their places in advance (`announce`), so that they are compared with each other in the same
//! loop; what is not kept is closed up when the batch ends (`finish`). Entries that left the window stay until they are
//! *settled*: have a row in all tables. A place is the number of an entry in the order of its coming, from 0; it
//! changes at the end of its batch alone.
//!
//! Invariant: the answer is a function of the entries that are in the window, in any order of insertion.

mod equal;
#[cfg(test)]
mod tests;
mod tile;

use std::collections::VecDeque;

use equal::AskedHashes;
use tile::{Asked, Marks, ROWS, Tile};

use crate::evidence::sketch::Sketch;
use crate::store::Row;
use crate::tables::cells::Sieve;

/// Flags of a `Row`: which values it has, and what is known of it.
pub mod flags {
    /// It has a fingerprint of its words.
    pub const WORDS: u8 = 1;
    /// It has a fingerprint of its body.
    pub const BODY: u8 = 2;
    /// It has a hash of its body.
    pub const BODY_HASH: u8 = 4;
    /// The page could be judged, so it is found by its fingerprints.
    pub const INDEXED: u8 = 8;
    /// It has a hash of title and body.
    pub const TEXT_HASH: u8 = 16;
    /// It left the window: it is in the tables, and its keys are its path through the cells.
    pub const SETTLED: u8 = 32;
    /// Its body is long enough for an equal one to be a copy under any title.
    pub const BODY_DECIDES: u8 = 64;
}

/// A page of the window, or of the batch that is announced.
#[derive(Clone, Debug, Default)]
pub struct Young {
    /// What is kept of it; the sizes of evidence and keys are left out.
    pub row: Row,
    /// Its packed evidence.
    pub evidence: Box<[u8]>,
    /// Its packed keys; its path through the cells once it is settled.
    pub keys: Box<[u8]>,
    /// Shingles of its text.
    pub shingles: u32,
    /// Its sentence values.
    pub sentences: Box<[u32]>,
    /// Its row in the store, once it is settled.
    pub settled_row: Option<u32>,
    is_live: bool,
    is_kept: bool,
}

impl Young {
    /// Return a page as it is announced: not kept yet.
    pub fn new(row: Row, evidence: Box<[u8]>, keys: Box<[u8]>, shingles: u32, sentences: Box<[u32]>) -> Self {
        Self { row, evidence, keys, shingles, sentences, ..Self::default() }
    }

    /// Whether it is kept, and was not removed since.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    fn has(&self, flags: u8) -> bool {
        self.row.flags & flags == flags
    }

    fn ordinal(&self) -> i64 {
        self.row.ordinal as i64
    }

    /// Return it as the tiles have it.
    fn asked<'a>(&self, place: usize, sketch: &'a Sketch) -> Asked<'a> {
        let marks = Marks {
            shingles: self.shingles > 0,
            words: self.has(flags::INDEXED | flags::WORDS),
            body: self.has(flags::INDEXED | flags::BODY),
        };
        Asked { place, marks, sketch, words: self.row.words, body: self.row.body }
    }
}

/// By what pages are compared with the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Whether shingles are compared, of pages that have keys.
    pub by_keys: bool,
    /// In how many bits sketches differ at most; none if no two are similar enough.
    pub most_bits_apart: Option<u32>,
    /// In how many bits fingerprints of words differ at most; none if they are not compared.
    pub words_radius: Option<u32>,
    /// The same of body.
    pub body_radius: Option<u32>,
}

/// An entry, or an earlier page of the batch, that may be similar to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub place: usize,
    /// Whether the sieve and the sketches say so.
    pub by_sieve: bool,
    /// Whether a fingerprint says so.
    pub by_distance: bool,
}

/// What a page has in common with the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// By places, ascending.
    pub found: Vec<Found>,
    /// How many the sieve let through.
    pub passed: usize,
}

/// Where entries that are not settled, or earlier pages of the batch, have the hashes of a page: places, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EqualPlaces {
    /// The URL of the page.
    pub urls: Vec<usize>,
    /// The URL that the page claims.
    pub claims: Vec<usize>,
    /// Title and body.
    pub texts: Vec<usize>,
    /// The body, of those whose body decides.
    pub bodies: Vec<usize>,
}

/// Kept pages of the window, in order of their ordinals, those behind it that are not settled, and the batch announced.
///
/// Invariant: entries from `start` to `settled` are settled, those up to `end` are kept, and those behind `end` are the
/// batch; `young` are live and not settled. `tiles` have the same places, from a multiple of `ROWS` on.
#[derive(Default)]
pub struct Window {
    entries: VecDeque<Young>,
    tiles: VecDeque<Box<Tile>>,
    start: usize,
    settled: usize,
    end: usize,
    young: usize,
    left: Option<i64>,
}

impl Window {
    /// Return the number of live entries that are not settled.
    pub fn len(&self) -> usize {
        self.young
    }

    /// Return the number of pages that are announced.
    pub fn announced(&self) -> usize {
        self.start + self.entries.len() - self.end
    }

    /// Give the pages of a batch their places, in which they are not live. Adds no others until `finish`.
    pub fn announce(&mut self, pages: impl IntoIterator<Item = (Young, Sketch)>) {
        self.finish();
        while self.start < self.settled && self.entries.front().is_some_and(|entry| self.has_left(entry)) {
            self.entries.pop_front();
            self.start += 1;
            if self.start % ROWS == 0 {
                self.tiles.pop_front();
            }
        }
        for (page, sketch) in pages {
            let place = self.start + self.entries.len();
            self.put(&page.asked(place, &sketch));
            self.entries.push_back(Young { is_live: false, is_kept: false, ..page });
        }
    }

    /// Keep page number `page` of those announced. live: false for one that was removed before the window was restored.
    pub fn keep(&mut self, page: usize, live: bool) {
        let entry = &mut self.entries[self.end - self.start + page];
        self.young += usize::from(live && !entry.is_live);
        entry.is_kept = true;
        entry.is_live |= live;
    }

    /// Close up the places of pages of the batch that were not kept.
    pub fn finish(&mut self) {
        let batch = self.entries.split_off(self.end - self.start);
        for (place, page) in (self.end..).zip(batch).filter(|(_, page)| page.is_kept) {
            if place != self.end {
                let sketch = *self.sketch(place);
                self.put(&page.asked(self.end, &sketch));
            }
            self.entries.push_back(page);
            self.end += 1;
        }
    }

    /// Return what each page of the batch has in common with those before it, pages of the batch included.
    ///
    /// Removed entries, and settled ones that left the window, are among them: see `at`.
    pub fn compare(&self, search: &Search) -> Vec<Matches> {
        let mut matches = vec![Matches::default(); self.announced()];
        let mut pages: Vec<Asked> = Vec::with_capacity(matches.len());
        for (place, page) in self.batch() {
            let mut asked = page.asked(place, self.sketch(place));
            asked.marks.shingles &= search.by_keys && !page.keys.is_empty();
            pages.push(asked);
        }
        for (tile, first) in self.tiles.iter().zip((self.start / ROWS * ROWS..).step_by(ROWS)) {
            tile.compare(first, self.start, &pages, search, &mut matches);
        }
        matches
    }

    /// Return where the hashes of each page of the batch are, in entries and pages before it: see `live`.
    ///
    /// claims: of each page of the batch, the hash of the URL that it claims.
    pub fn equal(&self, claims: &[Option<u64>]) -> Vec<EqualPlaces> {
        let mut equal = vec![EqualPlaces::default(); self.announced()];
        let with = |flag: u8, hash: fn(&Row) -> u64| {
            let pages = self.batch().filter(move |(_, page)| page.has(flag));
            AskedHashes::new(pages.map(move |(place, page)| (hash(&page.row), place)))
        };
        let urls = with(0, |row| row.url_hash);
        let claims =
            AskedHashes::new(claims.iter().zip(self.end..).filter_map(|(claim, place)| Some(((*claim)?, place))));
        let (texts, bodies) =
            (with(flags::TEXT_HASH, |row| row.text_hash), with(flags::BODY_DECIDES, |row| row.body_hash));
        for (place, entry) in self.from(self.settled) {
            let row = &entry.row;
            for page in urls.pages_behind(place, row.url_hash) {
                equal[page - self.end].urls.push(place);
            }
            for page in claims.pages_behind(place, row.url_hash) {
                equal[page - self.end].claims.push(place);
            }
            for page in texts.pages_behind(place, row.text_hash).filter(|_| entry.has(flags::TEXT_HASH)) {
                equal[page - self.end].texts.push(place);
            }
            for page in bodies.pages_behind(place, row.body_hash).filter(|_| entry.has(flags::BODY_DECIDES)) {
                equal[page - self.end].bodies.push(place);
            }
        }
        equal
    }

    /// Return the entry at a place; none if it was removed, or is in the window no more.
    pub fn at(&self, place: usize) -> Option<&Young> {
        self.live(place).filter(|entry| place >= self.settled || !self.has_left(entry))
    }

    /// Return the live entry at a place, whether it left the window or not.
    pub fn live(&self, place: usize) -> Option<&Young> {
        self.entries.get(place.checked_sub(self.start)?).filter(|entry| entry.is_live)
    }

    /// Return the sketch of the page at a place that `compare` has returned or `announce` has given.
    pub fn sketch(&self, place: usize) -> &Sketch {
        self.tiles[place / ROWS - self.start / ROWS].sketch(place % ROWS)
    }

    /// Return the live entry at `sequence` that is not settled.
    pub fn get(&self, sequence: i64) -> Option<&Young> {
        self.place_of(sequence).map(|place| &self.entries[place - self.start])
    }

    /// Return the first live entry that is not settled.
    pub fn earliest(&self) -> Option<&Young> {
        self.iter().next()
    }

    /// Iterate over the live entries that are not settled, in order of sequence.
    pub fn iter(&self) -> impl Iterator<Item = &Young> {
        self.from(self.settled).map(|(_, entry)| entry).filter(|entry| entry.is_live)
    }

    /// Return the first live entry that is not settled and has this hash of its URL.
    pub fn visit(&self, url: u64) -> Option<&Young> {
        self.iter().find(|entry| entry.row.url_hash == url)
    }

    /// Remove the live entry at `sequence` that is not settled; return whether there was one.
    ///
    /// Its keys stay, which the cells will still need.
    pub fn remove(&mut self, sequence: i64) -> bool {
        let Some(place) = self.place_of(sequence) else { return false };
        let entry = &mut self.entries[place - self.start];
        (entry.is_live, entry.evidence) = (false, Box::default());
        entry.row.flags &= !flags::BODY_DECIDES;
        self.young -= 1;
        true
    }

    /// Remove a settled entry, by its ordinal, if it is still here.
    pub fn forget(&mut self, ordinal: i64) {
        let settled = self.settled - self.start;
        let place = self.entries.partition_point(|entry| entry.ordinal() < ordinal);
        let entry = self.entries.get_mut(place).filter(|entry| place < settled && entry.ordinal() == ordinal);
        if let Some(entry) = entry.filter(|_| self.left.is_none_or(|left| ordinal > left)) {
            entry.is_live = false;
        }
    }

    /// Return how many entries up to an ordinal are not settled, removed ones, too.
    pub fn backlog(&self, ordinal: i64) -> usize {
        let end = self.start + self.entries.partition_point(|entry| entry.ordinal() <= ordinal);
        end.clamp(self.settled, self.end) - self.settled
    }

    /// Iterate over the entries up to an ordinal that are not settled, in order, removed ones, too.
    ///
    /// With each comes the first part of its sketch; zeros for one that was removed.
    pub fn unsettled(&self, ordinal: i64) -> impl Iterator<Item = (&Young, Sieve)> {
        self.from(self.settled).take(self.backlog(ordinal)).map(|(place, entry)| {
            let sieve: Sieve = bytemuck::pod_read_unaligned(&self.sketch(place)[..size_of::<Sieve>()]);
            (entry, if entry.is_live { sieve.map(u64::from_le) } else { Sieve::default() })
        })
    }

    /// Settle the first entries that are not, as many as there are paths. row: of the first one; paths: of each.
    pub fn settle(&mut self, row: u32, paths: impl IntoIterator<Item = Box<[u8]>>) {
        let unsettled = self.entries.range_mut(self.settled - self.start..self.end - self.start);
        for ((entry, path), row) in unsettled.zip(paths).zip(row..) {
            entry.keys = path;
            entry.settled_row = Some(row);
            entry.row.flags |= flags::SETTLED;
            self.young -= usize::from(entry.is_live);
            self.settled += 1;
        }
    }

    /// Let the entries up to an ordinal leave the window, of which those that are settled are dropped.
    pub fn leave(&mut self, ordinal: i64) {
        self.left = self.left.max(Some(ordinal));
    }

    fn has_left(&self, entry: &Young) -> bool {
        self.left.is_some_and(|left| entry.ordinal() <= left)
    }

    /// Iterate over the entries from a place on, with their places.
    fn from(&self, place: usize) -> impl Iterator<Item = (usize, &Young)> {
        (place..).zip(self.entries.range(place - self.start..))
    }

    fn batch(&self) -> impl Iterator<Item = (usize, &Young)> {
        self.from(self.end)
    }

    /// Return the place of the live entry at `sequence` that is not settled.
    fn place_of(&self, sequence: i64) -> Option<usize> {
        let place = self.start + self.entries.partition_point(|entry| entry.row.sequence < sequence);
        let entry = self.live(place).filter(|entry| place >= self.settled && entry.row.sequence == sequence);
        entry.map(|_| place)
    }

    /// Write a page to its place in the tiles.
    fn put(&mut self, asked: &Asked) {
        let tile = asked.place / ROWS - self.start / ROWS;
        while self.tiles.len() <= tile {
            self.tiles.push_back(Tile::new());
        }
        self.tiles[tile].put(asked.place % ROWS, asked);
    }
}
