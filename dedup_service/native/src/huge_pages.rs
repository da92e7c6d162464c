//! Memory for tables that are read at random: pieces of huge pages, where the system has them.
//!
//! A table reads lines at random, and with pages of 4 KiB the processor looks up a page for each (at 10^7 fingerprints,
//! half of the time of a probe). A table has a pool of its own instead of an allocator for the whole process: nothing else
//! is concerned, it needs no lock, a fork copies it as it is, and all of it goes with the table.
//!
//! Pieces are whole cache lines, taken where they fit best, and joined with their neighbours when they are given back.
//! The first 2 MB of a pool are ordinary memory, doubled as it is needed: a decider of a few pages has several pools.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a cache line.
pub const LINE: usize = 64;
const PAGE: usize = 2 << 20;
/// Pages of a segment at most, but for a piece that needs more.
const MOST_PAGES: usize = 16;
/// Bytes of the first segment of a pool.
const FIRST: usize = 32 << 10;

/// Where a piece begins: its segment, and its first line there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    segment: u32,
    line: u32,
}

impl Place {
    /// Return the place so many lines behind this one, in the same piece.
    #[must_use]
    pub fn after(self, lines: u32) -> Self {
        Self { line: self.line + lines, ..self }
    }

    /// Return the place so many segments behind this one.
    #[must_use]
    pub fn shifted(self, segments: u32) -> Self {
        Self { segment: self.segment + segments, ..self }
    }
}

/// Pieces of memory, each a number of cache lines.
#[derive(Default)]
pub struct HugePool {
    segments: Vec<Segment>,
    /// Free pieces by their place, and by their length.
    free: BTreeMap<Place, u32>,
    by_len: BTreeSet<(u32, Place)>,
    bytes: usize,
}

impl HugePool {
    /// Take a piece of so many lines; what it contains is not defined.
    pub fn take(&mut self, lines: u32) -> Place {
        let found = self.by_len.range((lines, Place::default())..).next().copied();
        let (len, place) = found.unwrap_or_else(|| self.add_segment(lines));
        self.by_len.remove(&(len, place));
        self.free.remove(&place);
        if len > lines {
            self.keep(Place { line: place.line + lines, ..place }, len - lines);
        }
        place
    }

    /// Give back a piece of so many lines that `take` returned.
    pub fn give_back(&mut self, mut place: Place, mut lines: u32) {
        if lines == 0 {
            return;
        }
        let before = self.free.range(..place).next_back().map(|(&before, &len)| (before, len));
        if let Some((before, len)) = before.filter(|(before, len)| before.line + len == place.line) {
            if before.segment == place.segment {
                self.forget(before, len);
                (place, lines) = (before, len + lines);
            }
        }
        let next = Place { line: place.line + lines, ..place };
        if let Some(len) = self.free.get(&next).copied() {
            self.forget(next, len);
            lines += len;
        }
        self.keep(place, lines);
    }

    fn keep(&mut self, place: Place, lines: u32) {
        self.free.insert(place, lines);
        self.by_len.insert((lines, place));
    }

    fn forget(&mut self, place: Place, lines: u32) {
        self.free.remove(&place);
        self.by_len.remove(&(lines, place));
    }

    /// Take memory from the system: a part of what there is, so that little of it waits.
    fn add_segment(&mut self, lines: u32) -> (u32, Place) {
        let needed = lines as usize * LINE;
        let bytes = if self.bytes + needed < PAGE {
            needed.max(self.bytes).max(FIRST)
        } else {
            needed.div_ceil(PAGE).max((self.bytes / PAGE / 32).clamp(1, MOST_PAGES)) * PAGE
        };
        let place = Place { segment: self.segments.len() as u32, line: 0 };
        self.segments.push(Segment::new(bytes));
        self.bytes += bytes;
        let lines = (bytes / LINE) as u32;
        self.keep(place, lines);
        (lines, place)
    }

    /// The memory behind a place, up to the end of its segment, as 16-bit words.
    #[inline]
    pub fn words(&self, place: Place) -> &[u16] {
        // SAFETY: a segment is nothing but initialised integers, and any bits are valid words.
        &unsafe { self.segments[place.segment as usize].align_to::<u16>() }.1[place.line as usize * (LINE / 2)..]
    }

    /// The same, as 32-bit words.
    #[inline]
    pub fn long_words(&self, place: Place) -> &[u32] {
        // SAFETY: as in `words`.
        &unsafe { self.segments[place.segment as usize].align_to::<u32>() }.1[place.line as usize * (LINE / 4)..]
    }

    /// The same as `words`, to be written.
    #[inline]
    pub fn words_mut(&mut self, place: Place) -> &mut [u16] {
        // SAFETY: as in `words`; the pool is borrowed for writing.
        &mut unsafe { self.segments[place.segment as usize].align_to_mut::<u16>() }.1
            [place.line as usize * (LINE / 2)..]
    }

    /// The same as `long_words`, to be written.
    #[inline]
    pub fn long_words_mut(&mut self, place: Place) -> &mut [u32] {
        // SAFETY: as in `words`; the pool is borrowed for writing.
        &mut unsafe { self.segments[place.segment as usize].align_to_mut::<u32>() }.1
            [place.line as usize * (LINE / 4)..]
    }

    /// Take over the memory of another pool; return by how many segments its places are shifted.
    pub fn absorb(&mut self, other: Self) -> u32 {
        let shift = self.segments.len() as u32;
        self.segments.extend(other.segments);
        self.bytes += other.bytes;
        other.free.into_iter().for_each(|(place, lines)| self.keep(place.shifted(shift), lines));
        shift
    }

    /// Bytes that the pool took from the system.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A pool that blocks share: each goes back to it when it is dropped.
#[derive(Clone, Default)]
pub struct SharedPool(Arc<Mutex<HugePool>>);

impl SharedPool {
    /// Take a block of so many copies of a value, aligned to cache lines.
    pub fn block<T: Copy>(&self, len: usize, value: T) -> Block<T> {
        if len == 0 {
            return Block::default();
        }
        let lines = (len * size_of::<T>()).div_ceil(LINE) as u32;
        let (place, start) = {
            let mut pool = self.locked();
            let place = pool.take(lines);
            let segment = pool.segments[place.segment as usize].start.cast::<u8>();
            // SAFETY: the place has `lines` cache lines within its segment, whose memory never moves.
            (place, unsafe { segment.add(place.line as usize * LINE) }.cast::<T>())
        };
        for at in 0..len {
            // SAFETY: the place is at least `len` values long, and nobody else has it.
            unsafe { start.add(at).write(value) };
        }
        Block { pool: Some(self.clone()), place, lines, start, len }
    }

    /// Bytes that the pool took from the system.
    pub fn bytes(&self) -> usize {
        self.locked().bytes()
    }

    fn locked(&self) -> MutexGuard<'_, HugePool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values in a piece of a pool.
pub struct Block<T> {
    /// None of an empty block.
    pool: Option<SharedPool>,
    place: Place,
    lines: u32,
    start: NonNull<T>,
    len: usize,
}

// SAFETY: a block is the only owner of its values, as a vector is; its pool is behind a lock.
unsafe impl<T: Send> Send for Block<T> {}
// SAFETY: as above; a shared block gives shared values alone.
unsafe impl<T: Sync> Sync for Block<T> {}

impl<T> Block<T> {
    /// Give back what is behind so many values, if that is an eighth or more.
    pub fn truncate(&mut self, len: usize) {
        let lines = (len * size_of::<T>()).div_ceil(LINE) as u32;
        if let (Some(pool), true) = (&self.pool, lines <= self.lines - self.lines / 8) {
            pool.locked().give_back(self.place.after(lines), self.lines - lines);
            (self.lines, self.len) = (lines, len);
        }
    }
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Self { pool: None, place: Place::default(), lines: 0, start: NonNull::dangling(), len: 0 }
    }
}

impl<T> Deref for Block<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values were written from `start` on, and the place is ours until this block is dropped.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Block<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the block is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.locked().give_back(self.place, self.lines);
        }
    }
}

/// Memory from the system: whole cache lines, or whole huge pages.
struct Segment {
    start: NonNull<u64>,
    layout: Layout,
}

// SAFETY: a segment is the only owner of its integers, as a vector is.
unsafe impl Send for Segment {}
// SAFETY: as above; a shared segment gives shared integers alone.
unsafe impl Sync for Segment {}

impl Segment {
    /// Take so many bytes of zeros, at least one; the system is asked to make them huge before they are first touched.
    fn new(bytes: usize) -> Self {
        let Ok(layout) = Layout::from_size_align(bytes, if bytes < PAGE { LINE } else { PAGE }) else {
            unreachable!("{bytes} bytes are no segment")
        };
        // SAFETY: the layout has at least one byte.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: the memory is ours. Advice changes no content, and a system that refuses it has small pages.
        unsafe {
            #[cfg(all(target_os = "linux", not(miri)))] // which knows no such advice
            if bytes >= PAGE {
                libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            }
            start.write_bytes(0, bytes);
        }
        Self { start: start.cast(), layout }
    }
}

impl Deref for Segment {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        // SAFETY: so many integers were written from `start` on, and the memory is ours until this segment is dropped.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size() / 8) }
    }
}

impl DerefMut for Segment {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `deref`; the segment is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size() / 8) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the memory was taken with this layout, and is given back once.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of a piece; under miri, which interprets each write, few.
    const MOST_LINES: u32 = if cfg!(miri) { 40 } else { 40_000 };

    proptest! {
        /// Pieces keep what is written to them, so no two share a line; all that is given back becomes whole segments.
        #[test]
        fn pieces_do_not_overlap(steps in prop::collection::vec((any::<bool>(), 1..MOST_LINES, any::<prop::sample::Index>()), 1..60)) {
            let (mut pool, mut taken) = (HugePool::default(), Vec::new());
            for (number, (takes, lines, index)) in steps.into_iter().enumerate() {
                if takes || taken.is_empty() {
                    let place = pool.take(lines);
                    let mark = number as u32;
                    pool.long_words_mut(place)[..lines as usize * LINE / 4].fill(mark);
                    taken.push((place, lines, mark));
                } else {
                    let (place, lines, mark) = taken.swap_remove(index.index(taken.len()));
                    prop_assert!(pool.long_words(place)[..lines as usize * LINE / 4].iter().all(|&word| word == mark));
                    pool.give_back(place, lines);
                }
            }
            for (place, lines, mark) in taken {
                prop_assert!(pool.long_words(place)[..lines as usize * LINE / 4].iter().all(|&word| word == mark));
                pool.give_back(place, lines);
            }
            prop_assert_eq!(pool.free.len(), pool.segments.len());
            prop_assert_eq!(pool.by_len.iter().map(|free| free.0 as usize * LINE).sum::<usize>(), pool.bytes());
        }
    }
}
