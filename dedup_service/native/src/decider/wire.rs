//! What is found and entries as bytes, for other processes and for snapshots.
//!
//! Integers are little-endian, and a list has its length before it. The first byte is a version. There is no checksum:
//! whoever carries the bytes has one. Bytes of strangers are refused, and no count makes memory that is not there.

use super::error::{DeciderError, Result};
use super::found::{Found, Near, OfPage};
use super::page::Entry;
use crate::store::Row;

const VERSION: u8 = 1;
/// Bytes of a row.
const ROW: usize = 61;
/// Bytes of a page for which nothing was found: what was looked at, and the lengths of its lists.
const PAGE: usize = 36;

/// Bytes that are read from the front.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Begin to read bytes that `begun` began.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Self(bytes);
        match reader.take::<1>()? {
            [VERSION] => Ok(reader),
            [other] => Err(unreadable(&format!("they have version {other}, this twinsieve reads {VERSION}"))),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| unreadable("some are missing"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| unreadable("some are missing"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64> {
        self.take().map(i64::from_le_bytes)
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        Ok(self.take::<1>()? != [0])
    }

    /// Read a list. size: bytes that each element has at least.
    pub(super) fn list<T>(&mut self, size: usize, mut element: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.u32()? as usize;
        if count.saturating_mul(size) > self.0.len() {
            return Err(unreadable("a list is longer than they are"));
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    fn row(&mut self) -> Result<Row> {
        Ok(Row {
            sequence: self.i64()?,
            words: self.u64()?,
            body: self.u64()?,
            body_hash: self.u64()?,
            text_hash: self.u64()?,
            url_hash: self.u64()?,
            ordinal: self.u64()?,
            host: self.u32()?,
            flags: self.take::<1>()?[0],
            ..Row::default()
        })
    }

    /// Refuse what is left.
    pub(super) fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(unreadable("there are more than expected")) }
    }
}

/// Begin bytes.
pub(super) fn begun() -> Vec<u8> {
    vec![VERSION]
}

/// Append a list.
pub(super) fn put_list<'a, T: 'a>(
    bytes: &mut Vec<u8>,
    list: impl ExactSizeIterator<Item = &'a T>,
    mut put: impl FnMut(&mut Vec<u8>, &T),
) {
    bytes.extend((list.len() as u32).to_le_bytes());
    list.for_each(|element| put(bytes, element));
}

fn put_bytes(bytes: &mut Vec<u8>, put: &[u8]) {
    bytes.extend((put.len() as u32).to_le_bytes());
    bytes.extend(put);
}

fn put_row(bytes: &mut Vec<u8>, row: &Row) {
    bytes.extend(row.sequence.to_le_bytes());
    for word in [row.words, row.body, row.body_hash, row.text_hash, row.url_hash, row.ordinal] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(row.host.to_le_bytes());
    bytes.push(row.flags);
}

/// Return entries as bytes.
pub fn encode_entries(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = begun();
    put_list(&mut bytes, entries.iter(), |bytes, entry| {
        put_row(bytes, &entry.row);
        bytes.extend(entry.number.map_or(-1, i64::from).to_le_bytes());
        put_bytes(bytes, &entry.evidence);
        put_bytes(bytes, &entry.keys);
    });
    bytes
}

/// Return the entries that `encode_entries` wrote.
///
/// # Errors
/// `State` for other bytes.
pub fn decode_entries(bytes: &[u8]) -> Result<Vec<Entry>> {
    let mut reader = Reader::new(bytes)?;
    let entries = reader.list(ROW + 16, |reader| {
        let (row, number) = (reader.row()?, reader.i64()?);
        let mut some = || {
            let count = reader.u32()? as usize;
            reader.bytes(count).map(<[u8]>::to_vec)
        };
        Ok(Entry { row, evidence: some()?, keys: some()?, number: u32::try_from(number).ok() })
    })?;
    reader.end()?;
    Ok(entries)
}

impl Found {
    /// Return what was found as bytes, without numbers of the store.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = begun();
        put_list(&mut bytes, self.candidates.iter(), |bytes, candidate| {
            put_row(bytes, &candidate.row);
            put_bytes(bytes, self.evidence(candidate));
        });
        put_list(&mut bytes, self.pages.iter(), |bytes, page| {
            bytes.extend(page.looked_at.to_le_bytes());
            for list in page.lists() {
                put_list(bytes, list.iter(), |bytes, place| bytes.extend(place.to_le_bytes()));
            }
            put_list(bytes, page.crowd.iter(), |bytes, near| {
                bytes.push(near.channel);
                bytes.extend(near.value.to_le_bytes());
                bytes.extend(near.sequence.to_le_bytes());
            });
        });
        bytes
    }

    /// Return what `encode` wrote; `State` for other bytes.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes)?;
        let mut found = Self::default();
        let candidates = reader.list(ROW + 4, |reader| {
            let (row, count) = (reader.row()?, reader.u32()? as usize);
            Ok((row, reader.bytes(count)?))
        })?;
        for (row, evidence) in &candidates {
            found.put(*row, evidence);
        }
        let end = candidates.len() as u32;
        found.pages = reader.list(PAGE, |reader| {
            let mut page = OfPage { looked_at: reader.u32()?, ..OfPage::default() };
            for list in page.lists_mut() {
                *list = reader.list(4, Reader::u32)?;
                if list.iter().any(|place| *place >= end) {
                    return Err(unreadable("they name an entry that they do not have"));
                }
            }
            page.crowd = reader.list(17, |reader| {
                Ok(Near { channel: reader.take::<1>()?[0], value: reader.u64()?, sequence: reader.i64()? })
            })?;
            Ok(page)
        })?;
        reader.end()?;
        Ok(found)
    }
}

/// Return the sequences of what a shard has found for each page, for people to read.
///
/// # Errors
/// `State` for bytes that no shard wrote.
pub fn found_in(bytes: &[u8]) -> Result<Vec<Vec<i64>>> {
    let found = Found::decode(bytes)?;
    let sequence = |place: &u32| found.get(*place).0.row.sequence;
    Ok(found.pages.iter().map(|page| page.lists().into_iter().flatten().map(sequence).collect()).collect())
}

/// Return the error for bytes that nobody wrote. why: ends the sentence.
pub(super) fn unreadable(why: &str) -> DeciderError {
    DeciderError::State(format!("bytes of another process cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Row> {
        (any::<[u64; 6]>(), any::<i64>(), any::<u32>(), any::<u8>()).prop_map(|(words, sequence, host, flags)| Row {
            sequence,
            words: words[0],
            body: words[1],
            body_hash: words[2],
            text_hash: words[3],
            url_hash: words[4],
            ordinal: words[5],
            host,
            flags,
            ..Row::default()
        })
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..20)
    }

    fn found() -> impl Strategy<Value = Found> {
        let lists = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..5), 7);
        let near = (any::<u8>(), any::<u64>(), any::<i64>());
        let page = (any::<u32>(), lists, prop::collection::vec(near, 0..3));
        let content = (prop::collection::vec((rows(), bytes()), 1..6), prop::collection::vec(page, 0..4));
        content.prop_map(|(candidates, pages)| {
            let mut found = Found::default();
            for (row, evidence) in &candidates {
                found.put(*row, evidence);
            }
            for (looked_at, lists, crowd) in pages {
                let mut page = OfPage { looked_at, ..OfPage::default() };
                for (list, chosen) in page.lists_mut().into_iter().zip(lists) {
                    *list = chosen.into_iter().map(|index| index.index(candidates.len()) as u32).collect();
                }
                page.crowd =
                    crowd.into_iter().map(|(channel, value, sequence)| Near { channel, value, sequence }).collect();
                found.pages.push(page);
            }
            found
        })
    }

    proptest! {
        #[test]
        fn what_was_found_is_read_as_it_was_written(found in found()) {
            let read = Found::decode(&found.encode()).unwrap();
            prop_assert_eq!(&read.pages, &found.pages);
            prop_assert_eq!(read.candidates.len(), found.candidates.len());
            for place in 0..found.candidates.len() as u32 {
                prop_assert_eq!(read.get(place).0.row, found.get(place).0.row);
                prop_assert_eq!(read.get(place).1, found.get(place).1);
            }
        }

        #[test]
        fn entries_are_read_as_they_were_written(
            entries in prop::collection::vec((rows(), bytes(), bytes(), any::<Option<u32>>()), 0..5),
        ) {
            let made = |(row, evidence, keys, number)| Entry { row, evidence, keys, number };
            let entries: Vec<Entry> = entries.into_iter().map(made).collect();
            prop_assert_eq!(decode_entries(&encode_entries(&entries)).unwrap(), entries);
        }

        /// Other bytes are refused, or are something else that was found: its places are among its candidates.
        #[test]
        fn altered_bytes_do_no_harm(
            found in found(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            end in any::<prop::sample::Index>(),
        ) {
            let mut bytes = found.encode();
            for (index, byte) in changes {
                let place = index.index(bytes.len());
                bytes[place] = byte;
            }
            for bytes in [&bytes[..], &bytes[..end.index(bytes.len())]] {
                if let Ok(read) = Found::decode(bytes) {
                    let all = Found::of_all(&[read], 0..5, |sequence| sequence % 2 == 0);
                    let last = all.pages.iter().flat_map(OfPage::lists).flatten().max();
                    prop_assert!(last.is_none_or(|last| (*last as usize) < all.candidates.len()));
                }
                prop_assert!(decode_entries(bytes).is_err() || bytes.len() > 4);
            }
        }
    }

    /// A length that is not there makes no memory.
    #[test]
    fn a_count_beyond_the_bytes_is_refused() {
        for count in [1, u32::MAX] {
            let mut bytes = begun();
            bytes.extend(count.to_le_bytes());
            assert!(Found::decode(&bytes).is_err());
            assert!(decode_entries(&bytes).is_err());
        }
    }
}
