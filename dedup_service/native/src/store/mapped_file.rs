//! An append-only file that is read through a mapping, and whose ranges can become zeros for good.
//!
//! The mapping is longer than the file, so that most appends need no new one; only what is below `len` is ever read.
//! Nobody cuts a file below the lengths of a manifest, so what a reader maps stays there, and a byte below `len` changes
//! only to zero: whoever reads verifies a checksum, and takes zeros for what they are.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{Advice, Mmap, MmapOptions};

use super::error::{Result, StoreError, unreadable, unwritable};

/// Unit in which a disk gives space back.
pub(super) const BLOCK: u64 = 4096;
/// Addresses that a mapping for writing takes at least; a larger file is mapped again at each doubling.
const LEAST_MAPPED: u64 = 1 << 26;
/// Bytes that the disk is asked for at a time: Linux cuts a larger request to what it reads ahead, by default this.
const ASKED: usize = 1 << 17;
/// Bytes of zeros that are written at a time where the file system cannot make holes.
const ZEROS: usize = 1 << 14;

/// A file and its length as one owner knows it. A clone keeps the length, and reads what is below it in any thread.
#[derive(Clone, Debug)]
pub(super) struct MappedFile {
    pub(super) path: PathBuf,
    file: Arc<File>,
    map: Arc<Mmap>,
    pub(super) len: u64,
}

impl MappedFile {
    /// Open a file of which `len` bytes count. For writing it is created, and cut to these; Damaged if it is shorter.
    pub(super) fn open(path: PathBuf, len: u64, writable: bool) -> Result<Self> {
        let options = OpenOptions::new().read(true).write(writable).create(writable && len == 0).clone();
        let file = options.open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::Damaged(format!("{} is missing", path.display())),
            _ if writable => unwritable(&path)(error),
            _ => unreadable(&path)(error),
        })?;
        let found = file.metadata().map_err(unreadable(&path))?.len();
        if found < len {
            let text = format!("{} has {found} bytes, its manifest says {len}", path.display());
            return Err(StoreError::Damaged(text));
        }
        if writable && found > len {
            step("cut", &path);
            file.set_len(len).map_err(unwritable(&path))?;
        }
        let map = map(&file, if writable { room(len) } else { len }).map_err(unmappable(&path, len))?;
        Ok(Self { path, file: Arc::new(file), map: Arc::new(map), len })
    }

    /// Return the bytes of a range; None if it ends behind what counts. Those of a file that is opened to read may turn
    /// to zeros at any moment: copy, then verify.
    #[inline]
    pub(super) fn bytes(&self, at: u64, len: u64) -> Option<&[u8]> {
        let end = at.checked_add(len).filter(|end| *end <= self.len)?;
        self.map.get(at as usize..end as usize)
    }

    /// Write bytes behind what counts. They count once the caller raises `len`, so a failure leaves the file as it was.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let len = self.len + bytes.len() as u64;
        if len > self.map.len() as u64 {
            self.map = Arc::new(map(&self.file, room(len)).map_err(unmappable(&self.path, len))?);
        }
        step("write", &self.path);
        self.file.write_all_at(bytes, self.len).map_err(unwritable(&self.path))
    }

    /// Ask the disk for a range that is read soon.
    pub(super) fn will_need(&self, at: u64, len: u64) {
        let end = at.saturating_add(len).min(self.len).min(self.map.len() as u64);
        for at in (at..end).step_by(ASKED) {
            let _ = self.map.advise_range(Advice::WillNeed, at as usize, (end - at).min(ASKED as u64) as usize);
        }
    }

    /// Fetch the cache lines of a range, if the page cache has them.
    #[inline]
    pub(super) fn prefetch(&self, at: u64, len: u64) {
        for place in (at..at.saturating_add(len).min(self.len).min(self.map.len() as u64)).step_by(64) {
            crate::memory::prefetch(&self.map, place as usize);
        }
    }

    /// Make what was written durable.
    pub(super) fn sync(&self) -> Result<()> {
        step("sync", &self.path);
        self.file.sync_data().map_err(unwritable(&self.path))
    }

    /// Make a range zeros. Its whole blocks go back to the disk, where the file system can make holes.
    pub(super) fn erase(&self, range: Range<u64>) -> Result<()> {
        let (start, end) = (range.start, range.end.min(self.len));
        if start >= end {
            return Ok(());
        }
        step("erase", &self.path);
        if may_punch() && punch(&self.file, start, end - start) {
            return Ok(());
        }
        for at in (start..end).step_by(ZEROS) {
            let len = (end - at).min(ZEROS as u64) as usize;
            self.file.write_all_at(&[0; ZEROS][..len], at).map_err(unwritable(&self.path))?;
        }
        Ok(())
    }

    /// Keep what is removed from becoming zeros, in this process and in others, as long as the value lives.
    ///
    /// A file system without locks does not know of it.
    pub(super) fn hold(path: &Path) -> Result<Hold> {
        let file = File::open(path).map_err(unreadable(path))?;
        while !lock(&file, libc::LOCK_SH) && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
        Ok(Hold(file))
    }

    /// Return whether someone holds the file.
    pub(super) fn is_held(&self) -> bool {
        if lock(&self.file, libc::LOCK_EX | libc::LOCK_NB) {
            lock(&self.file, libc::LOCK_UN);
            return false;
        }
        io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    /// Return the bytes that the file takes on the disk.
    pub(super) fn disk_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |status| status.blocks() * 512)
    }
}

/// See `MappedFile::hold`.
#[derive(Debug)]
pub(super) struct Hold(File);

impl Drop for Hold {
    fn drop(&mut self) {
        lock(&self.0, libc::LOCK_UN); // a child process may have the file, too
    }
}

/// Addresses to map for a file of `len` bytes that grows.
fn room(len: u64) -> u64 {
    len.saturating_mul(2).max(LEAST_MAPPED).next_multiple_of(BLOCK)
}

fn unmappable(path: &Path, len: u64) -> impl FnOnce(io::Error) -> StoreError {
    move |error| StoreError::Unreadable(format!("cannot map {len} bytes of {}: {error}", path.display()))
}

#[allow(unsafe_code)]
fn map(file: &File, len: u64) -> io::Result<Mmap> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    // SAFETY: only bytes below the length that counts are read: they exist, and the owner of the folder never cuts them
    // off. Another process changes them to zero alone, when a row is removed; readers copy what they verify.
    let map = unsafe { MmapOptions::new().len(len).map(file)? };
    let _ = map.advise(Advice::Random);
    Ok(map)
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn punch(file: &File, at: u64, len: u64) -> bool {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (Ok(at), Ok(len)) = (at.try_into(), len.try_into()) else { return false };
    // SAFETY: a system call on an open file, without pointers.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, at, len) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn punch(_: &File, _: u64, _: u64) -> bool {
    false
}

/// Lock an open file, apart from all others that have opened it; return whether that was done.
#[allow(unsafe_code)]
fn lock(file: &File, how: i32) -> bool {
    // SAFETY: a system call on an open file, without pointers.
    unsafe { libc::flock(file.as_raw_fd(), how) == 0 }
}

/// Replace a file as a whole, durably: a crash leaves the old one or the new one.
pub(super) fn replace(path: &Path, parts: &[&[u8]]) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let write = || {
        let mut file = File::create(&temporary)?;
        step("write", &temporary);
        parts.iter().try_for_each(|part| file.write_all(part))?;
        step("sync", &temporary);
        file.sync_all()?;
        step("rename", path);
        std::fs::rename(&temporary, path)
    };
    write().and_then(|()| sync_folder(path)).map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        unwritable(path)(error)
    })
}

/// Delete a file durably; one that is gone already is no error.
pub(super) fn delete(path: &Path) -> Result<()> {
    step("delete", path);
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.and_then(|()| sync_folder(path)).map_err(unwritable(path)),
    }
}

/// Make creations, renames and removals in the folder of `path` durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    step("sync folder", path);
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// A test sees the folder here, before each system call that changes it.
#[cfg(test)]
use faults::step;

#[cfg(not(test))]
#[inline]
fn step(_: &'static str, _: &Path) {}

/// Return whether the file system may be asked for holes; a test says no.
#[inline]
fn may_punch() -> bool {
    #[cfg(test)]
    return !faults::WITHOUT_HOLES.get();
    #[cfg(not(test))]
    true
}

#[cfg(test)]
pub(super) mod faults {
    //! Lets a test look at the files between two system calls, as a crash would leave them, and be without holes.

    use std::cell::{Cell, RefCell};
    use std::path::Path;

    type Look = Box<dyn FnMut(&'static str, &Path)>;

    thread_local! {
        static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
        pub(in crate::store) static WITHOUT_HOLES: Cell<bool> = const { Cell::new(false) };
    }

    /// Call `look` before each system call that `run` makes in this thread.
    pub(in crate::store) fn looking<T>(look: impl FnMut(&'static str, &Path) + 'static, run: impl FnOnce() -> T) -> T {
        LOOK.set(Some(Box::new(look)));
        let done = run();
        LOOK.set(None);
        done
    }

    pub(super) fn step(call: &'static str, path: &Path) {
        if let Some(mut look) = LOOK.take() {
            look(call, path);
            LOOK.set(Some(look));
        }
    }
}
