//! A page's tokens as bytes, some 430 a page: every token in its order, a character in 4 bits, a word in 6, a number in 12.
//!
//! Equal passages are found by many tokens together, so few bits each are enough. Of a page of more than 1,024 tokens
//! characters have 3 bits and words 5, and the first 6,144 are kept.
//!
//! Layout, little-endian: flags (8 bits: 1 coarse, 2 mostly words), tokens of the title (8), of the body (24), kept of
//! the body (16). For each token of the title 16 bits: 15 of its hash, and whether it is a character; then a bit for each
//! of them, and for each pair of neighbours, that says whether it stands in the body. Then the tokens of the body as
//! bits, lowest first. Mostly characters: a code, or all ones, two bits of the class, and its code. Mostly words: 0 a
//! word, 10 capitalised, 110 a number, 1110 an ordinal, 1111 a character, and its code.
//!
//! Why so and not otherwise: docs/adr/0038.

use super::grams::WEIGHTS;
use super::tokens::{Class, Token};

/// Tokens from which a stream is coarse.
pub const FINE: usize = 1024;
/// Tokens that are kept.
pub const MOST: usize = 6144;
/// Tokens of a title.
pub const MOST_TITLE: usize = 32;
/// Codes of tokens: characters below 15, words and numbers above.
pub const CODES: usize = 79;
/// First value of a capitalised word, above those of numbers.
pub const CAPITALS: u16 = 4096;

const HEADER: usize = 7;
const NUMBER_BITS: u32 = 12;
const COARSE: u8 = 1;
const WORDS: u8 = 2;

/// Append a page to `packed`.
pub fn pack(body: &[Token], title: &[Token], packed: &mut Vec<u8>) {
    let (kept, title) = (&body[..body.len().min(MOST)], &title[..title.len().min(MOST_TITLE)]);
    let is_coarse = body.len() > FINE;
    let characters = kept.iter().filter(|token| token.class == Class::Character).count();
    let is_words = 2 * characters < kept.len();
    packed.push(if is_coarse { COARSE } else { 0 } | if is_words { WORDS } else { 0 });
    packed.push(title.len() as u8);
    packed.extend(&(body.len().min(0xFF_FFFF) as u32).to_le_bytes()[..3]);
    packed.extend((kept.len() as u16).to_le_bytes());
    for token in title {
        let is_character = u16::from(token.class == Class::Character);
        packed.extend((title_value(token.hash) | is_character << 15).to_le_bytes());
    }
    let present = terms_in(body, title);
    packed.extend(&present.to_le_bytes()[..term_bytes(title.len())]);
    let mut bits = Bits { packed, buffer: 0, count: 0 };
    let (of_character, of_word) = code_bits(is_coarse);
    let escape = (1 << of_character) - 1;
    for token in kept {
        let class = token.class as u64;
        match (is_words, token.class) {
            (true, Class::Character) => bits.write(15, 4),
            (true, _) => bits.write((1 << class) - 1, class as u32 + 1),
            (false, Class::Character) => {}
            (false, _) => bits.write(escape | class << of_character, of_character + 2),
        }
        match token.class {
            Class::Character => bits.write(token.hash % 15 % escape, of_character),
            Class::Number => bits.write(token.hash & ((1 << NUMBER_BITS) - 1), NUMBER_BITS),
            _ => bits.write(token.hash & ((1 << of_word) - 1), of_word),
        }
    }
    bits.finish();
}

/// Bits of the code of a character and of a word.
fn code_bits(is_coarse: bool) -> (u32, u32) {
    if is_coarse { (3, 5) } else { (4, 6) }
}

/// 15 bits of a hash, from which its codes follow.
fn title_value(hash: u64) -> u16 {
    (hash % (15 * 64 * 34)) as u16
}

fn term_bytes(title: usize) -> usize {
    (2 * title).saturating_sub(1).div_ceil(8)
}

/// Which tokens of a title stand in a body, and which pairs of neighbours, as bits: first the tokens.
fn terms_in(body: &[Token], title: &[Token]) -> u64 {
    let mut firsts = [0_u64; 4];
    for token in title {
        firsts[(token.hash >> 6 & 3) as usize] |= 1 << (token.hash & 63);
    }
    let mut present = 0;
    for (at, token) in body.iter().enumerate() {
        if firsts[(token.hash >> 6 & 3) as usize] >> (token.hash & 63) & 1 == 0 {
            continue;
        }
        for (place, _) in title.iter().enumerate().filter(|(_, term)| term.hash == token.hash) {
            present |= 1 << place;
            let is_pair = body.get(at + 1).zip(title.get(place + 1)).is_some_and(|(one, other)| one.hash == other.hash);
            present |= u64::from(is_pair) << (title.len() + place);
        }
    }
    present
}

struct Bits<'a> {
    packed: &'a mut Vec<u8>,
    buffer: u64,
    count: u32,
}

impl Bits<'_> {
    #[inline]
    fn write(&mut self, value: u64, bits: u32) {
        self.buffer |= value << self.count;
        self.count += bits;
        if self.count >= 32 {
            self.packed.extend((self.buffer as u32).to_le_bytes());
            self.buffer >>= 32;
            self.count -= 32;
        }
    }

    fn finish(self) {
        let bytes = self.buffer.to_le_bytes();
        self.packed.extend(&bytes[..self.count.div_ceil(8) as usize]);
    }
}

/// A view of a packed page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream<'a> {
    /// Whether its codes have fewer bits.
    pub is_coarse: bool,
    /// Tokens of the body.
    pub tokens: usize,
    /// How many of them are kept.
    pub kept: usize,
    is_words: bool,
    title: &'a [u8],
    present: u64,
    body: &'a [u8],
}

/// The tokens of a body, as far as a stream says.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// Below 15 of a character, from 15 on of a word or number.
    pub codes: Vec<u8>,
    /// 0 no fact, 1 a capitalised word, 2 a number.
    pub facts: Vec<u8>,
    /// Of facts: below [`CAPITALS`] a number.
    pub values: Vec<u16>,
}

impl Tokens {
    /// Weight of a token in thirds of a character: 3 of a character, 5 of a word or number.
    #[inline]
    pub fn weight(&self, at: usize) -> usize {
        WEIGHTS[usize::from(self.codes[at] >= 15)]
    }
}

impl<'a> Stream<'a> {
    /// Read a packed page; none of bytes that [`pack`] does not write.
    pub fn new(packed: &'a [u8]) -> Option<Self> {
        let (&[flags, title, low, middle, high, kept_low, kept_high], rest) = packed.split_first_chunk::<HEADER>()?;
        let title_count = usize::from(title);
        let (title, rest) = rest.split_at_checked(2 * title_count)?;
        let (bits, body) = rest.split_at_checked(term_bytes(title_count))?;
        let tokens = u32::from_le_bytes([low, middle, high, 0]) as usize;
        let kept = usize::from(u16::from_le_bytes([kept_low, kept_high]));
        let is_as_written = title_count <= MOST_TITLE && kept == tokens.min(MOST) && flags <= COARSE | WORDS;
        let present = bits.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        let (is_coarse, is_words) = (flags & COARSE != 0, flags & WORDS != 0);
        is_as_written.then_some(Self { is_coarse, tokens, kept, is_words, title, present, body })
    }

    /// Whether the body was cut.
    pub fn is_cut(&self) -> bool {
        self.tokens > self.kept
    }

    /// The tokens of the title: 15 bits of a hash, and above them whether it is a character.
    pub fn title(&self) -> impl ExactSizeIterator<Item = u16> + Clone + use<'a> {
        self.title.chunks_exact(2).map(|token| u16::from_le_bytes([token[0], token[1]]))
    }

    /// Whether a token of the title, or the pair that begins with it, stands in the body.
    pub fn is_in_body(&self, place: usize, is_pair: bool) -> bool {
        let at = if is_pair { self.title.len() / 2 + place } else { place };
        self.present >> at & 1 == 1
    }

    /// Replace `tokens` by those of the body, with coarse codes if they are to be compared with those of a coarse page.
    pub fn decode(&self, as_coarse: bool, tokens: &mut Tokens) {
        let (of_character, of_word) = code_bits(self.is_coarse);
        let (characters, words) = if as_coarse { (7, 31) } else { (15, 63) };
        let escape = (1 << of_character) - 1;
        let Tokens { codes, facts, values } = tokens;
        for column in [&mut *codes, &mut *facts] {
            column.clear();
            column.reserve(self.kept);
        }
        values.clear();
        values.reserve(self.kept);
        let mut body = self.body.iter();
        let (mut buffer, mut count) = (0_u64, 0_u32);
        for _ in 0..self.kept {
            while count <= 48 {
                let Some(&byte) = body.next() else { break };
                buffer |= u64::from(byte) << count;
                count += 8;
            }
            let (class, used) = if self.is_words {
                let ones = (!buffer).trailing_zeros().min(4);
                (ones as u8, if ones == 4 { 4 } else { ones + 1 })
            } else if buffer & escape == escape {
                ((buffer >> of_character & 3) as u8, of_character + 2)
            } else {
                (Class::Character as u8, 0)
            };
            buffer >>= used;
            let (bits, code, fact, value) = if class == Class::Character as u8 {
                (of_character, ((buffer & escape) % characters) as u8, 0, 0)
            } else if class == Class::Number as u8 {
                let value = (buffer & ((1 << NUMBER_BITS) - 1)) as u16;
                (NUMBER_BITS, 15 + (value as u8 & words), 2, value)
            } else {
                let code = (buffer & ((1 << of_word) - 1)) as u8 & words;
                (of_word, 15 + code, u8::from(class == Class::Capital as u8), CAPITALS + u16::from(code))
            };
            buffer >>= bits;
            count = count.saturating_sub(used + bits);
            codes.push(code);
            facts.push(fact);
            values.push(value);
        }
    }

    /// Codes of a token of the title, as those of the body that it is compared with.
    pub fn title_code(value: u16, as_coarse: bool) -> u8 {
        let (characters, words) = if as_coarse { (7, 31) } else { (15, 63) };
        let hash = value & 0x7FFF;
        if value >> 15 == 1 { (hash % 15 % characters) as u8 } else { 15 + (hash & words) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::tests::{plain_tokens, some_tokens};
    use super::*;

    fn packed(body: &[Token], title: &[Token]) -> Vec<u8> {
        let mut packed = Vec::new();
        pack(body, title, &mut packed);
        packed
    }

    fn decoded(stream: &Stream, as_coarse: bool) -> [Vec<u16>; 3] {
        let mut tokens = Tokens { codes: vec![9; 5], facts: vec![9; 5], values: vec![9; 5] };
        stream.decode(as_coarse, &mut tokens);
        let values = tokens.facts.iter().zip(&tokens.values).map(|(&fact, &value)| if fact > 0 { value } else { 0 });
        let values = values.collect();
        [tokens.codes, tokens.facts]
            .map(|bytes| bytes.into_iter().map(u16::from).collect())
            .into_iter()
            .chain([values])
            .collect::<Vec<_>>()
            .try_into()
            .unwrap()
    }

    proptest! {
        /// Of pages of any length, mostly words or mostly characters.
        #[test]
        fn a_stream_says_codes_facts_and_values(
            (body, title) in (prop_oneof![0..40_usize, 1020..1030_usize, 6140..6150_usize], 0..=10_u64)
                .prop_flat_map(|(count, words)| (some_tokens(count, words), some_tokens(40, words))),
            title_count in 0..40_usize,
        ) {
            let title = &title[..title_count];
            let packed = packed(&body, title);
            let stream = Stream::new(&packed).unwrap();
            let is_coarse = body.len() > FINE;
            prop_assert_eq!((stream.is_coarse, stream.is_cut()), (is_coarse, body.len() > MOST));
            prop_assert_eq!((stream.tokens, stream.kept), (body.len(), body.len().min(MOST)));
            for as_coarse in [is_coarse, true] {
                let [codes, facts, values] = plain_tokens(&body, as_coarse);
                prop_assert_eq!(decoded(&stream, as_coarse), [codes, facts, values]);
            }
        }

        /// The words and pairs of a title that stand in the body, wherever, by whole hashes.
        #[test]
        fn a_stream_says_what_of_its_title_stands_in_the_body(body in some_tokens(60, 6), title in some_tokens(40, 6)) {
            let packed = packed(&body, &title);
            let (stream, title) = (Stream::new(&packed).unwrap(), &title[..MOST_TITLE]);
            let stands = |terms: &[Token]| {
                let is_same = |(one, other): (&Token, &Token)| one.hash == other.hash;
                body.windows(terms.len()).any(|window| window.iter().zip(terms).all(is_same))
            };
            for (place, token) in title.iter().enumerate() {
                prop_assert_eq!(stream.is_in_body(place, false), stands(&title[place..=place]));
                if place + 1 < title.len() {
                    prop_assert_eq!(stream.is_in_body(place, true), stands(&title[place..place + 2]));
                }
                for as_coarse in [false, true] {
                    let code = plain_tokens(&[*token], as_coarse)[0][0];
                    let value = stream.title().nth(place).unwrap();
                    prop_assert_eq!(u16::from(Stream::title_code(value, as_coarse)), code);
                }
            }
        }

        /// All codes of any bytes are codes, so tables of them can be indexed.
        #[test]
        fn any_bytes_can_be_decoded(header in (0..5_u8, 0..35_u8, 0..9000_u32), bytes in vec(any::<u8>(), 0..900)) {
            let (flags, title, tokens) = header;
            let kept = tokens.min(MOST as u32) as u16;
            let made = [&[flags, title], &tokens.to_le_bytes()[..3], &kept.to_le_bytes(), &bytes].concat();
            for (bytes, is_any) in [(&bytes, true), (&made, false)] {
                let Some(stream) = Stream::new(bytes) else {
                    let is_cut = made.len() < HEADER + 2 * usize::from(title) + term_bytes(title.into());
                    prop_assert!(is_any || is_cut || flags > 3 || usize::from(title) > MOST_TITLE);
                    continue;
                };
                for as_coarse in [stream.is_coarse, true] {
                    let [codes, facts, _] = decoded(&stream, as_coarse);
                    prop_assert_eq!([codes.len(), facts.len()], [stream.kept; 2]);
                    prop_assert!(codes.iter().all(|&code| usize::from(code) < CODES));
                    prop_assert!(facts.iter().all(|&fact| fact < 3));
                }
            }
        }
    }

    #[test]
    fn a_page_without_tokens_is_seven_bytes() {
        assert_eq!(packed(&[], &[]), [0; HEADER]);
        let [one, other] = [1, 2].map(|hash| Token { hash, class: Class::Word });
        assert_eq!(packed(&[one, other], &[]), [WORDS, 0, 2, 0, 0, 2, 0, 0b0000_0010, 0b0000_0010]);
    }
}
