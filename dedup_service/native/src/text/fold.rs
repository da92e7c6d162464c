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
use std::str::Chars;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::references::without_references;
use super::simplified::simplified;
use crate::characters::{Characters, FoldedForm, IS_SPACE, MAY_BE_TRADITIONAL, characters, with_marks};

/// Combining marks in a row; UAX 15 finds no text in use with more, and sorting takes quadratic time.
const MAX_MARKS: usize = 30;
const ARABIC_VOWELS: RangeInclusive<char> = '\u{64B}'..='\u{652}';
/// Most characters of a Chinese text.
const HAN: RangeInclusive<char> = '\u{3400}'..='\u{9FFF}';
const WIDE_CAPITALS: RangeInclusive<char> = 'Ａ'..='Ｚ';
const EXPONENTS: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿⁱ";
const SIGNS_OF_EXPONENTS: &str = "⁺⁻";
const INDICES_AND_FRACTIONS: &str = "₀₁₂₃₄₅₆₇₈₉¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉";

/// A text folded, as code points, and folded without loss where that is another text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The folded text.
    pub points: Vec<u32>,
    /// Where in it a letter was a capital, ascending; nothing if folding changed places after that letter.
    pub capitals: Vec<u32>,
    /// The text folded without loss; None if it is the same.
    pub exact: Option<Vec<u32>>,
}

/// Return texts of one page folded. If one needs a text without loss, all get one.
pub fn fold_all<const N: usize>(texts: [&str; N]) -> [Folded; N] {
    let texts = texts.map(without_references);
    let quick = texts.each_ref().map(|text| fold_by_table(text));
    if quick.iter().all(Option::is_some) {
        return quick.map(|text| {
            let (points, capitals) = text.map(Written::finish).unwrap_or_default();
            Folded { points, capitals, exact: None }
        });
    }
    let apart = texts.each_ref().map(|text| with_numbers_apart(text));
    let is_less = texts.iter().zip(&apart).any(|(text, apart)| text != apart || text.chars().any(says_less));
    let mut apart = apart.into_iter();
    texts.map(|text| {
        let (points, capitals) = fold_slowly(&text, Slowly::Folding).finish();
        let exact = apart.next().filter(|_| is_less).map(|text| fold_slowly(&text, Slowly::KeepingVowels).finish().0);
        Folded { points, capitals, exact }
    })
}

/// Return a text folded.
pub fn fold(text: &str) -> Vec<u32> {
    let text = without_references(text);
    fold_by_table(&text).unwrap_or_else(|| fold_slowly(&text, Slowly::Folding)).finish().0
}

/// Return a text without references folded, None if the tables cannot.
fn fold_by_table(text: &str) -> Option<Written> {
    let characters = characters();
    let mut written = Written::with_capacity(text.len() / 2);
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let code = u32::from(character);
        let mut count = 1;
        match characters.folded(code) {
            FoldedForm::One(digit, _) if is_digit(digit) && digit != code => {
                if is_numeral_beside_digits(character, &written, &rest) {
                    return None;
                }
                written.push(digit, characters.marks(digit));
            }
            FoldedForm::One(code, marks) => written.push(code, marks),
            FoldedForm::Several(codes) => {
                if is_numeral_beside_digits(character, &written, &rest) {
                    return None;
                }
                for (code, marks) in codes.iter().map(|&code| with_marks(code)) {
                    written.push(code, marks);
                }
                count = codes.len();
            }
            FoldedForm::Unknown => return None,
        }
        if is_capital(character) {
            written.push_capital(count);
        }
    }
    Some(written)
}

/// Return whether a letter is a capital. Those of scripts with capitals are below the signs of East Asia, and wide ones
/// above.
#[inline]
fn is_capital(character: char) -> bool {
    character.is_ascii_uppercase()
        || (!character.is_ascii() && character < '\u{2C00}' && character.is_uppercase())
        || WIDE_CAPITALS.contains(&character)
}

/// What a text that the tables cannot fold is to keep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slowly {
    /// As folding says.
    Folding,
    /// Arabic vowels, too, which equality needs.
    KeepingVowels,
}

/// Return a text without references folded.
fn fold_slowly(text: &str, keeping: Slowly) -> Written {
    let keeps_vowels = keeping == Slowly::KeepingVowels;
    let characters = characters();
    let mut folded = String::with_capacity(text.len());
    let mut capitals = Vec::new();
    for character in nfkc(characters, text).chars() {
        if is_capital(character) {
            capitals.push(folded.len());
        }
        match characters.variant(character) {
            Some(plain) if !(keeps_vowels && ARABIC_VOWELS.contains(&character)) => {
                plain.for_each(|character| push_case_folded(characters, character, &mut folded));
            }
            _ => push_case_folded(characters, character, &mut folded),
        }
    }
    let again = nfkc(characters, &folded);
    if again != folded {
        capitals.clear();
    }
    let mut capitals = capitals.into_iter().peekable();
    let mut written = Written::with_capacity(folded.len() / 2);
    for (at, code) in again.char_indices().map(|(at, character)| (at, u32::from(character))) {
        written.push(code, characters.marks(code));
        if capitals.next_if_eq(&at).is_some() {
            written.push_capital(1);
        }
    }
    written
}

fn is_digit(code: u32) -> bool {
    (0x30..0x3A).contains(&code)
}

/// Return whether a character stands for a number of its own that folding would join to the digits beside it.
fn is_numeral_beside_digits(character: char, before: &Written, behind: &Chars<'_>) -> bool {
    let Some([begins, ends]) = numeral_edges(character) else { return false };
    let is_behind = before.pending.is_none() && before.points.last().is_some_and(|&code| is_digit(code));
    begins && is_behind || ends && behind.clone().find(|&next| !is_removed(next)).is_some_and(begins_with_digit)
}

/// Return whether folding removes a character, also from a text without loss.
fn is_removed(character: char) -> bool {
    let is_common = character.is_ascii() || HAN.contains(&character);
    !is_common
        && !ARABIC_VOWELS.contains(&character)
        && characters().variant(character).is_some_and(|mut plain| plain.next().is_none())
}

fn begins_with_digit(character: char) -> bool {
    match characters().folded(character.into()) {
        FoldedForm::One(code, _) => is_digit(code),
        FoldedForm::Several(codes) => codes.first().is_some_and(|&code| is_digit(with_marks(code).0)),
        FoldedForm::Unknown => false,
    }
}

/// Return whether folding writes a digit at the beginning, and one or a point at the end, of a character that stands for a
/// number of its own, as ①, ⑴, ⒈, ㋀ or ㍘ do; None for any other.
fn numeral_edges(character: char) -> Option<[bool; 2]> {
    match characters().folded(character.into()) {
        FoldedForm::One(code, _) => (is_digit(code) && !is_decimal(character)).then_some([true, true]),
        FoldedForm::Several(codes) => {
            let is_edge = |code: Option<&u32>, ends: &[char]| {
                let code = code.map(|&code| with_marks(code).0);
                code.is_some_and(|code| is_digit(code) || ends.iter().any(|&end| u32::from(end) == code))
            };
            let edges = [is_edge(codes.first(), &[]), is_edge(codes.last(), &['.', ','])];
            let is_number = edges[0] || is_edge(codes.last(), &[]);
            is_number.then_some(edges)
        }
        FoldedForm::Unknown => None,
    }
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
    capitals: Vec<u32>,
    pending: Option<u32>,
    marks: u8,
}

impl Written {
    const LINE_FEED: u32 = 10;
    const SPACE: u32 = 32;

    fn with_capacity(capacity: usize) -> Self {
        Self { points: Vec::with_capacity(capacity), capitals: Vec::new(), pending: None, marks: 0 }
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

    /// The letter written last, as so many code points, was a capital.
    #[inline]
    fn push_capital(&mut self, count: usize) {
        self.capitals.extend(self.points.len().checked_sub(count.max(1)).map(|at| at as u32));
    }

    /// Return the text in simplified Chinese, and the places of its capitals.
    fn finish(self) -> (Vec<u32>, Vec<u32>) {
        if self.marks & MAY_BE_TRADITIONAL == 0 {
            return (self.points, self.capitals);
        }
        let points = simplified(&self.points);
        let stays = points.len() == self.points.len();
        (points, if stays { self.capitals } else { Vec::new() })
    }
}

/// Return whether a character says less when it is folded.
fn says_less(character: char) -> bool {
    !character.is_ascii()
        && (ARABIC_VOWELS.contains(&character)
            || EXPONENTS.contains(character)
            || INDICES_AND_FRACTIONS.contains(character))
}

/// How folding writes a character as digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numeric {
    /// It does not.
    No,
    /// As the same digit.
    Decimal,
    /// Raised: digits of an exponent, and its sign.
    Exponent,
    /// Lowered, or parts of a fraction.
    Part,
    /// A number of its own, with or without a digit at the beginning and at the end.
    Whole([bool; 2]),
}

impl Numeric {
    fn of(character: char) -> Self {
        match character {
            '0'..='9' => Self::Decimal,
            _ if character.is_ascii() || HAN.contains(&character) => Self::No,
            _ if EXPONENTS.contains(character) || SIGNS_OF_EXPONENTS.contains(character) => Self::Exponent,
            _ if INDICES_AND_FRACTIONS.contains(character) => Self::Part,
            _ if is_decimal(character) => Self::Decimal,
            _ => numeral_edges(character).map_or(Self::No, Self::Whole),
        }
    }

    /// Return whether folding would join two neighbours that are two numbers.
    fn joins(self, next: Self) -> bool {
        let edges = |numeric| match numeric {
            Self::Decimal | Self::Part => [true, true],
            Self::Whole(edges) => edges,
            Self::No | Self::Exponent => [false, false],
        };
        let is_one = matches!((self, next), (Self::Decimal, Self::Decimal) | (Self::Part, Self::Part));
        edges(self)[1] && edges(next)[0] && !is_one
    }
}

/// Return a text with `^` before exponents, and with a space between two numbers that folding would join.
fn with_numbers_apart(text: &str) -> String {
    let mut apart = String::with_capacity(text.len() + 8);
    let mut before = Numeric::No;
    for (at, character) in text.char_indices() {
        if !is_removed(character) {
            let numeric = Numeric::of(character);
            if numeric == Numeric::Exponent && before != Numeric::Exponent {
                let run = text[at..].chars().filter(|&next| !is_removed(next));
                let mut run = run.take_while(|&next| Numeric::of(next) == Numeric::Exponent);
                if run.any(|next| !SIGNS_OF_EXPONENTS.contains(next)) {
                    apart.push('^');
                }
            } else if before.joins(numeric) {
                apart.push(' ');
            }
            before = numeric;
        }
        apart.push(character);
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
                    let [quick, slow] = [quick, fold_slowly(&sample, Slowly::Folding)].map(Written::finish);
                    assert_eq!(quick.0, slow.0, "{:x}", u32::from(character));
                    let is_known = |at: &u32| slow.1.contains(at) || slow.1.is_empty();
                    assert!(
                        quick.1.iter().all(is_known),
                        "{:x}: {:?}, not {:?}",
                        u32::from(character),
                        quick.1,
                        slow.1
                    );
                }
            }
        }
    }

    /// By table, and slowly beside a mark that the tables cannot fold.
    #[test]
    fn capitals_are_known_where_folding_writes_them() {
        for (sample, folded, capitals) in [
            ("Straße IN Köln", "strasse in köln", &[0, 8, 9, 11][..]),
            ("  Ａb \n &Auml;\u{AD}X 東Ω", "ab\näx 东ω", &[0, 3, 4, 7]),
            ("ﬁ İA ẞb ЖÉ", "fi i\u{307}a ssb жé", &[3, 5, 7, 11, 12]),
            ("nothing 大", "nothing 大", &[]),
        ] {
            for behind in ["", " e\u{301}"] {
                assert_eq!(fold_by_table(behind).is_some(), behind.is_empty());
                let [_, found] = fold_all(["", &format!("{sample}{behind}")]);
                let expected = format!("{folded}{}", if behind.is_empty() { "" } else { " é" });
                assert_eq!((text(&found.points), &found.capitals[..]), (expected, capitals));
            }
        }
    }

    #[test]
    fn exponents_fractions_and_vowels_stay_in_the_exact_text() {
        let exact = |body| text(fold_all(["", body])[1].exact.as_ref().unwrap());
        assert_eq!(text(&fold("10² 3½")), "102 31⁄2");
        assert_eq!(exact("10² 3½ x⁺ x⁻¹ ½٣"), "10^2 3 1⁄2 x+ x^−1 1⁄2 3");
        assert_eq!(exact("أَحْمَد"), "اَحْمَد");
        assert_eq!(exact("5① ⑩⑪ ①x 3\u{200B}½ ㏠㋀ ⒈5 7㍘ 5\u{AD}² ⅻ"), "5 1 10 11 1x 3 1⁄2 1日1月 1. 5 7 0点 5^2 xii");
        assert_eq!(fold_all(["①、②", "5 ① ⑴ 5⑵ ５5٣"]).map(|folded| folded.exact), [None, None]);
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
            "aZ 9.&;#\n\u{301}\u{5B0}\u{200B}ʼ½²₂①⒈㋀㍘３臺漢⿰\u{200D}ﬁ한ᄒ\u{1161}أ\u{64E}०"
                .chars()
                .collect::<Vec<_>>(),
        );
        prop::collection::vec(prop_oneof![4 => common, 1 => any::<char>()], 0..40).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn tables_and_definition_give_the_same_text(sample in texts()) {
            let plain = without_references(&sample);
            if let Some(quick) = fold_by_table(&plain) {
                prop_assert_eq!(quick.finish().0, fold_slowly(&plain, Slowly::Folding).finish().0);
                prop_assert_eq!(with_numbers_apart(&plain), plain);
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
