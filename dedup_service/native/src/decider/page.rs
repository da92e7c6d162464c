//! Pages as they come, and the entries of kept pages.

use crate::evidence::Evidence;
use crate::evidence::sketch::{BINS, Sketch};
use crate::store::{self, Row};
use crate::tables::cells::{PARTS, Sieve};
use crate::window::{Young, flags};

/// A page of the log, to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// What its entry will have. The decider sets the ordinal.
    pub row: Row,
    /// Hash of the URL that it claims to be a visit of.
    pub claim: Option<u64>,
    /// Low half of the hash of its host's name, by which guards count hosts.
    pub host_name: u32,
    /// Packed evidence.
    pub evidence: &'a [u8],
    /// Packed keys, 32 bits each.
    pub keys: &'a [u8],
}

impl Page<'_> {
    /// Return what is kept of the page. ordinal: the number of pages decided before it.
    pub fn entry(&self, ordinal: u64) -> Entry {
        let row = Row { ordinal, ..self.row };
        Entry { row, evidence: self.evidence.to_vec(), keys: self.keys.to_vec(), number: None }
    }
}

/// A page with what is read from its evidence and keys once.
#[derive(Debug)]
pub struct Prepared<'a> {
    pub(super) page: Page<'a>,
    pub(super) evidence: Evidence<'a>,
    pub(super) sentences: Vec<u32>,
    pub(super) keys: Vec<u32>,
    pub(super) sieve: Sieve,
}

impl<'a> Prepared<'a> {
    /// Read a page. levels: keys of each part that the cells have; other numbers count as none.
    pub(super) fn new(page: Page<'a>, ordinal: u64, levels: usize) -> Self {
        let evidence = Evidence::new(page.evidence);
        Self {
            page: Page { row: Row { ordinal, ..page.row }, ..page },
            evidence,
            sentences: evidence.sentences().collect(),
            keys: keys_of(page.keys, levels),
            sieve: evidence.sieve(),
        }
    }

    /// Whether the page has all of some flags.
    pub(super) fn has(&self, flags: u8) -> bool {
        self.page.row.flags & flags == flags
    }

    /// Whether a decision is possible: it has a body, and is not too short.
    pub(super) fn can_be_judged(&self) -> bool {
        self.has(flags::BODY_HASH | flags::INDEXED)
    }
}

/// Return an entry as the window has it, with its sketch.
pub(super) fn young_of(row: Row, evidence: &[u8], keys: &[u8]) -> (Young, Sketch) {
    let read = Evidence::new(evidence);
    let sketch = read.sketch().copied().unwrap_or([0; BINS / 8]);
    (Young::new(row, evidence.into(), keys.into(), read.shingles, read.sentences().collect()), sketch)
}

/// Return an entry of the window with everything that a snapshot needs.
pub(super) fn entry_of(young: &Young) -> Entry {
    Entry { row: young.row, evidence: young.evidence.to_vec(), keys: young.keys.to_vec(), number: young.settled_row }
}

/// Read packed keys; none if they are not of so many levels.
pub(super) fn keys_of(packed: &[u8], levels: usize) -> Vec<u32> {
    if packed.len() != 4 * PARTS * levels {
        return Vec::new();
    }
    packed.chunks_exact(4).map(|key| u32::from_le_bytes([key[0], key[1], key[2], key[3]])).collect()
}

/// A kept page with everything that a snapshot needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its row; `evidence_bytes` and `keys_bytes` are not used.
    pub row: Row,
    /// Packed evidence; empty of a removed one.
    pub evidence: Vec<u8>,
    /// Packed keys; of a settled one its path.
    pub keys: Vec<u8>,
    /// Its row in the store; None before it is settled.
    pub number: Option<u32>,
}

impl Entry {
    /// Return a settled entry as the store takes it.
    pub fn stored(&self) -> store::Entry<'_> {
        let row = Row { sieve: Evidence::new(&self.evidence).sieve(), ..self.row };
        store::Entry { row, path: &self.keys, evidence: &self.evidence }
    }
}

/// An entry that was removed when a page was decided, and that the cells still need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Number of the pages before the latest one at its removal.
    pub ordinal: u64,
    /// The entry, without its evidence.
    pub entry: Entry,
}
