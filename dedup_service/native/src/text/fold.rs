//! One form for texts that a reader would call the same.
//!
//! Folding applies NFKC, full case folding, and `OpenCC`'s conversion to simplified Chinese. It replaces the character
//! references of HTML and the decimal digits of all scripts, and removes invisible characters and what Arabic typesetters
//! vary: stretching, vowel marks, the forms of alef, yeh and teh marbuta. Each run of white space becomes one character, a
//! line feed if it has one.
//!
//! Nearly every character can be folded alone, by a table. A text with another one is folded by `fold_slowly`, the
//! definition; both give the same text. What folding drops and equality needs (exponents, the space in a mixed number,
//! Arabic vowel marks) stays in a text that is folded without loss.
//! Sources: Unicode Standard Annex 15 (NFKC); Unicode 3.13 (default case folding).

use std::borrow::Cow;
use std::ops::RangeInclusive;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::references::without_references;
use super::simplified::simplified;
use crate::characters::{Characters, FoldedForm, IS_SPACE, MAY_BE_TRADITIONAL, characters, with_marks};

/// Combining marks in a row; UAX 15 finds no text in use with more, and sorting takes quadratic time.
const MAX_MARKS: usize = 30;
const ARABIC_VOWELS: RangeInclusive<char> = '\u{64B}'..='\u{652}';
const EXPONENTS: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ";
const SIGNS_OF_EXPONENTS: &str = "⁺⁻";
const INDICES_AND_FRACTIONS: &str = "₀₁₂₃₄₅₆₇₈₉¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉";

/// A text folded, as code points, and folded without loss where that is another text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The folded text.
    pub points: Vec<u32>,
    /// The text folded without loss; None if it is the same.
    pub exact: Option<Vec<u32>>,
}

/// Return texts of one page folded. If one needs a text without loss, all get one.
pub fn fold_all<const N: usize>(texts: [&str; N]) -> [Folded; N] {
    let texts = texts.map(without_references);
    let quick = texts.each_ref().map(|text| fold_by_table(text));
    if quick.iter().all(Option::is_some) {
        return quick.map(|points| Folded { points: points.unwrap_or_default(), exact: None });
    }
    let is_less = texts.iter().any(|text| text.chars().any(says_less));
    texts.map(|text| Folded {
        points: fold_slowly(&text, false),
        exact: is_less.then(|| fold_slowly(&with_numbers_apart(&text), true)),
    })
}

/// Return a text folded.
pub fn fold(text: &str) -> Vec<u32> {
    let text = without_references(text);
    fold_by_table(&text).unwrap_or_else(|| fold_slowly(&text, false))
}

/// Return a text without references folded, None if the tables cannot.
fn fold_by_table(text: &str) -> Option<Vec<u32>> {
    let characters = characters();
    let mut written = Written::with_capacity(text.len() / 2);
    for code in text.chars().map(u32::from) {
        match characters.folded(code) {
            FoldedForm::One(code, marks) => written.push(code, marks),
            FoldedForm::Several(codes) => {
                for (code, marks) in codes.iter().map(|&code| with_marks(code)) {
                    written.push(code, marks);
                }
            }
            FoldedForm::Unknown => return None,
        }
    }
    Some(written.finish())
}

/// Return a text without references folded. `keeps_vowels`: Arabic ones, which equality needs.
fn fold_slowly(text: &str, keeps_vowels: bool) -> Vec<u32> {
    let characters = characters();
    let mut folded = String::with_capacity(text.len());
    for character in nfkc(characters, text).chars() {
        match characters.variant(character) {
            Some(plain) if !(keeps_vowels && ARABIC_VOWELS.contains(&character)) => {
                plain.for_each(|character| push_case_folded(characters, character, &mut folded));
            }
            _ => push_case_folded(characters, character, &mut folded),
        }
    }
    let mut written = Written::with_capacity(folded.len() / 2);
    for code in nfkc(characters, &folded).chars().map(u32::from) {
        written.push(code, characters.marks(code));
    }
    written.finish()
}

fn push_case_folded(characters: &Characters, character: char, folded: &mut String) {
    match characters.case_folded(character) {
        Some(several) => folded.extend(several),
        None => folded.push(character),
    }
}

/// Return a text in NFKC, without the marks after the thirtieth in a row.
fn nfkc<'a>(characters: &Characters, text: &'a str) -> Cow<'a, str> {
    let few_marks = || {
        let mut marks = 0;
        text.chars().filter(move |&character| {
            marks = if characters.is_non_starter(character) { marks + 1 } else { 0 };
            marks <= MAX_MARKS
        })
    };
    if is_nfkc_quick(text.chars()) == IsNormalized::Yes && few_marks().count() == text.chars().count() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(few_marks().nfkc().collect())
}

/// A text that is being written, with each run of white space as one character and none at the ends.
struct Written {
    points: Vec<u32>,
    pending: Option<u32>,
    marks: u8,
}

impl Written {
    const LINE_FEED: u32 = 10;
    const SPACE: u32 = 32;

    fn with_capacity(capacity: usize) -> Self {
        Self { points: Vec::with_capacity(capacity), pending: None, marks: 0 }
    }

    #[inline]
    fn push(&mut self, code: u32, marks: u8) {
        self.marks |= marks;
        if marks & IS_SPACE != 0 {
            let is_break = code == Self::LINE_FEED || self.pending == Some(Self::LINE_FEED);
            self.pending = Some(if is_break { Self::LINE_FEED } else { Self::SPACE });
            return;
        }
        if let Some(space) = self.pending.take().filter(|_| !self.points.is_empty()) {
            self.points.push(space);
        }
        self.points.push(code);
    }

    /// Return the text in simplified Chinese.
    fn finish(self) -> Vec<u32> {
        if self.marks & MAY_BE_TRADITIONAL == 0 { self.points } else { simplified(&self.points) }
    }
}

/// Return whether a character says less when it is folded.
fn says_less(character: char) -> bool {
    !character.is_ascii()
        && (ARABIC_VOWELS.contains(&character)
            || EXPONENTS.contains(character)
            || INDICES_AND_FRACTIONS.contains(character))
}

/// Characters of a number that folding writes as digits, in runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raised {
    No,
    Exponent,
    Part,
}

impl Raised {
    fn of(character: char) -> Self {
        match character {
            _ if character.is_ascii() => Self::No,
            _ if EXPONENTS.contains(character) || SIGNS_OF_EXPONENTS.contains(character) => Self::Exponent,
            _ if INDICES_AND_FRACTIONS.contains(character) => Self::Part,
            _ => Self::No,
        }
    }
}

/// Return a text with `^` before exponents, and with a space between indices or fractions and the digits beside them.
fn with_numbers_apart(text: &str) -> String {
    let all: Vec<char> = text.chars().collect();
    let mut apart = String::with_capacity(text.len() + 8);
    let mut start = 0;
    for run in all.chunk_by(|&one, &other| Raised::of(one) == Raised::of(other)) {
        let end = start + run.len();
        let kind = Raised::of(run[0]);
        let is_decimal_at = |at: Option<usize>| at.and_then(|at| all.get(at)).is_some_and(|&digit| is_decimal(digit));
        match kind {
            Raised::Exponent if run.iter().any(|&sign| !SIGNS_OF_EXPONENTS.contains(sign)) => apart.push('^'),
            Raised::Part if is_decimal_at(start.checked_sub(1)) => apart.push(' '),
            _ => {}
        }
        apart.extend(run);
        if kind == Raised::Part && is_decimal_at(Some(end)) {
            apart.push(' ');
        }
        start = end;
    }
    apart
}

/// Return whether a character is a decimal digit of any script; all but those of ASCII are variants of one.
fn is_decimal(character: char) -> bool {
    let mut plain = characters().variant(character).into_iter().flatten();
    character.is_ascii_digit() || plain.next().is_some_and(|plain| plain.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(points: &[u32]) -> String {
        points.iter().map(|&code| char::from_u32(code).unwrap()).collect()
    }

    #[test]
    fn folding_is_without_differences_of_width_case_script_and_white_space() {
        assert_eq!(text(&fold("Ｈｅｌｌｏ\u{3000} 雲計算\r\n &ldquo;&#65;&#1;")), "hello 云计算\n“a");
        assert_eq!(text(&fold("أَحْمَد ٣٫٥ Straße ﬁne")), "احمد 3٫5 strasse fine");
    }

    /// The table and the definition agree on each character alone and between others.
    #[test]
    fn tables_and_definition_give_the_same_text_of_each_character() {
        for character in ('\0'..=char::MAX).filter(|character| !('\u{E1000}'..'\u{10FFFE}').contains(character)) {
            for sample in [character.to_string(), format!("Ä{character} {character}b")] {
                if let Some(quick) = fold_by_table(&sample) {
                    assert_eq!(quick, fold_slowly(&sample, false), "{:x}", u32::from(character));
                }
            }
        }
    }

    #[test]
    fn exponents_fractions_and_vowels_stay_in_the_exact_text() {
        let exact = |body| text(fold_all(["", body])[1].exact.as_ref().unwrap());
        assert_eq!(text(&fold("10² 3½")), "102 31⁄2");
        assert_eq!(exact("10² 3½ x⁺ x⁻¹ ½٣"), "10^2 3 1⁄2 x+ x^−1 1⁄2 3");
        assert_eq!(exact("أَحْمَد"), "اَحْمَد");
        assert_eq!(fold_all(["é", "ê"]).map(|folded| folded.exact), [None, None]);
    }

    /// A run of marks is sorted in linear time, and loses those after the thirtieth.
    #[test]
    fn marks_in_a_row_are_thirty_at_most() {
        let many = format!("a{}b", "\u{325}\u{30A}".repeat(100_000));
        assert_eq!(fold(&many), fold(&format!("a{}b", "\u{325}\u{30A}".repeat(15))));
    }

    fn texts() -> impl Strategy<Value = String> {
        let common = prop::sample::select(
            "aZ 9&;#\n\u{301}\u{5B0}ʼ½²₂臺漢⿰\u{200D}ﬁ한ᄒ\u{1161}أ\u{64E}०".chars().collect::<Vec<_>>(),
        );
        prop::collection::vec(prop_oneof![4 => common, 1 => any::<char>()], 0..40).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn tables_and_definition_give_the_same_text(sample in texts()) {
            let plain = without_references(&sample);
            if let Some(quick) = fold_by_table(&plain) {
                prop_assert_eq!(quick, fold_slowly(&plain, false));
            }
        }

        /// White space is single and inside; one text of a page does not change another.
        #[test]
        fn folded_texts_are_trimmed_and_apart(title in texts(), body in texts()) {
            let [one, other] = fold_all([&title, &body]);
            prop_assert_eq!((&one.points, &other.points), (&fold(&title), &fold(&body)));
            prop_assert_eq!(one.exact.is_some(), other.exact.is_some());
            let is_space = |code: Option<&u32>| code.is_none_or(|&code| characters().marks(code) & IS_SPACE != 0);
            for points in [&one.points, &other.points] {
                prop_assert!(points.is_empty() || !is_space(points.first()) && !is_space(points.last()));
                prop_assert!(points.windows(2).all(|pair| !is_space(pair.first()) || !is_space(pair.last())));
            }
        }
    }
}
