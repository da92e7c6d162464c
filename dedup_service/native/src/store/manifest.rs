//! What a commit consists of, in one file that is replaced as a whole: `manifest`.
//!
//! A header says how far the other files count, and has what readers want to know without opening the store. Behind it
//! are the bitmap of live rows, the rows that become zeros once the commit is durable, and what the caller gave. Each
//! part has a checksum. All numbers are little-endian.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::bits::RowSet;
use super::error::{Result, StoreError, unreadable};
use super::mapped_file::replace;
use super::row::checksum;

const MAGIC: &[u8; 8] = b"twinsiev";
const VERSION: u32 = 1;
/// Magic, version, length and checksum of the header.
const START: usize = 20;
const PARTS: usize = 3;

/// Whose rows these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Identity of the log.
    pub log: String,
    /// The space of its fingerprints.
    pub space: String,
}

/// What a commit says of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Whose rows these are.
    pub label: Label,
    /// Identity of the store, by chance: what belongs to another one is recognised.
    pub identity: u64,
    /// Identity of the store that has the rows before `first_row`; 0 without one.
    pub base: u64,
    /// The first row that the store has itself.
    pub first_row: u32,
    /// The row that comes next.
    pub next_row: u32,
    /// Live rows, those of the base included.
    pub live_rows: u64,
    /// Bytes of the file of rows that count.
    pub rows_bytes: u64,
    /// Bytes of the file of evidence that count.
    pub evidence_bytes: u64,
    /// The last record of the log that is in it.
    pub sequence: i64,
    /// The largest sequence of a row.
    pub last_sequence: i64,
    /// Digest of that record, as the caller gave it.
    pub tail: String,
    /// What the caller wants readers of the manifest to know, such as sizes.
    pub note: Vec<u8>,
    /// Commits so far.
    pub number: u64,
}

/// All of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) manifest: Manifest,
    pub(super) live: RowSet,
    pub(super) dead: Vec<Range<u32>>,
    pub(super) extra: Vec<u8>,
}

/// Return the path of the manifest in a folder.
pub(super) fn manifest_path(folder: &Path) -> PathBuf {
    folder.join("manifest")
}

/// Return what the last commit says of the store in `folder`, without opening it; None if there is no manifest.
///
/// # Errors
/// `Damaged` if it is altered, `Foreign` if another version wrote it.
pub fn read_manifest(folder: &Path) -> Result<Option<Manifest>> {
    Ok(read_start(folder)?.map(|(start, _)| start.manifest))
}

/// Return the same, with what the caller had beside the rows.
///
/// # Errors
/// As `read_manifest`.
pub fn read_extra(folder: &Path) -> Result<Option<(Manifest, Vec<u8>)>> {
    Ok(read_commit(folder)?.map(|commit| (commit.manifest, commit.extra)))
}

/// Return the last commit in `folder`; None if there is none.
pub(super) fn read_commit(folder: &Path) -> Result<Option<Commit>> {
    let path = manifest_path(folder);
    let Some((start, mut file)) = read_start(folder)? else { return Ok(None) };
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).map_err(unreadable(&path))?;
    let total = start.parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.len));
    if rest.len() as u64 != total {
        return Err(damaged(&path, &format!("has {} bytes behind its header, which says {total}", rest.len())));
    }
    let mut rest = rest.as_slice();
    let mut next = |part: &Part, name| {
        let (bytes, after) = rest.split_at_checked(part.len as usize).unwrap_or_default();
        rest = after;
        if checksum(0, bytes) == part.sum {
            return Ok(bytes);
        }
        Err(damaged(&path, &format!("does not match the checksum of its {name}")))
    };
    let [live, dead, extra] = &start.parts;
    let (live, dead, extra) = (next(live, "live rows")?, next(dead, "dead rows")?, next(extra, "state")?);
    let end = u64::from(start.manifest.next_row);
    let live = RowSet::decode(start.live_from, live);
    let live = live.filter(|live| live.len() == start.manifest.live_rows && live.next(end).is_none());
    let dead = decode_dead(dead, &(start.manifest.first_row..start.manifest.next_row));
    match (live, dead) {
        (Some(live), Some(dead)) => Ok(Some(Commit { manifest: start.manifest, live, dead, extra: extra.to_vec() })),
        _ => Err(damaged(&path, "contradicts itself")),
    }
}

/// Write a commit durably in place of the last one.
pub(super) fn write_commit(
    folder: &Path,
    manifest: &Manifest,
    live: &RowSet,
    dead: &[Range<u32>],
    extra: &[u8],
) -> Result<()> {
    let (live_from, live) = live.encode();
    let dead: Vec<u8> = dead.iter().flat_map(|rows| [rows.start, rows.end]).flat_map(u32::to_le_bytes).collect();
    let mut header = Vec::new();
    for text in
        [manifest.label.log.as_bytes(), manifest.label.space.as_bytes(), manifest.tail.as_bytes(), &manifest.note]
    {
        header.extend_from_slice(&(text.len() as u64).to_le_bytes());
        header.extend_from_slice(text);
    }
    let numbers = [
        manifest.identity,
        manifest.base,
        u64::from(manifest.first_row),
        u64::from(manifest.next_row),
        manifest.live_rows,
        manifest.rows_bytes,
        manifest.evidence_bytes,
        manifest.sequence as u64,
        manifest.last_sequence as u64,
        manifest.number,
        live_from,
    ];
    header.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
    for part in [&live, &dead, extra] {
        header.extend_from_slice(&(part.len() as u64).to_le_bytes());
        header.extend_from_slice(&checksum(0, part).to_le_bytes());
    }
    let mut start = [MAGIC.as_slice(), &VERSION.to_le_bytes(), &(header.len() as u32).to_le_bytes()].concat();
    start.extend_from_slice(&checksum(0, &header).to_le_bytes());
    replace(&manifest_path(folder), &[&start, &header, &live, &dead, extra])
}

struct Part {
    len: u64,
    sum: u32,
}

struct Start {
    manifest: Manifest,
    live_from: u64,
    parts: [Part; PARTS],
}

/// Read the header of a manifest; return the file behind it, too.
fn read_start(folder: &Path) -> Result<Option<(Start, File)>> {
    let path = manifest_path(folder);
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return if folder.join("manifest.json").exists() { Err(earlier(folder)) } else { Ok(None) };
        }
        file => file.map_err(unreadable(&path))?,
    };
    let mut bytes = Vec::new();
    file.by_ref().take(START as u64).read_to_end(&mut bytes).map_err(unreadable(&path))?;
    let mut fields = Fields(&bytes);
    if fields.take(MAGIC.len() as u64) != Some(MAGIC) {
        return Err(damaged(&path, "is no manifest of a store"));
    }
    let (Some(version), Some(len), Some(sum)) = (fields.half(), fields.half(), fields.half()) else {
        return Err(damaged(&path, "is cut off"));
    };
    if version != VERSION {
        return Err(StoreError::Foreign(format!(
            "{} has version {version}, this twinsieve reads {VERSION}: start a new state folder and read the same input \
             again with `filter`",
            path.display()
        )));
    }
    let mut header = Vec::new();
    file.by_ref().take(u64::from(len)).read_to_end(&mut header).map_err(unreadable(&path))?;
    if header.len() != len as usize || checksum(0, &header) != sum {
        return Err(damaged(&path, "does not match the checksum of its header"));
    }
    let start = Fields(&header).start().ok_or_else(|| damaged(&path, "contradicts itself"))?;
    file.seek(SeekFrom::Start((START + header.len()) as u64)).map_err(unreadable(&path))?;
    Ok(Some((start, file)))
}

fn earlier(folder: &Path) -> StoreError {
    let folder = folder.display();
    StoreError::Foreign(format!(
        "{folder} was written by an earlier version: start a new state folder and read the same input again with \
         `filter`"
    ))
}

fn decode_dead(bytes: &[u8], rows: &Range<u32>) -> Option<Vec<Range<u32>>> {
    let mut fields = Fields(bytes);
    let mut dead = Vec::new();
    while !fields.0.is_empty() {
        let range = fields.half()?..fields.half()?;
        if range.start < rows.start || range.end < range.start || range.end > rows.end {
            return None;
        }
        dead.push(range);
    }
    Some(dead)
}

pub(super) fn damaged(path: &Path, what: &str) -> StoreError {
    StoreError::Damaged(format!("{} {what}", path.display()))
}

/// Bytes that are left to read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn half(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn wide(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn signed(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let len = self.wide()?;
        Some(self.take(len)?.to_vec())
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn row(&mut self) -> Option<u32> {
        u32::try_from(self.wide()?).ok()
    }

    fn part(&mut self) -> Option<Part> {
        Some(Part { len: self.wide()?, sum: self.half()? })
    }

    /// Read a header; its fields are in this order.
    fn start(mut self) -> Option<Start> {
        let label = Label { log: self.text()?, space: self.text()? };
        let (tail, note) = (self.text()?, self.bytes()?);
        let manifest = Manifest {
            label,
            tail,
            note,
            identity: self.wide()?,
            base: self.wide()?,
            first_row: self.row()?,
            next_row: self.row()?,
            live_rows: self.wide()?,
            rows_bytes: self.wide()?,
            evidence_bytes: self.wide()?,
            sequence: self.signed()?,
            last_sequence: self.signed()?,
            number: self.wide()?,
        };
        let start = Start { live_from: self.wide()?, parts: [self.part()?, self.part()?, self.part()?], manifest };
        (self.0.is_empty() && start.manifest.first_row <= start.manifest.next_row).then_some(start)
    }
}
