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
use crate::evidence::{EvidenceMaker, metadata};
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
    /// Letters of an n-gram of the `body` channel.
    pub ngram: usize,
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
        ngram_finder.find(letters, self.ngram, ngrams);
        let too_little = self.too_little(letters.len(), ngrams.len());
        let body = (!ngrams.is_empty()).then(|| self.body(ngrams));
        evidence_maker.read(&text.folded, ngrams);
        ngram_finder.keep_distinct(ngrams);
        let mut prepared = Prepared {
            words: words.transpose()?.flatten(),
            body,
            body_hash: exact.body,
            text_hash: exact.text,
            too_little,
            ..Prepared::default()
        };
        if !letters.is_empty() || !metadata.is_empty() {
            prepared.evidence = evidence_maker.pack(&text.folded, letters, ngrams, &metadata);
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
        for ngram in &mut *ngrams {
            *ngram = mix64(ngram.wrapping_add(GAMMA));
        }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::features::cutter::IcuWords;
    use crate::features::lexicon::{MarkerBy, WordLists, WordNeeds};
    use crate::features::word_hash::WordHash;
    use crate::segmentation::Segmenter;

    const NEEDS: WordNeeds = WordNeeds { with_title: true, marker_by: MarkerBy::Sentence, min_chars: 2 };

    /// The segmenter of a dictionary with few words.
    fn segmenter() -> Segmenter {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("preparer-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(folder.join("finalseg")).unwrap();
        for (name, text) in [
            ("dict.txt", "大桥 9 n\n今天 8 t\n通车 7 v\n总之 3 c\n"),
            ("finalseg/prob_start.py", "P={'B': -1.0, 'E': -1.0, 'M': -1.0, 'S': -1.0}"),
            ("finalseg/prob_trans.py", "P={'B': {'E': -1.0, 'M': -1.0}, 'E': {'B': -1.0, 'S': -1.0}}"),
            ("finalseg/prob_emit.py", "P={'B': {'\\u4e00': -1.0}}"),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let segmenter = Segmenter::open(&folder, None, &[]).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        segmenter
    }

    /// A preparer with few words.
    fn preparer(needs: WordNeeds, is_wide: bool, icu: Option<IcuWords>) -> Preparer {
        let cutter = Cutter::new(segmenter(), icu);
        let [stop_words, markers] = [["the", "总之"].as_slice(), &["总之", "in conclusion"]]
            .map(|words| words.iter().map(|word| String::from(*word)).collect::<Vec<_>>());
        let lists = WordLists { idf: "大桥 7.5\nbridge 3\n", stop_words: &stop_words, markers: &markers };
        let lexicon = Lexicon::new(&lists, needs, &cutter).unwrap();
        let hash = WordHash::Xxh3;
        let weights = Weights { by_idf: true, title: 5.0, marker: 2.0, is_product: true, hash, is_wide };
        Preparer { cutter, lexicon, weights: Some(weights), is_wide, ngram: 3, min_letters: 64 }
    }

    fn page(title: &str, text: &str) -> Page<String> {
        Page { title: title.into(), text: text.into(), language: Language::Other, metadata: Vec::new() }
    }

    /// Of each word: itself, how often it occurs, and whether it is in the title and marked.
    fn words(preparer: &Preparer, title: &str, text: &str) -> Vec<(String, u32, bool, bool)> {
        let words = preparer.words(&page(title, text)).unwrap();
        words.into_iter().map(|(word, of)| (word, of.count, of.in_title, of.is_marked)).collect()
    }

    #[test]
    fn words_are_counted_with_title_and_markers() {
        let preparer = preparer(NEEDS, false, None);
        let row = |word: &str, count, in_title, is_marked| (word.to_owned(), count, in_title, is_marked);
        assert_eq!(
            words(&preparer, "大桥通车", "今天大桥。总之，大桥今天一！"),
            [row("今天", 2, false, true), row("大桥", 2, true, true), row("通车", 1, true, false)]
        );
        assert_eq!(
            words(&preparer, "", "The bridge. A bridge, in conclusion, opens. It opens"),
            [row("bridge", 2, false, true), row("in", 1, false, true), row("conclusion", 1, false, true)]
                .into_iter()
                .chain([row("opens", 2, false, true), row("it", 1, false, false)])
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn needs_say_which_words_are_features() {
        let needs = WordNeeds { with_title: false, marker_by: MarkerBy::Word, min_chars: 1 };
        let preparer = preparer(needs, false, None);
        let found = words(&preparer, "大桥", "a 总之 x. in conclusion");
        assert_eq!(found.iter().map(|(word, ..)| word.as_str()).collect::<Vec<_>>(), ["a", "x", "in", "conclusion"]);
        assert!(found.iter().all(|(.., is_marked)| !is_marked));
    }

    #[test]
    fn a_page_with_too_little_text_says_so() {
        let again = "ab ".repeat(40);
        let reasons = [
            ("", "no text"),
            ("(…)", "no text"),
            ("short", "too little text: 5 letters, at least 64 to judge"),
            (again.as_str(), "too little variety: 2 different shingles in 80 letters, at least 32 to judge"),
        ];
        let preparer = preparer(NEEDS, false, None);
        for (text, reason) in reasons {
            let made = preparer.prepare(&[page("title", text)], 1).unwrap().remove(0);
            assert_eq!(made.too_little.map(|reason| reason.to_string()).as_deref(), Some(reason));
            assert_eq!(made.keys.len(), 0);
            assert_eq!(made.evidence.is_empty(), reason == "no text");
        }
    }

    #[test]
    fn metadata_alone_is_evidence() {
        let metadata = ["Tag", "tag", " ", "other"].map(String::from).to_vec();
        let prepared = preparer(NEEDS, false, None).prepare(&[Page { metadata, ..page("", "") }], 1).unwrap();
        let evidence = crate::evidence::Evidence::new(&prepared[0].evidence);
        assert_eq!((evidence.letters, evidence.metadata.len()), (0, 1 + 2 * 8));
    }

    #[test]
    fn icu_that_loses_text_is_a_fault() {
        for (length, is_right) in [(2, true), (1, false), (3, false), (usize::MAX, false)] {
            let preparer = preparer(NEEDS, false, Some(Box::new(move |_| Ok(vec![1, length]))));
            assert_eq!(preparer.prepare(&[page("", "ภาษ")], 1).is_ok(), is_right, "{length}");
        }
    }

    #[test]
    fn a_bad_idf_table_is_refused() {
        let cutter = preparer(NEEDS, false, None).cutter;
        let lists = WordLists { idf: "a 1\nb x\n", stop_words: &[], markers: &[] };
        let refused = Lexicon::new(&lists, NEEDS, &cutter).err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), Some("IDF table, line 2: expected 'word value', got 'b x'"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn a_page_is_prepared_alike_in_any_company(
            texts in vec(("\\PC{0,20}", "(大桥|今天|一|[a-e]{1,4} |[0-9,.$%]{1,6}|总之|。|\n|\\PC){0,80}"), 0..60),
        ) {
            let pages: Vec<Page<String>> = texts.iter().map(|(title, text)| page(title, text)).collect();
            let (preparer, wide) = (preparer(NEEDS, false, None), preparer(NEEDS, true, None));
            let together = preparer.prepare(&pages, 3).unwrap();
            let alone: Vec<Prepared> =
                pages.chunks(1).flat_map(|page| preparer.prepare(page, 1).unwrap()).collect();
            prop_assert_eq!(&together, &alone);
            for (narrow, wide) in alone.iter().zip(wide.prepare(&pages, 1).unwrap()) {
                prop_assert_eq!(narrow.body, wide.body.map(|body| u128::from(body as u64)));
                prop_assert_eq!(narrow.words.is_some(), wide.words.is_some());
                prop_assert_eq!((&narrow.evidence, &narrow.keys), (&wide.evidence, &wide.keys));
            }
        }
    }
}
