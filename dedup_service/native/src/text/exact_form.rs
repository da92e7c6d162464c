//! The exact form of a text: what two texts must have in common to be the same text, and its hashes.
//!
//! Typography counts as nothing: punctuation, quotes, brackets, dashes, spaces, line breaks, hyphens in words, emoji, and
//! the separators of thousands (1,500 = 1 500 = 1'500 = 1500). What else tells two texts apart stays: letters and digits,
//! combining vowels and tones, and the signs that give a number its value.
//!
//! One pass over a text folded without loss. A table gives each character a kind, and the kind says when it is written:
//!
//! - always: letters, digits, marks of letters, units (% ‰ °), currencies, + × ± ≈ ≥ ✓ ✗ ☐ and all of mathematics
//! - between digits, spaces aside: a colon, a slash, an asterisk, and dashes, all of them as one hyphen
//! - before or after a number: < = > and arrows
//! - a hyphen, minus or en dash directly before a number, if it joins no word or unit to it: -5, $-5, 气温-5, but
//!   covid-19, 5%-8%; and directly after a single letter that nothing follows: A-
//! - a point inside a number, and before one unless it follows a letter, as a full stop does: 1.5, .5
//! - #: beside a Latin letter or digit before it (C#), or before a number; ^ before an exponent, except in m^2, which is
//!   also written m2; ′ after a digit; stars from two on; a slash in a unit: 5 m/s
//!
//! A space is written between two digits that something else separates, so 10 12 is not 1012. The form of a text is never
//! longer than the text, and the work is linear in its length.

use xxhash_rust::xxh3::xxh3_64;

use super::page_text::BodyAndTitle;
use crate::characters::{Characters, characters};

/// In the order of `make_tables.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    Space,
    Closing,
    Letter,
    Han,
    Digit,
    Mark,
    Sign,
    Unit,
    Currency,
    Dash,
    LongDash,
    Point,
    Comma,
    Apostrophe,
    Between,
    Compare,
    Arrow,
    NumberSign,
    Power,
    Star,
    Prime,
}

#[allow(clippy::enum_glob_use)] // a table of all of them
use Kind::*;

/// By the values of the table; those that it does not have are nothing.
const KINDS: [Kind; 32] = [
    Nothing, Space, Closing, Letter, Han, Digit, Mark, Sign, Unit, Currency, Dash, LongDash, Point, Comma, Apostrophe,
    Between, Compare, Arrow, NumberSign, Power, Star, Prime, Nothing, Nothing, Nothing, Nothing, Nothing, Nothing,
    Nothing, Nothing, Nothing, Nothing,
];
/// The bit of a character for which another is written, beside its kind.
const HAS_PLAIN: u8 = KINDS.len() as u8;

// What was left out since the last character written, as bits; grouping separators by their kind.
const SPACES: u8 = 1;
const COMMAS: u8 = 2;
const APOSTROPHES: u8 = 4;
const OTHERS: u8 = 8;

/// Characters that are searched for a number: signs before it are few, and the work stays linear.
const REACH: isize = 6;
/// Letters of a unit before its slash: km/h, Mbit/s.
const UNIT_LETTERS: isize = 4;
const RING_ABOVE: u32 = 0x030A;

/// Hashes of the exact forms: of the body, and of title and body together; None without a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactHashes {
    /// Of the body.
    pub body: Option<u64>,
    /// Of title and body.
    pub text: Option<u64>,
}

/// Return the hashes of a page folded without loss. A code point 0, which no form has, separates title and body.
pub fn exact_hashes(page: &BodyAndTitle) -> ExactHashes {
    let mut form = Vec::with_capacity(page.points().len() + 1);
    write_exact_form(page.title(), &mut form);
    form.push(0);
    let body = form.len();
    write_exact_form(page.body(), &mut form);
    if body == form.len() {
        return ExactHashes::default();
    }
    let hash = |points: &[u32]| xxh3_64(bytemuck::cast_slice(points)); // in memory order: of little-endian machines
    ExactHashes { body: Some(hash(&form[body..])), text: Some(hash(&form)) }
}

/// Append the exact form of a text that is folded without loss.
pub fn write_exact_form(codes: &[u32], written: &mut Vec<u32>) {
    let text = Text { codes, characters: characters() };
    let mut last = Nothing;
    let mut skipped = 0;
    let mut number = Number::default();
    for (at, &code) in codes.iter().enumerate() {
        let i = at as isize;
        let bits = text.characters.exact_kind(code);
        let kind = KINDS[usize::from(bits & (HAS_PLAIN - 1))];
        let plain = if bits & HAS_PLAIN == 0 { code } else { text.characters.exact_plain(code) };
        match kind {
            Letter | Han => {
                written.push(plain);
                (last, skipped) = (kind, 0);
                continue;
            }
            Nothing | Space | Closing => {
                skipped |= if kind == Space { SPACES } else { OTHERS };
                continue;
            }
            Digit => {}
            _ if text.is_written(i, kind, last, skipped) => {}
            _ => {
                skipped = with_skipped(skipped, kind);
                continue;
            }
        }
        if last == Digit && skipped != 0 && matches!(kind, Digit | Point) {
            if text.continues(i, skipped, &number) {
                number.digits = 0;
                number.grouped = if skipped == SPACES { SPACES } else { skipped & !SPACES };
            } else {
                written.push(u32::from(' '));
                last = Nothing;
            }
        }
        if kind == Digit {
            if last != Digit {
                number = Number { digits: 0, grouped: 0, may_group: code != u32::from('0') && last != Point };
            }
            number.digits += 1;
            written.push(code);
        } else {
            written.push(text.merged_at(i).unwrap_or(plain));
        }
        (last, skipped) = (kind, 0);
    }
}

/// The current number: the digits of its last run, its separator of thousands, and whether it may have one.
#[derive(Default)]
struct Number {
    digits: usize,
    grouped: u8,
    may_group: bool,
}

/// Return the bits of what was left out, with a character of this kind; a second comma is not grouping.
fn with_skipped(skipped: u8, kind: Kind) -> u8 {
    let bit = match kind {
        Comma => COMMAS,
        Apostrophe => APOSTROPHES,
        _ => OTHERS,
    };
    skipped | if skipped & bit == 0 { bit } else { OTHERS }
}

/// A text, whose characters are asked for beyond both ends, too.
struct Text<'a> {
    codes: &'a [u32],
    characters: &'a Characters,
}

impl Text<'_> {
    fn code(&self, i: isize) -> Option<u32> {
        usize::try_from(i).ok().and_then(|at| self.codes.get(at)).copied()
    }

    fn is(&self, i: isize, character: char) -> bool {
        self.code(i) == Some(u32::from(character))
    }

    /// Return the kind of a character; beyond both ends there is space.
    fn kind(&self, i: isize) -> Kind {
        self.code(i).map_or(Space, |code| KINDS[usize::from(self.characters.exact_kind(code) & (HAS_PLAIN - 1))])
    }

    /// Return the kind of the first character from `i` on, within reach, that is none of `passed`.
    fn first_kind_but(&self, i: isize, passed: &[Kind]) -> Option<Kind> {
        (i..i + REACH).map(|at| self.kind(at)).find(|kind| !passed.contains(kind))
    }

    /// Return whether a character that is neither a letter nor a digit is written. last: the kind of what was written last.
    fn is_written(&self, i: isize, kind: Kind, last: Kind, skipped: u8) -> bool {
        let (before, after) = (self.kind(i - 1), self.kind(i + 1));
        let beyond = if after == Space { self.kind(i + 2) } else { after };
        let near = skipped & !SPACES == 0;
        match kind {
            Sign | Unit | Currency => true,
            // NFKC makes a space and a mark of ´ and the like; also of ˚, which is typed for a degree.
            Mark => before != Space || self.code(i) == Some(RING_ABOVE),
            Dash | LongDash if near && last == Digit && self.is_before_digit(i) => true,
            Dash => self.is_minus(i, before, after) || self.is_grade(i, before, after),
            Between => (near && last == Digit && beyond == Digit) || self.is_of_unit(i, before, after),
            Point => after == Digit && !matches!(before, Letter | Han | Mark | Unit | Point | Closing),
            Compare | Arrow => self.compares(i, near && (matches!(last, Digit | Unit) || last == kind)),
            NumberSign => beyond == Digit || before == Digit || (before == Letter && self.is_latin(i - 1)),
            Power => self.is_power(i, after),
            Star => before == Star || after == Star,
            Prime => before == Digit || (before == Prime && last == Prime && skipped == 0),
            _ => false,
        }
    }

    /// Return whether exactly three digits continue a number over a separator of thousands.
    fn continues(&self, i: isize, skipped: u8, number: &Number) -> bool {
        let separator = match skipped {
            SPACES | APOSTROPHES => skipped,
            _ if skipped | SPACES == COMMAS | SPACES => COMMAS,
            _ => return false,
        };
        let are_three = (i..i + 3).all(|at| self.kind(at) == Digit) && self.kind(i + 3) != Digit;
        are_three && number.may_group && (number.grouped == separator || (number.grouped == 0 && number.digits <= 3))
    }

    /// Return what is written for a character that its neighbours change.
    fn merged_at(&self, i: isize) -> Option<u32> {
        match self.code(i).and_then(char::from_u32)? {
            '>' if self.is_merged(i) => Some('≥'.into()),
            '<' if self.is_merged(i) => Some('≤'.into()),
            '\u{30A}' if self.kind(i - 1) == Space => Some('°'.into()),
            _ => None,
        }
    }

    /// Return whether a character and an equals sign after it are at most or at least.
    fn is_merged(&self, i: isize) -> bool {
        (self.is(i, '<') || self.is(i, '>')) && self.is(i + 1, '=')
    }

    fn is_latin(&self, i: isize) -> bool {
        self.code(i).is_some_and(|code| (0x61..=0x7A).contains(&code))
    }

    /// Return whether a comparison or arrow is beside a number, and not the end of at most or at least.
    fn compares(&self, i: isize, is_after_number: bool) -> bool {
        if self.is(i, '=') && self.is_merged(i - 1) {
            return false;
        }
        is_after_number
            || self.first_kind_but(i + 1, &[Space, Sign, Currency, Dash, Point, Compare, Arrow]) == Some(Digit)
    }

    /// Return whether a digit follows, dashes and spaces aside.
    fn is_before_digit(&self, i: isize) -> bool {
        self.first_kind_but(i + 1, &[Space, Dash, LongDash]) == Some(Digit)
    }

    /// Return whether a dash is the sign of a number directly after it, not a hyphen.
    fn is_minus(&self, i: isize, before: Kind, after: Kind) -> bool {
        if matches!(before, Letter | Mark | Digit | Unit | Dash | LongDash | Closing) {
            return false;
        }
        let mut following = self.kind(i + 2);
        if after == Currency && following == Space {
            following = self.kind(i + 3);
        }
        after == Digit || (matches!(after, Point | Currency) && following == Digit)
    }

    /// Return whether a dash follows a single Latin letter directly and ends its word, as in A-.
    fn is_grade(&self, i: isize, before: Kind, after: Kind) -> bool {
        before == Letter
            && self.is_latin(i - 1)
            && !matches!(after, Letter | Han | Mark | Digit | Dash | LongDash)
            && !matches!(self.kind(i - 2), Letter | Mark | Digit | Apostrophe)
    }

    /// Return whether this is the slash of a unit after a number: 5 m/s.
    fn is_of_unit(&self, i: isize, before: Kind, after: Kind) -> bool {
        let is_letter = |kind| matches!(kind, Letter | Han);
        if !self.is(i, '/') || !is_letter(before) || !is_letter(after) {
            return false;
        }
        let mut j = i - 1;
        while j >= i - UNIT_LETTERS && is_letter(self.kind(j)) {
            j -= 1;
        }
        if self.kind(j) == Space {
            j -= 1;
        }
        self.kind(j) == Digit
    }

    /// Return whether an exponent follows; not that of a square or cubic metre, which is also written m2.
    fn is_power(&self, i: isize, after: Kind) -> bool {
        let following = self.kind(i + 2);
        if after == Digit && following != Digit && self.is(i - 1, 'm') {
            return !self.is(i + 1, '2') && !self.is(i + 1, '3');
        }
        matches!(after, Letter | Han | Digit) || (matches!(after, Dash | Sign) && following == Digit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::fold::fold;

    fn exact(text: &str) -> String {
        let mut form = Vec::new();
        write_exact_form(&text.chars().map(u32::from).collect::<Vec<_>>(), &mut form);
        form.into_iter().map(|code| char::from_u32(code).unwrap()).collect()
    }

    #[test]
    fn typography_counts_as_nothing_and_values_stay() {
        for (text, form) in [
            ("c++: 1,500 − 15.0 %", "c++1500-15.0%"),
            ("10 12, covid-19, 气温-5", "10 12covid19气温-5"),
            ("5 m/s ≤ x <= 7, a-, c#, m^2 x^2", "5m/s≤x≤7a-c#m2x^2"),
            ("1'500 1 500 0,500 1,50", "1500 1500 0 500 1 50"),
            ("★★★ ☆ 15:30 a:b ˚ \u{30A}", "★★★15:30ab°"),
            ("復 覆 着 著", "復复着着"),
        ] {
            assert_eq!(exact(text), form, "{text}");
        }
    }

    /// Without a body there is no hash; the title is in one hash alone.
    #[test]
    fn hashes_are_of_the_body_and_of_the_whole_text() {
        let of = |title, body| exact_hashes(crate::text::PageText::of(title, body).exact());
        assert_eq!(of("A title", "…"), ExactHashes::default());
        assert_eq!(of("A title", "Some text").body, of("Another", "some-text!").body);
        assert_ne!(of("A title", "Some text").text, of("Another", "some-text!").text);
        assert_ne!(of("a", "b").body, of("a", "b").text);
    }

    proptest! {
        /// A form is not longer than its text, and has no quotes, brackets or line breaks.
        #[test]
        fn a_form_is_never_longer_than_its_text(text in prop::collection::vec(prop::sample::select("a1,.'-+%$^<=>#*/ ★′漢\n\u{30A}".chars().collect::<Vec<_>>()), 0..40)) {
            let text = String::from_iter(text);
            let form = exact(&text);
            prop_assert!(form.chars().count() <= text.chars().count());
            prop_assert!(!form.contains([',', '\'', '\n']));
        }

        #[test]
        fn any_text_has_a_form(text in ".*") {
            let mut form = Vec::new();
            write_exact_form(&fold(&text), &mut form);
        }
    }
}
