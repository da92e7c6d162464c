//! The evidence of a page as bytes, some 730 a page, to verify candidates with.
//!
//! Layout, little-endian: a header, with letters, size, shingles, numbers and sentences (32 bits each) and the digest
//! of the figures (64 bits), then how many numbers, sentences and title terms follow (8 bits each), and how many bytes
//! of metadata (16 bits). After it the sketch (64 bytes), sentences (32 bits each), title terms (16 bits each),
//! numbers (16 bits each), the metadata, and the stream of the page's tokens (`stream::packed`) to the end. Sentences
//! and terms are ascending and distinct, numbers ascending.
//!
//! Of many numbers or sentences, only those with the smallest hashes are kept, so two pages keep the same part of what
//! they have in common.

pub mod keys;
pub mod metadata;
pub mod numbers;
pub mod sentences;
pub mod sketch;

use crate::characters::characters;
use crate::memory::{GAMMA, mix64};
use numbers::NumberFinder;
use sketch::{Sketch, Sketcher};

use crate::stream::grams::grams_of;
use crate::stream::packed::{Stream, pack};
use crate::stream::tokens::{Token, find_tokens};
use crate::text::page_text::BodyAndTitle;

/// Numbers of a page that its evidence has at most.
pub const MAX_NUMBERS: usize = 64;
/// Sentences of a page that its evidence has at most.
pub const MAX_SENTENCES: usize = 128;
/// Terms of a title that evidence has at most.
pub const MAX_TERMS: usize = 32;

const HEADER_BYTES: usize = 33;
/// From Thai on, letters count as those of scripts without spaces.
///
/// So do Korean, whose words are short, and by their place in Unicode also letters of scripts with spaces: Georgian,
/// Ethiopic, polytonic Greek, and those of Latin Extended Additional, as in Vietnamese (ạ is U+1EA1).
const UNSPACED_FROM: u32 = 0x0E00;

/// A view of packed evidence.
///
/// Invariant: it is as [`Content::pack`] writes it, or that of an empty page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// Letters and digits of the body.
    pub letters: u32,
    /// Letters, 15 of an alphabet counted as 8, since English needs twice as many as Chinese.
    pub size: u32,
    /// Number of distinct shingles.
    pub shingles: u32,
    /// Number of numbers, with repetitions.
    pub number_count: u32,
    /// Number of distinct sentences.
    pub sentence_count: u32,
    /// Digest of all figures; equal if and only if the pages have the same ones.
    pub figures: u64,
    /// The packed metadata.
    pub metadata: &'a [u8],
    /// The tokens of title and body in their order; none of an empty page.
    pub stream: Option<Stream<'a>>,
    sketch: Option<&'a Sketch>,
    sentences: &'a [u8],
    terms: &'a [u8],
    numbers: &'a [u8],
}

/// Return the size of a page by its packed evidence; see [`Evidence::size`].
pub fn size_of(packed: &[u8]) -> u32 {
    packed.get(4..8).and_then(|size| size.first_chunk().copied()).map_or(0, u32::from_le_bytes)
}

impl<'a> Evidence<'a> {
    /// Read packed evidence. Bytes that [`Content::pack`] does not write read as the evidence of an empty page.
    pub fn new(packed: &'a [u8]) -> Self {
        Self::read(packed).unwrap_or_default()
    }

    fn read(packed: &'a [u8]) -> Option<Self> {
        let (header, rest) = packed.split_first_chunk::<HEADER_BYTES>()?;
        let (sketch, rest) = rest.split_first_chunk()?;
        let [.., numbers, sentences, terms, low, high] = *header;
        let [numbers, sentences, terms] = [numbers, sentences, terms].map(usize::from);
        if numbers > MAX_NUMBERS || sentences > MAX_SENTENCES || terms > MAX_TERMS {
            return None;
        }
        let (sentences, rest) = rest.split_at_checked(4 * sentences)?;
        let (terms, rest) = rest.split_at_checked(2 * terms)?;
        let (numbers, rest) = rest.split_at_checked(2 * numbers)?;
        let (metadata, stream) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let evidence = Self {
            letters: word(0),
            size: word(4),
            shingles: word(8),
            number_count: word(12),
            sentence_count: word(16),
            figures: u64::from(word(20)) | u64::from(word(24)) << 32,
            metadata,
            stream: Some(Stream::new(stream)?),
            sketch: Some(sketch),
            sentences,
            terms,
            numbers,
        };
        evidence.ascends().then_some(evidence)
    }

    fn ascends(&self) -> bool {
        ascend(self.sentences(), 1) && ascend(self.terms(), 1) && ascend(self.numbers(), 0)
    }

    /// The sketch of the shingles, all bits 0 without shingles; none of an empty page.
    pub fn sketch(&self) -> Option<&'a Sketch> {
        self.sketch
    }

    /// The first 128 bits of the sketch, which the cells compare; zeros without one.
    pub fn sieve(&self) -> [u64; 2] {
        let words: [u64; 2] = self.sketch.map_or([0; 2], |sketch| bytemuck::pod_read_unaligned(&sketch[..16]));
        words.map(u64::from_le)
    }

    /// The sample of the sentences, as values (`sentences`): ascending, distinct.
    pub fn sentences(&self) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + Clone + use<'a> {
        self.sentences.chunks_exact(4).map(|value| u32::from_le_bytes([value[0], value[1], value[2], value[3]]))
    }

    /// The terms of the title, as hashes: ascending, distinct.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = u16> + Clone + use<'a> {
        self.terms.chunks_exact(2).map(|term| u16::from_le_bytes([term[0], term[1]]))
    }

    /// The bytes of the terms, little-endian, to hash them.
    pub fn term_bytes(&self) -> &'a [u8] {
        self.terms
    }

    /// The sample of the numbers, as hashes of value and unit: ascending.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = u16> + Clone + use<'a> {
        self.numbers.chunks_exact(2).map(|number| u16::from_le_bytes([number[0], number[1]]))
    }
}

/// What packed evidence has, to be written; the samples as [`Evidence`] returns them.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// Letters, size, shingles, numbers and sentences, as the fields of [`Evidence`].
    pub counts: [u32; 5],
    /// Digest of all figures.
    pub figures: u64,
    /// The sketch of the shingles.
    pub sketch: &'a Sketch,
    /// At most [`MAX_SENTENCES`], ascending and distinct.
    pub sentences: &'a [u32],
    /// At most [`MAX_TERMS`], ascending and distinct.
    pub terms: &'a [u16],
    /// At most [`MAX_NUMBERS`], ascending.
    pub numbers: &'a [u16],
    /// Packed metadata, below 64 KiB.
    pub metadata: &'a [u8],
    /// Tokens of title and body.
    pub tokens: [&'a [Token]; 2],
}

impl Content<'_> {
    /// Append the evidence as bytes.
    pub fn pack(&self, packed: &mut Vec<u8>) {
        packed.extend(self.counts.iter().flat_map(|count| count.to_le_bytes()));
        packed.extend(self.figures.to_le_bytes());
        packed.extend([self.numbers.len(), self.sentences.len(), self.terms.len()].map(|count| count as u8));
        packed.extend((self.metadata.len() as u16).to_le_bytes());
        packed.extend(self.sketch);
        packed.extend(self.sentences.iter().flat_map(|value| value.to_le_bytes()));
        packed.extend(self.terms.iter().flat_map(|term| term.to_le_bytes()));
        packed.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        packed.extend(self.metadata);
        let [title, body] = self.tokens;
        pack(body, title, packed);
    }
}

/// Makes evidence. It is kept for many pages, whose parts then need no new memory.
#[derive(Debug, Default)]
pub struct EvidenceMaker {
    numbers: NumberFinder,
    sketcher: Sketcher,
    sentences: Vec<u32>,
    terms: Vec<u16>,
    tokens: [Vec<Token>; 2],
    ends: Vec<u32>,
}

impl EvidenceMaker {
    /// Find the tokens of a page, and replace `grams` by the hashes of those of its body, in order.
    pub fn read(&mut self, page: &BodyAndTitle, grams: &mut Vec<u64>) {
        let [title, body] = &mut self.tokens;
        title.clear();
        body.clear();
        find_tokens(page, body, title);
        grams_of(body, grams, &mut self.ends);
    }

    /// Return the packed evidence of the page that was read last.
    ///
    /// letters: of the body. shingles: its distinct grams. metadata: packed.
    pub fn pack(&mut self, page: &BodyAndTitle, letters: &[u32], shingles: &[u64], metadata: &[u8]) -> Vec<u8> {
        let (title, body) = (page.title(), page.body());
        let [of_title, of_body] = &self.tokens;
        let numbers = self.numbers.find(body, MAX_NUMBERS);
        sentences::find_sentences(body, &mut self.sentences);
        find_terms(title, &mut self.terms);
        let alphabetic = letters.iter().filter(|&&letter| letter < UNSPACED_FROM).count();
        let size = letters.len() - alphabetic + alphabetic * 8 / 15;
        let counts =
            [letters.len(), size, shingles.len(), numbers.count, self.sentences.len()].map(|count| count as u32);
        self.sentences.truncate(MAX_SENTENCES);
        let sketch = self.sketcher.sketch(shingles);
        let mut packed = Vec::with_capacity(1024);
        Content {
            counts,
            figures: numbers.digest,
            sketch: &sketch,
            sentences: &self.sentences,
            terms: &self.terms,
            numbers: numbers.sample,
            metadata,
            tokens: [of_title, of_body],
        }
        .pack(&mut packed);
        packed
    }
}

/// Replace `terms` by hashes of the terms of a folded title, the smallest ones, ascending and distinct.
///
/// Terms are words, or pairs of letters from `UNSPACED_FROM` on; one such letter between others is a term, too.
fn find_terms(title: &[u32], terms: &mut Vec<u16>) {
    let characters = characters();
    let is_unspaced = |code: u32| code >= UNSPACED_FROM;
    let next = |hash: u64, code: u32| mix64(hash.wrapping_add(u64::from(code)).wrapping_add(GAMMA));
    let hash_of = |letters: &[u32]| (letters.iter().fold(0, |hash, &code| next(hash, code)) >> 48) as u16;
    terms.clear();
    for run in title.chunk_by(|&one, &other| {
        characters.is_letter(one) && characters.is_letter(other) && is_unspaced(one) == is_unspaced(other)
    }) {
        match *run {
            [code] if !characters.is_letter(code) => {}
            [first, _, ..] if is_unspaced(first) => terms.extend(run.windows(2).map(hash_of)),
            _ => terms.push(hash_of(run)),
        }
    }
    terms.sort_unstable();
    terms.dedup();
    terms.truncate(MAX_TERMS);
}

/// Whether each value is at least so much above the one before it. Without branches, which would take twice as long.
fn ascend<T: Into<i64>>(values: impl Iterator<Item = T>, least_step: i64) -> bool {
    let count = |(faults, last), value| (faults + u32::from(value - last < least_step), value);
    values.map(Into::into).fold((0, -1), count).0 == 0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use crate::stream::packed::MOST_TITLE;
    use crate::stream::tokens::Class;
    use crate::text::page_text::PageText;

    /// What packed evidence has, in its order.
    #[derive(Clone, Debug)]
    pub(crate) struct Fields {
        pub(crate) counts: [u32; 5],
        pub(crate) figures: u64,
        pub(crate) sketch: Sketch,
        pub(crate) sentences: Vec<u32>,
        pub(crate) terms: Vec<u16>,
        pub(crate) numbers: Vec<u16>,
        pub(crate) metadata: Vec<u8>,
        pub(crate) tokens: Vec<Token>,
    }

    impl Fields {
        /// The evidence, packed.
        pub(crate) fn packed(&self) -> Vec<u8> {
            let mut packed = Vec::new();
            let Self { counts, figures, sketch, sentences, terms, numbers, metadata, tokens } = self;
            let (counts, figures, tokens) = (*counts, *figures, [&tokens[..tokens.len().min(3)], tokens]);
            Content { counts, figures, sketch, sentences, terms, numbers, metadata, tokens }.pack(&mut packed);
            packed
        }
    }

    /// Evidence of any page, related or not: from small pools, with samples that are full or not.
    pub(crate) fn fields() -> impl Strategy<Value = Fields> {
        let count = || prop_oneof![0..300_u32, prop::sample::select(vec![0, 1, 64, 65, 128, 129, u32::MAX])];
        let metadata = prop_oneof![Just(Vec::new()), vec(any::<u8>(), 0..30)];
        let samples = (
            btree_set((0..400_u32).prop_map(|place| place * 10_000_000 + place % 64), 0..=MAX_SENTENCES),
            btree_set(0..12_u16, 0..8),
            vec(0..90_u16, 0..=MAX_NUMBERS),
        );
        let sketch = (any::<u8>(), 0..=sketch::BINS / 8);
        (count(), count(), count(), count(), count(), 0..2_u64, sketch, samples, metadata).prop_map(
            |(letters, size, shingles, numbers, sentences, figures, (byte, until), samples, metadata)| {
                let mut sketch = [0; sketch::BINS / 8];
                sketch[..until].fill(byte);
                let counts = [letters, size, shingles, numbers, sentences];
                let (sentence_set, term_set, mut numbers) = samples;
                numbers.sort_unstable();
                let (sentences, terms) = (sentence_set.into_iter().collect(), term_set.into_iter().collect());
                let classes = [Class::Character, Class::Word, Class::Number, Class::Ordinal, Class::Capital];
                let token = |at: u32| Token { hash: mix64(u64::from(at % 40)), class: classes[at as usize % 5] };
                let tokens = (0..letters.min(1500)).map(token).collect();
                Fields { counts, figures, sketch, sentences, terms, numbers, metadata, tokens }
            },
        )
    }

    proptest! {
        #[test]
        fn evidence_reads_as_it_was_packed(fields in fields()) {
            let packed = fields.packed();
            let evidence = Evidence::new(&packed);
            let counts = [
                evidence.letters,
                evidence.size,
                evidence.shingles,
                evidence.number_count,
                evidence.sentence_count,
            ];
            prop_assert_eq!(counts, fields.counts);
            prop_assert_eq!(evidence.figures, fields.figures);
            prop_assert_eq!(evidence.sketch(), Some(&fields.sketch));
            prop_assert_eq!(evidence.sentences().collect::<Vec<_>>(), fields.sentences);
            prop_assert_eq!(evidence.terms().collect::<Vec<_>>(), fields.terms);
            prop_assert_eq!(evidence.numbers().collect::<Vec<_>>(), fields.numbers);
            prop_assert_eq!(evidence.metadata, fields.metadata);
        }

        /// Up to its tokens: bits that are missing there read as 0, and those behind the last one are not read.
        #[test]
        fn evidence_that_was_cut_is_that_of_an_empty_page(fields in fields(), cut in 1..400_usize) {
            let mut packed = Fields { tokens: Vec::new(), ..fields }.packed();
            prop_assert!(Evidence::new(&packed).sketch().is_some());
            packed.truncate(packed.len().saturating_sub(cut));
            prop_assert!(Evidence::new(&packed).sketch().is_none());
        }

        #[test]
        fn any_bytes_can_be_read(bytes in vec(any::<u8>(), 0..1500)) {
            Evidence::new(&bytes).sieve();
        }
    }

    fn points(text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    #[test]
    fn a_title_is_words_or_pairs_of_letters() {
        let terms_of = |title: &str| {
            let mut terms = Vec::new();
            find_terms(&points(title), &mut terms);
            terms
        };
        assert_eq!(terms_of("word 大桥今天, x: 一"), terms_of("一 大桥 桥今 今天 x-word"));
        assert_eq!(terms_of("大桥今天").len(), 3);
        assert_eq!(terms_of("a大b").len(), 3);
        assert_eq!(terms_of("(…)").len(), 0);
        let long = (0..100).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(terms_of(&long).len(), MAX_TERMS);
    }

    proptest! {
        #[test]
        fn made_evidence_can_be_read(
            title in "\\PC{0,80}",
            body in "([a-z]{1,9}[ .]|[一-十]{1,9}。|\\PC){0,300}",
            members in vec(any::<u64>(), 0..70),
        ) {
            let (page, metadata) = (PageText::of(&title, &body).folded, metadata::pack(members));
            let letters = page.letters();
            let shingles: Vec<u64> = letters.iter().map(|&letter| mix64(u64::from(letter))).collect();
            let mut maker = EvidenceMaker::default();
            maker.read(&page, &mut Vec::new());
            let packed = maker.pack(&page, &letters, &shingles, &metadata);
            let evidence = Evidence::new(&packed);
            prop_assert_eq!(evidence.letters as usize, letters.len());
            prop_assert_eq!(evidence.sketch(), Some(&Sketcher::default().sketch(&shingles)));
            prop_assert_eq!(evidence.numbers().len(), MAX_NUMBERS.min(evidence.number_count as usize));
            prop_assert_eq!(evidence.sentences().len(), MAX_SENTENCES.min(evidence.sentence_count as usize));
            prop_assert_eq!(evidence.metadata, &metadata[..]);
            let (mut of_body, mut of_title) = (Vec::new(), Vec::new());
            find_tokens(&page, &mut of_body, &mut of_title);
            let stream = evidence.stream.unwrap();
            prop_assert_eq!((stream.tokens, stream.title().len()), (of_body.len(), of_title.len().min(MOST_TITLE)));
        }
    }

    #[test]
    fn samples_that_do_not_ascend_are_those_of_no_page() {
        let empty = Fields {
            counts: [9; 5],
            figures: 0,
            sketch: [1; sketch::BINS / 8],
            sentences: Vec::new(),
            terms: Vec::new(),
            numbers: vec![1, 1],
            metadata: Vec::new(),
            tokens: Vec::new(),
        };
        assert_eq!(Evidence::new(&empty.packed()).sieve(), [0x0101_0101_0101_0101; 2]);
        let others = [
            Fields { sentences: vec![2, 2], ..empty.clone() },
            Fields { terms: vec![2, 1], ..empty.clone() },
            Fields { numbers: vec![1, 0], ..empty.clone() },
            Fields { sentences: (0..=MAX_SENTENCES as u32).collect(), ..empty.clone() },
        ];
        assert!(others.iter().all(|fields| Evidence::new(&fields.packed()).letters == 0));
    }
}
