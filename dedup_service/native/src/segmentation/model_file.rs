//! A file of 64-bit words that a start maps in milliseconds and processes share.
//!
//! It is made of other files, and is worth nothing without them: one that is missing, damaged, of another version or
//! machine, or made of something else is made again. Processes may do so at once, each under a name of its own that it
//! then gives up for the right one; a file is never changed.
//!
//! Layout: the word [`FORMAT`], the checksum of all that comes behind it, what it is made of (two words), its content.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::Deref;
use std::path::Path;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

/// What is at the beginning, in the byte order of the machine; the number changes with the layout.
const FORMAT: u64 = u64::from_be_bytes(*b"jieba\0\0\x02");
const HEADER: usize = 4;

/// The content, in memory or mapped.
pub(super) enum Words {
    /// Of a file; its header is part of it.
    Mapped(Mmap),
    /// Of a file that could not be kept.
    Owned(Vec<u64>),
}

impl Words {
    /// Return content that `source` stands for, as it is kept.
    pub(super) fn of(source: u128, content: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut words = vec![FORMAT, 0, source as u64, (source >> 64) as u64];
        words.extend(content);
        words[1] = checksum(&words);
        words
    }

    /// Map a file; None if it is not as it was written, or of another source.
    pub(super) fn open(path: &Path, source: u128) -> Option<Self> {
        if !fs::metadata(path).ok()?.is_file() {
            return None; // to open a pipe would wait for its writer
        }
        let words = Self::Mapped(map(&File::open(path).ok()?).ok()?);
        let all: &[u64] = words.all();
        let is_known =
            all.len() >= HEADER && all[0] == FORMAT && all[2..HEADER] == [source as u64, (source >> 64) as u64];
        (is_known && all[1] == checksum(all)).then_some(words)
    }

    /// Keep words in a file as a whole.
    pub(super) fn keep(path: &Path, words: &[u64]) -> io::Result<()> {
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let temporary = path.with_extension(format!("{}-{}.tmp", process::id(), now.as_nanos()));
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        let written = file.write_all(bytemuck::cast_slice(words)).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn all(&self) -> &[u64] {
        match self {
            Self::Mapped(map) => bytemuck::try_cast_slice(map).unwrap_or_default(),
            Self::Owned(words) => words,
        }
    }
}

impl Deref for Words {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        self.all().get(HEADER..).unwrap_or_default()
    }
}

fn checksum(words: &[u64]) -> u64 {
    xxh3_64(bytemuck::cast_slice(&words[2..]))
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: a file gets its name once it is whole, and nobody changes it then: another one replaces it.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A folder that is deleted with the value.
    pub(in crate::segmentation) struct Folder(pub PathBuf);

    impl Folder {
        pub(in crate::segmentation) fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("twinsieve-{name}-{}", process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Every file that is not whole, or not of the source, is refused; a new one replaces it.
    #[test]
    fn a_damaged_or_foreign_file_is_refused() {
        let folder = Folder::new("model-file");
        let path = folder.0.join("cache/model");
        let words = Words::of(7 << 100 | 3, 0..1000);
        Words::keep(&path, &words).unwrap();
        let good = fs::read(&path).unwrap();
        let content = |source| Words::open(&path, source).map(|words| words.to_vec());
        assert_eq!(content(7 << 100 | 3), Some((0..1000).collect()));
        assert_eq!(content(7 << 100), None);
        assert_eq!(content(3), None);
        for at in (0..good.len()).step_by(97) {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&path, bad).unwrap();
            assert_eq!(content(7 << 100 | 3), None, "byte {at}");
        }
        for length in [0, 8, 31, 32, 33, good.len() - 8, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert_eq!(content(7 << 100 | 3), None, "{length} bytes");
        }
        Words::keep(&path, &words).unwrap();
        assert!(content(7 << 100 | 3).is_some());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
