//! One value for each row, in chunks that never move.

use std::ops::Range;

use crate::memory::prefetch;

const CHUNK_BITS: u32 = 16;
const CHUNK: usize = 1 << CHUNK_BITS;

/// Values by row; rows may be sparse.
#[derive(Default)]
pub struct RowColumn<T> {
    chunks: Vec<Box<[T]>>,
}

impl<T: Copy + Default> RowColumn<T> {
    /// The value of a row; the default if it was never set.
    #[inline]
    pub fn get(&self, row: u32) -> T {
        let chunk = self.chunks.get(row as usize >> CHUNK_BITS);
        chunk.and_then(|chunk| chunk.get(row as usize % CHUNK)).copied().unwrap_or_default()
    }

    /// Set the value of a row.
    pub fn set(&mut self, row: u32, value: T) {
        let number = row as usize >> CHUNK_BITS;
        if number >= self.chunks.len() {
            self.chunks.resize_with(number + 1, Box::default);
        }
        let chunk = &mut self.chunks[number];
        if chunk.is_empty() {
            *chunk = vec![T::default(); CHUNK].into_boxed_slice();
        }
        chunk[row as usize % CHUNK] = value;
    }

    /// Fetch the value of a row, which is needed soon.
    #[inline]
    pub fn prefetch(&self, row: u32) {
        if let Some(chunk) = self.chunks.get(row as usize >> CHUNK_BITS) {
            prefetch(chunk, row as usize % CHUNK);
        }
    }

    /// Give back the memory of rows that are not used any more, as far as they fill chunks.
    pub fn release(&mut self, rows: Range<u32>) {
        let chunks = (rows.start as usize).div_ceil(CHUNK)..rows.end as usize / CHUNK;
        self.chunks.iter_mut().take(chunks.end).skip(chunks.start).for_each(|chunk| *chunk = Box::default());
    }

    /// Memory reserved.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| size_of_val(&**chunk)).sum::<usize>()
            + self.chunks.capacity() * size_of::<Box<[T]>>()
    }
}
