//! From the texts of pages to what decisions need to know of them.
//!
//! `words`: `SimHash` of the weighted words of title and body, if the space weighs them in the usual way. `body`: `SimHash`
//! of the distinct n-grams of the body alone, since an edited headline must not move it. A page without text has neither;
//! one with too few letters, or with the same few again and again, has both, but also a reason why it cannot be judged.
//!
//! Invariant: what is made of a page depends on the page alone, not on others, their order or the threads.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use thiserror::Error;

use crate::error::{Result, TableError};
use crate::evidence::keys::KeyFinder;
use crate::evidence::{EvidenceMaker, SHINGLE, metadata};
use crate::features::cutter::Cutter;
use crate::features::lexicon::Lexicon;
use crate::features::simhash::majority;
use crate::features::word_hash::xxh3_of;
use crate::features::words::{CountedWord, Weights, WordCounter};
use crate::memory::{GAMMA, mix64};
use crate::segmentation::scripts::Language;
use crate::text::PageText;
use crate::text::exact_form::exact_hashes;
use crate::text::fold::fold;
use crate::text::ngrams::NgramFinder;

/// Letters of an n-gram of the `body` channel.
pub const NGRAM: usize = 3;
/// Pages that a thread takes at once.
const PAGES: usize = 16;

/// The texts of a page as extracted, not folded.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// Main title; may be empty.
    pub title: T,
    /// Main text; may be empty.
    pub text: T,
    /// The language that the page states, as far as it decides.
    pub language: Language,
    /// Keywords, tags and references.
    pub metadata: Vec<T>,
}

/// Why a page has too little text to be judged. Of few features, each bit of a fingerprint has a small margin.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TooLittle {
    /// It has no letters.
    #[error("no text")]
    Text,
    /// It has too few letters.
    #[error("too little text: {letters} letters, at least {minimum} to judge")]
    Letters {
        /// Those of the body.
        letters: usize,
        /// How many it needs.
        minimum: usize,
    },
    /// It has too few different n-grams.
    #[error("too little variety: {ngrams} different shingles in {letters} letters, at least {minimum} to judge")]
    Variety {
        /// Distinct n-grams of the body.
        ngrams: usize,
        /// Those of the body.
        letters: usize,
        /// How many n-grams it needs.
        minimum: usize,
    },
}

/// What is made of the texts of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Fingerprint of the words; None without words, or if the space does not weigh them in the usual way.
    pub words: Option<u128>,
    /// Fingerprint of the n-grams of the body; None without any.
    pub body: Option<u128>,
    /// Hash of the exact form of the body; None without text.
    pub body_hash: Option<u64>,
    /// Hash of the exact forms of title and body together; None without text.
    pub text_hash: Option<u64>,
    /// Packed evidence; empty without text and metadata.
    pub evidence: Vec<u8>,
    /// Packed min-hash keys, 32 bits each, little-endian; empty of a page with too little text.
    pub keys: Vec<u8>,
    /// Why it cannot be judged.
    pub too_little: Option<TooLittle>,
}

/// Prepares the pages of a space. It does not change, so threads share it.
pub struct Preparer {
    /// Cuts texts into words.
    pub cutter: Cutter,
    /// What is known of words.
    pub lexicon: Lexicon,
    /// How words are weighed; None if the space does it in another way.
    pub weights: Option<Weights>,
    /// Whether fingerprints have 128 bits, not 64.
    pub is_wide: bool,
    /// A body with fewer letters is too short to judge.
    pub min_letters: usize,
}

/// What is kept from page to page, so that its parts need no new memory.
#[derive(Default)]
struct Workspace {
    letters: Vec<u32>,
    ngrams: Vec<u64>,
    ngram_finder: NgramFinder,
    key_finder: KeyFinder,
    evidence_maker: EvidenceMaker,
    word_counter: WordCounter,
}

impl Preparer {
    /// Return what is made of pages, in their order. threads: 1 works in the caller's.
    ///
    /// Threads live as long as the call, so a process may be forked between two.
    ///
    /// # Errors
    /// Those of [`Cutter::cut`]; a configuration error if there cannot be so many threads.
    pub fn prepare<T: AsRef<str> + Sync>(&self, pages: &[Page<T>], threads: usize) -> Result<Vec<Prepared>> {
        let threads = threads.min(pages.len().div_ceil(PAGES));
        if threads <= 1 {
            let mut space = Workspace::default();
            return pages.iter().map(|page| self.prepared(page, &mut space)).collect();
        }
        let refused = |error| TableError::Configuration(format!("cannot have {threads} threads: {error}"));
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().map_err(refused)?;
        let prepared = || {
            let pages = pages.par_iter().with_min_len(PAGES);
            pages.map_init(Workspace::default, |space, page| self.prepared(page, space)).collect()
        };
        pool.install(prepared)
    }

    /// Return the distinct words of a page, each with what is known of it, in the order in which they first occur.
    ///
    /// # Errors
    /// Those of [`Cutter::cut`].
    pub fn words<T: AsRef<str>>(&self, page: &Page<T>) -> Result<Vec<(String, CountedWord)>> {
        let PageText { folded, .. } = &PageText::of(page.title.as_ref(), page.text.as_ref());
        let counted = WordCounter::default().count(folded, page.language, &self.cutter, &self.lexicon)?;
        let string = |word: &CountedWord| {
            folded.points()[word.segment.clone()].iter().filter_map(|&code| char::from_u32(code)).collect()
        };
        Ok(counted.into_iter().map(|word| (string(&word), word)).collect())
    }

    fn prepared<T: AsRef<str>>(&self, page: &Page<T>, space: &mut Workspace) -> Result<Prepared> {
        let text = PageText::of(page.title.as_ref(), page.text.as_ref());
        let exact = exact_hashes(text.exact());
        let words = self.weights.as_ref().map(|weights| {
            space.word_counter.simhash(&text.folded, page.language, &self.cutter, &self.lexicon, weights)
        });
        let metadata = metadata_of(&page.metadata);
        let Workspace { letters, ngrams, ngram_finder, key_finder, evidence_maker, .. } = space;
        *letters = text.folded.letters();
        ngram_finder.find::<NGRAM>(letters, ngrams);
        let too_little = self.too_little(letters.len(), ngrams.len());
        let body = (!ngrams.is_empty()).then(|| self.body(ngrams));
        ngram_finder.find::<SHINGLE>(letters, ngrams);
        let mut prepared = Prepared {
            words: words.transpose()?.flatten(),
            body,
            body_hash: exact.body,
            text_hash: exact.text,
            too_little,
            ..Prepared::default()
        };
        if !letters.is_empty() || !metadata.is_empty() {
            let (title, body) = (text.folded.title(), text.folded.body());
            prepared.evidence = evidence_maker.pack(title, body, letters, ngrams, &metadata);
        }
        if too_little.is_none() {
            prepared.keys = key_finder.keys(ngrams).as_flattened().iter().flat_map(|key| key.to_le_bytes()).collect();
        }
        Ok(prepared)
    }

    /// Return the fingerprint of n-grams, which are changed.
    fn body(&self, ngrams: &mut [u64]) -> u128 {
        let low = u128::from(majority(ngrams));
        if !self.is_wide {
            return low;
        }
        ngrams.iter_mut().for_each(|ngram| *ngram = mix64(ngram.wrapping_add(GAMMA)));
        u128::from(majority(ngrams)) << 64 | low
    }

    fn too_little(&self, letters: usize, ngrams: usize) -> Option<TooLittle> {
        let minimum = self.min_letters;
        if letters == 0 {
            Some(TooLittle::Text)
        } else if letters < minimum {
            Some(TooLittle::Letters { letters, minimum })
        } else if ngrams < minimum / 2 {
            Some(TooLittle::Variety { ngrams, letters, minimum: minimum / 2 })
        } else {
            None
        }
    }
}

/// Return the packed metadata with these members, folded.
fn metadata_of<T: AsRef<str>>(members: &[T]) -> Vec<u8> {
    let folded = members.iter().map(|member| fold(member.as_ref()));
    metadata::pack(folded.filter(|member| !member.is_empty()).map(|member| xxh3_of(&member)).collect())
}
