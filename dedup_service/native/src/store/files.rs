//! The three files that grow: rows, places, evidence.
//!
//! A row has two places: where it begins in `rows`, and where its evidence does. Each has 6 bytes, and 2 of checksum. Both
//! end where those of the next row begin, so places are needed after the row was erased, and stay. Evidence is a checksum
//! and the bytes.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::bits::RowSet;
use super::error::{Result, StoreError};
use super::manifest::{Manifest, damaged};
use super::mapped_file::{BLOCK, MappedFile};
use super::row::{Entry, Record, Row, checksum, word};

const PLACE_BYTES: u64 = 8;
const PLACE_BITS: u32 = 48;
/// Bytes of the places of a row.
pub(super) const PLACES_BYTES: u64 = 2 * PLACE_BYTES;
/// Bytes of the checksum of evidence.
const EVIDENCE_START: usize = 4;

/// A file that places lead to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Rows,
    Evidence,
}

/// Where consecutive rows are in the files of rows and of evidence.
pub(super) struct Extent {
    pub(super) rows: Range<u64>,
    pub(super) evidence: Range<u64>,
}

/// The files as one owner knows them. A clone reads, in any thread, what was there when it was made.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) rows: MappedFile,
    pub(super) places: MappedFile,
    pub(super) evidence: MappedFile,
    pub(super) is_writable: bool,
    pub(super) identity: u64,
    pub(super) first_row: u32,
    pub(super) next_row: u32,
}

impl Files {
    /// Return the paths of the files in a folder.
    pub(super) fn paths(folder: &Path) -> [PathBuf; 3] {
        ["rows", "places", "evidence"].map(|name| folder.join(name))
    }

    /// Open the files of a manifest; for writing, cut off what it does not count.
    pub(super) fn open(folder: &Path, manifest: &Manifest, is_writable: bool) -> Result<Self> {
        let rows = u64::from(manifest.next_row - manifest.first_row);
        let [rows_path, places_path, evidence_path] = Self::paths(folder);
        Ok(Self {
            rows: MappedFile::open(rows_path, manifest.rows_bytes, is_writable)?,
            places: MappedFile::open(places_path, rows * PLACES_BYTES, is_writable)?,
            evidence: MappedFile::open(evidence_path, manifest.evidence_bytes, is_writable)?,
            is_writable,
            identity: manifest.identity,
            first_row: manifest.first_row,
            next_row: manifest.next_row,
        })
    }

    /// Append pages; nothing is appended if that fails.
    pub(super) fn append(&mut self, pages: &[Entry]) -> Result<()> {
        let next_row = u64::from(self.next_row) + pages.len() as u64;
        let next_row = u32::try_from(next_row).map_err(|_| self.used_up("rows"))?;
        let (mut records, mut places, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for (number, page) in (self.next_row..next_row).zip(pages) {
            let seed = self.seed(number);
            let starts = [self.rows.len + records.len() as u64, self.evidence.len + bytes.len() as u64];
            for (part, start) in [Part::Rows, Part::Evidence].into_iter().zip(starts) {
                places.extend_from_slice(&place_word(seed, part, start).to_le_bytes());
            }
            page.row.encode(page.path, seed, &mut records);
            bytes.extend_from_slice(&checksum(seed, page.evidence).to_le_bytes());
            bytes.extend_from_slice(page.evidence);
        }
        let ends = [self.rows.len + records.len() as u64, self.evidence.len + bytes.len() as u64];
        if ends.into_iter().any(|end| end >= 1 << PLACE_BITS) {
            return Err(self.used_up("bytes"));
        }
        let mut parts = [(&mut self.rows, records), (&mut self.places, places), (&mut self.evidence, bytes)];
        for (file, part) in &mut parts {
            file.write(part)?;
        }
        for (file, part) in parts {
            file.len += part.len() as u64;
        }
        self.next_row = next_row;
        Ok(())
    }

    /// Return what the record of a row is; nothing is erased. buffer: gets the record.
    #[inline]
    pub(super) fn record(&self, row: u32, buffer: &mut Vec<u8>) -> Result<Record> {
        let range = self.range(Part::Rows, row..row.saturating_add(1))?;
        buffer.clear();
        buffer.extend_from_slice(self.rows.bytes(range.start, range.end - range.start).unwrap_or_default());
        Ok(Row::decode(self.seed(row), buffer))
    }

    /// Return the evidence of a row of the files; None if it is altered or erased. buffer: see `Store::evidence`.
    #[inline]
    pub(super) fn evidence<'a>(&'a self, row: u32, buffer: &'a mut Vec<u8>) -> Result<Option<&'a [u8]>> {
        let range = self.range(Part::Evidence, row..row.saturating_add(1))?;
        let Some(mut bytes) = self.evidence.bytes(range.start, range.end - range.start) else {
            return Ok(None);
        };
        if !self.is_writable {
            buffer.clear();
            buffer.extend_from_slice(bytes);
            bytes = buffer;
        }
        let found = bytes.split_at_checked(EVIDENCE_START);
        Ok(found.filter(|(sum, bytes)| checksum(self.seed(row), bytes) == word(sum, 0) as u32).map(|(_, bytes)| bytes))
    }

    /// Return where some rows, or their evidence, are; Damaged if a place is altered.
    #[inline]
    pub(super) fn range(&self, part: Part, rows: Range<u32>) -> Result<Range<u64>> {
        let range = self.place(part, rows.start)?..self.place(part, rows.end)?;
        if range.start <= range.end {
            return Ok(range);
        }
        Err(damaged(&self.places.path, &format!("has row {} behind row {}", rows.start, rows.end)))
    }

    /// Return where some rows are, with their evidence; as `range`.
    pub(super) fn extent(&self, rows: Range<u32>) -> Result<Extent> {
        Ok(Extent { rows: self.range(Part::Rows, rows.clone())?, evidence: self.range(Part::Evidence, rows)? })
    }

    /// Return some dead rows with the dead ones beside them in the same blocks: a disk gives back whole blocks.
    pub(super) fn in_whole_blocks(&self, rows: Range<u32>, live: &RowSet) -> Result<Range<u32>> {
        let (own, mut rows) = (self.extent(rows.clone())?, rows);
        while rows.start > self.first_row && !live.has(rows.start - 1) {
            let reached = self.extent(rows.start..rows.start)?;
            if reached.rows.start <= block(own.rows.start) && reached.evidence.start <= block(own.evidence.start) {
                break;
            }
            rows.start -= 1;
        }
        while rows.end < self.next_row && !live.has(rows.end) {
            let reached = self.extent(rows.end..rows.end)?;
            if reached.rows.end >= block_end(own.rows.end) && reached.evidence.end >= block_end(own.evidence.end) {
                break;
            }
            rows.end += 1;
        }
        Ok(rows)
    }

    /// Make the bytes of rows zeros. The rows come first: evidence that cannot be read has a row that says why.
    pub(super) fn erase(&self, rows: Range<u32>) -> Result<()> {
        let extent = self.extent(rows)?;
        self.rows.erase(extent.rows)?;
        self.evidence.erase(extent.evidence)
    }

    /// Make durable what was appended and erased.
    pub(super) fn sync(&self) -> Result<()> {
        [&self.evidence, &self.places, &self.rows].into_iter().try_for_each(MappedFile::sync)
    }

    /// Return the bytes that the files take on the disk.
    pub(super) fn disk_bytes(&self) -> u64 {
        [&self.evidence, &self.places, &self.rows].into_iter().map(MappedFile::disk_bytes).sum()
    }

    /// Return where a row, or its evidence, begins; for the next row, where the file ends.
    #[inline]
    fn place(&self, part: Part, row: u32) -> Result<u64> {
        let at = u64::from(row.saturating_sub(self.first_row)) * PLACES_BYTES + part as u64 * PLACE_BYTES;
        let end = if matches!(part, Part::Rows) { self.rows.len } else { self.evidence.len };
        let Some(bytes) = self.places.bytes(at, PLACE_BYTES) else { return Ok(end) };
        let stored = word(bytes, 0);
        let place = stored & ((1 << PLACE_BITS) - 1);
        if place_word(self.seed(row), part, place) == stored && place <= end {
            return Ok(place);
        }
        Err(damaged(&self.places.path, &format!("has an altered place of row {row}, at byte {at}")))
    }

    /// Return what the checksums of a row begin with.
    pub(super) fn seed(&self, row: u32) -> u32 {
        (self.identity as u32 ^ (self.identity >> 32) as u32).wrapping_add(row)
    }

    fn used_up(&self, what: &str) -> StoreError {
        StoreError::NumbersUsed(format!("{} has no room for more {what}", self.rows.path.display()))
    }
}

fn block(at: u64) -> u64 {
    at / BLOCK * BLOCK
}

fn block_end(at: u64) -> u64 {
    at.next_multiple_of(BLOCK)
}

pub(super) fn place_word(seed: u32, part: Part, place: u64) -> u64 {
    place | u64::from(checksum(seed ^ part as u32, &place.to_le_bytes())) << PLACE_BITS
}
