//! The second halves of commits, which wait for the disk, and the rows that an erasure makes zeros.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bits::RowSet;
use super::error::{Result, StoreError, unreadable};
use super::files::Files;
use super::manifest::{Manifest, damaged, write_commit};
use super::mapped_file::{delete, replace};
use super::row::{checksum, word};

/// What a store and the threads that finish its commits have in common.
#[derive(Debug)]
pub(super) struct Shared {
    /// Whoever waits for the disk, to finish a commit or to erase, has this all the time.
    pub(super) erasure: Mutex<Erasure>,
    progress: Mutex<Progress>,
}

/// How far commits are. It is locked for an instant, so nobody who reads it waits for the disk.
#[derive(Debug)]
pub(super) struct Progress {
    /// The last finished commit.
    pub(super) finished: Manifest,
    /// Its live rows and their end, until the store has seen that the bytes of all others are gone.
    pub(super) live: Option<(RowSet, u64)>,
    /// Why the store has to be opened again.
    failure: Option<StoreError>,
}

impl Shared {
    pub(super) fn new(finished: Manifest) -> Arc<Self> {
        let progress = Mutex::new(Progress { finished, live: None, failure: None });
        Arc::new(Self { erasure: Mutex::default(), progress })
    }

    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        locked(&self.progress)
    }

    /// Note a failure, after which nothing more is made durable: the system may have dropped what it did not write.
    pub(super) fn noted(&self, done: Result<()>) -> Result<()> {
        if let Err(error) = &done {
            self.progress().failure = Some(error.clone());
        }
        done
    }
}

impl Progress {
    /// Return the error after which the store has to be opened again.
    pub(super) fn require_intact(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

/// Lock a value; a thread that panicked has left nothing half done that the next opening does not complete.
pub(super) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A commit whose content is noted, and which is not durable yet.
#[derive(Debug)]
#[must_use = "a commit is durable once it is finished"]
pub struct PendingCommit {
    pub(super) folder: PathBuf,
    pub(super) manifest: Manifest,
    pub(super) files: Files,
    pub(super) live: RowSet,
    pub(super) kept: RowSet,
    pub(super) shared: Arc<Shared>,
}

impl PendingCommit {
    /// Make the commit durable, with what the caller has beside the rows; then make zeros of the rows that it removed.
    ///
    /// If someone holds the store, a later commit makes zeros of them. One that a later one has overtaken does nothing.
    ///
    /// # Errors
    /// `Full` if the disk does not take it, `Damaged` if it cannot be said where a removed row is. The commit before is
    /// unchanged, or this one is durable; the store has to be opened again.
    pub fn finish(self, extra: &[u8]) -> Result<()> {
        let mut erasure = locked(&self.shared.erasure);
        {
            let progress = self.shared.progress();
            progress.require_intact()?;
            if self.manifest.number <= progress.finished.number {
                return Ok(());
            }
        }
        self.shared.noted(self.write(extra, &mut erasure))
    }

    fn write(&self, extra: &[u8], erasure: &mut Erasure) -> Result<()> {
        let (files, manifest) = (&self.files, &self.manifest);
        files.sync()?;
        let mut dead: Vec<Range<u32>> = Vec::new();
        for run in self.kept.runs_without(&self.live, u64::from(manifest.first_row)) {
            let run = files.in_whole_blocks(run, &self.live)?;
            match dead.last_mut() {
                Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
                _ => dead.push(run),
            }
        }
        write_commit(&self.folder, manifest, &self.live, &dead, extra)?;
        self.shared.progress().finished = manifest.clone();
        if !files.rows.is_held() {
            dead.into_iter().try_for_each(|rows| files.erase(rows))?;
            self.shared.progress().live = Some((self.live.clone(), u64::from(manifest.next_row)));
        }
        erasure.end(&self.folder, manifest.number)
    }
}

/// The rows that were erased, while the last commit still calls them live.
#[derive(Debug, Default)]
pub(super) struct Erasure {
    rows: Vec<u32>,
    /// The commit that has all of them dead.
    covered_by: u64,
}

impl Erasure {
    /// Read the erasures since the last commit, of number `commits`, in `folder`.
    pub(super) fn read(folder: &Path, identity: u64, commits: u64) -> Result<Self> {
        let path = erasure_path(folder);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            bytes => bytes.map_err(unreadable(&path))?,
        };
        let (sum, rows) = bytes.split_at_checked(4).unwrap_or_default();
        if sum.is_empty() || rows.len() % 4 != 0 || checksum(identity as u32, rows) != word(sum, 0) as u32 {
            return Err(damaged(&path, "does not match its checksum"));
        }
        Ok(Self { rows: rows.chunks_exact(4).map(|row| word(row, 0) as u32).collect(), covered_by: commits + 1 })
    }

    /// Return the rows.
    pub(super) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Make rows zeros, durably; whoever opens the store completes what a crash interrupts. commit: the next one.
    pub(super) fn add(&mut self, rows: &[u32], commit: u64, folder: &Path, files: &Files) -> Result<()> {
        self.rows.extend_from_slice(rows);
        self.covered_by = commit;
        self.write(folder, files.identity)?;
        Self::erase(rows, files)
    }

    /// Make all rows zeros again. Forget those that no commit has: their numbers are given again.
    pub(super) fn complete(&mut self, folder: &Path, files: &Files) -> Result<()> {
        let before = self.rows.len();
        self.rows.retain(|row| *row < files.next_row);
        if self.rows.len() < before {
            self.write(folder, files.identity)?;
        }
        if self.rows.is_empty() { Ok(()) } else { Self::erase(&self.rows, files) }
    }

    /// Forget the rows, as far as a commit has all of them.
    fn end(&mut self, folder: &Path, commit: u64) -> Result<()> {
        if self.rows.is_empty() || self.covered_by > commit {
            return Ok(());
        }
        self.rows.clear();
        delete(&erasure_path(folder))
    }

    fn write(&self, folder: &Path, identity: u64) -> Result<()> {
        let bytes: Vec<u8> = self.rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        replace(&erasure_path(folder), &[&checksum(identity as u32, &bytes).to_le_bytes(), &bytes])
    }

    fn erase(rows: &[u32], files: &Files) -> Result<()> {
        rows.iter().try_for_each(|row| files.erase(*row..row + 1))?;
        files.sync()
    }
}

fn erasure_path(folder: &Path) -> PathBuf {
    folder.join("erased")
}
