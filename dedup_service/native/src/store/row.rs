//! A kept page as a record: what the tables are built from.
//!
//! A record is a checksum, the fields of `Row` in their order, little-endian, and the path: 84 bytes and those of the path.
//! The checksum begins with the number of the row and the identity of the store, so a record at another place, or of
//! another store, is damage. Zeros are an erased row.

/// Bytes of a record without its path.
pub(super) const ROW_BYTES: usize = 84;
/// Bytes of a path at most: of 8 parts with 32 keys each.
pub(super) const MOST_PATH: usize = 8 + 8 * 32 * 4;
const CONTENT: usize = 4;

/// What a decider keeps of a page, beside its path and its evidence. Values that a page does not have are 0, and `flags`
/// says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its place in the log; rows are appended in order of it.
    pub sequence: i64,
    /// Fingerprint of its words.
    pub words: u64,
    /// Fingerprint of its body.
    pub body: u64,
    /// Hash of its body.
    pub body_hash: u64,
    /// Hash of its whole text.
    pub text_hash: u64,
    /// Hash of its URL.
    pub url_hash: u64,
    /// The number of first-delivered pages before it.
    pub ordinal: u64,
    /// The first bits of its sketch.
    pub sieve: [u64; 2],
    /// Hash of its host.
    pub host: u32,
    /// Which values it has; the store does not look at it.
    pub flags: u8,
}

/// A page to be appended.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its fields.
    pub row: Row,
    /// Its way through the cells, 1,032 bytes at most.
    pub path: &'a [u8],
    /// Packed evidence.
    pub evidence: &'a [u8],
}

/// What a record may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    Intact(Row),
    Erased,
    Altered,
}

impl Row {
    /// Append the record of a row to `bytes`. seed: of the store and the row.
    pub(super) fn encode(&self, path: &[u8], seed: u32, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend_from_slice(&[0; CONTENT]);
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        let words = [self.words, self.body, self.body_hash, self.text_hash, self.url_hash, self.ordinal];
        for word in words.into_iter().chain(self.sieve) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.host.to_le_bytes());
        bytes.extend_from_slice(&[self.flags, 1, 0, 0]); // no record is all zeros
        bytes.extend_from_slice(path);
        let sum = checksum(seed, &bytes[start + CONTENT..]);
        bytes[start..start + CONTENT].copy_from_slice(&sum.to_le_bytes());
    }

    /// Return what a record is; its path is behind `ROW_BYTES`. seed: as for `encode`.
    #[inline]
    pub(super) fn decode(seed: u32, bytes: &[u8]) -> Record {
        if bytes.iter().all(|byte| *byte == 0) {
            return Record::Erased;
        }
        let content = bytes.get(CONTENT..).unwrap_or_default();
        if bytes.len() < ROW_BYTES || checksum(seed, content) != word(bytes, 0) as u32 {
            return Record::Altered;
        }
        let wide = |place: usize| word(content, 8 * place);
        Record::Intact(Self {
            sequence: wide(0) as i64,
            words: wide(1),
            body: wide(2),
            body_hash: wide(3),
            text_hash: wide(4),
            url_hash: wide(5),
            ordinal: wide(6),
            sieve: [wide(7), wide(8)],
            host: wide(9) as u32,
            flags: (wide(9) >> 32) as u8,
        })
    }
}

/// Return the CRC-32 of bytes, which begins with a seed.
#[inline]
pub(super) fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

/// Return the little-endian word at `at`; bytes behind the end are zeros.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or(&[]);
    match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row {
        sequence: -2,
        words: 1,
        body: u64::MAX,
        body_hash: 3,
        text_hash: 4,
        url_hash: 5,
        ordinal: 6,
        sieve: [7, u64::MAX - 8],
        host: u32::MAX - 7,
        flags: 0x7f,
    };

    fn record(row: Row, path: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        row.encode(path, 9, &mut bytes);
        bytes
    }

    /// A record gives its row again, and only at its own place.
    #[test]
    fn gives_the_row_again() {
        for path in [&[][..], &[0; 3], &[5; MOST_PATH]] {
            let bytes = record(ROW, path);
            assert_eq!((Row::decode(9, &bytes), &bytes[ROW_BYTES..]), (Record::Intact(ROW), path));
            assert_eq!(Row::decode(10, &bytes), Record::Altered);
            assert_eq!(Row::decode(9, &vec![0; bytes.len()]), Record::Erased);
        }
    }

    /// Any flipped bit is seen, and any other length.
    #[test]
    fn sees_each_flipped_bit() {
        let mut bytes = record(ROW, &[0; 9]);
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Row::decode(9, &bytes), Record::Altered, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 1..bytes.len() {
            assert_eq!(Row::decode(9, &bytes[..len]), Record::Altered, "{len} bytes");
        }
    }

    /// A row of zeros is not taken for an erased one.
    #[test]
    fn a_row_of_zeros_is_a_row() {
        assert_eq!(Row::decode(9, &record(Row::default(), &[0; 8])), Record::Intact(Row::default()));
    }
}
