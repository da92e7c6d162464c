//! The numbers of a text, in one pass over its characters: sign and value, and the unit of each.
//!
//! A number is one of these:
//!
//! - Digits, with a decimal point (1.5) and separators of thousands (1,250,000), which are left out. A run with several
//!   points (2008.8.15) is several numbers; a comma that separates no thousands ends one.
//! - Two or more Chinese numerals: 二〇〇八 digit by digit, 一百二十 by its units. A single one counts after 第, before a
//!   calendar word (年月日号届期次), as in 第三届 or 五月, and beside 点 with another numeral.
//!
//! A multiplier after digits (千万亿, million) multiplies: 1.5万 and 一万五千 have one value, 15000. Values are compared
//! as decimal digits, so 08月 is 8月, and 1.50 is not 1.5. The sign belongs to the value.
//!
//! The unit is the currency before the number ($, US$, eur) or 百分之; else what follows, after one space at most: a
//! symbol (%, °C, a currency), a calendar word, the word, or two letters of a script without spaces. A date as 2008-08-15
//! has the units of 2008年8月15日.

use std::sync::LazyLock;

use super::UNSPACED_FROM;
use crate::characters::{PLANE, characters};
use crate::memory::{GAMMA, mix64};

// What a character is to a number. Those from NUMERAL are Chinese numerals.
const NOTHING: u8 = 0;
const LETTER: u8 = 1;
const LETTER_UNSPACED: u8 = 2;
const CURRENCY: u8 = 3;
const SYMBOL: u8 = 4;
const CALENDAR: u8 = 5;
const DIGIT: u8 = 6;
/// Plus the digit.
const NUMERAL: u8 = 16;
/// Plus the power of ten.
const UNIT: u8 = 32;

/// The currency symbols of Unicode 14 in the first plane (general category Sc).
const CURRENCIES: &str = "$¢£¤¥֏؋߾߿৲৳৻૱௹฿៛₠₡₢₣₤₥₦₧₨₩₪₫€₭₮₯₰₱₲₳₴₵₶₷₸₹₺₻₼₽₾₿⃀꠸﷼﹩＄￠￡￥￦";
const NUMERALS: [(&str, u8); 2] = [("〇一二三四五六七八九", 0), ("两", 2)];
const POWERS: [(char, u8); 5] = [('十', 1), ('百', 2), ('千', 3), ('万', 4), ('亿', 8)];
/// Codes that stand before an amount as a currency symbol does.
const CURRENCY_CODES: [&[u8; 3]; 26] = [
    b"usd", b"eur", b"gbp", b"jpy", b"cny", b"rmb", b"hkd", b"twd", b"krw", b"inr", b"aud", b"cad", b"chf", b"sgd",
    b"rub", b"brl", b"mxn", b"sek", b"nok", b"dkk", b"nzd", b"thb", b"zar", b"try", b"pln", b"idr",
];
/// Words that multiply the number before them by the powers of a thousand.
const SCALES: [&str; 4] = ["thousand", "million", "billion", "trillion"];
/// Units of the parts of a date as 2008-08-15, the last one first.
const DATE_UNITS: [char; 3] = ['日', '月', '年'];

const GROUP: usize = 3;
const DAY_DIGITS: usize = 2;
const POWER_OF_MYRIAD: u8 = 4;
const LONGEST_SHIFT: usize = 32;

static KINDS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let characters = characters();
    let letter = |code| match code {
        _ if !characters.is_letter(code) => NOTHING,
        ..UNSPACED_FROM => LETTER,
        _ => LETTER_UNSPACED,
    };
    let mut kinds: Vec<u8> = (0..PLANE).map(letter).collect();
    let mut set = |character: char, kind| kinds[character as usize] = kind;
    for (of_kind, kind) in
        [(CURRENCIES, CURRENCY), ("%‰‱°", SYMBOL), ("年月日号届期次", CALENDAR), ("0123456789", DIGIT)]
    {
        of_kind.chars().for_each(|character| set(character, kind));
    }
    for (numerals, first) in NUMERALS {
        numerals.chars().zip(first..).for_each(|(numeral, digit)| set(numeral, NUMERAL + digit));
    }
    set('零', NUMERAL);
    for (unit, power) in POWERS {
        set(unit, UNIT + power);
    }
    kinds
});

/// Hashes of the value and of the unit of a number; the unit is 0 without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number {
    value: u64,
    unit: u64,
}

/// The numbers of a text.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// How many there are, with repetitions.
    pub count: usize,
    /// The digest of the figures: the same in any order; 0 without any.
    pub digest: u64,
    /// Hashes of value and unit, the smallest ones, ascending. The n-th occurrence of a number has another one than the
    /// first.
    pub sample: &'a [u16],
}

/// Finds numbers. It is kept for many pages, whose numbers then need no new memory.
#[derive(Debug, Default)]
pub struct NumberFinder {
    numbers: Vec<Number>,
    sample: Vec<u16>,
    digits: Vec<u8>,
}

impl NumberFinder {
    /// Return the numbers of a folded text. limit: of the sample.
    pub fn find(&mut self, text: &[u32], limit: usize) -> Numbers<'_> {
        self.numbers.clear();
        Text { points: text, kinds: &KINDS }.find(&mut self.digits, &mut self.numbers);
        let digest = self.numbers.iter().fold(0_u64, |sum, number| {
            sum.wrapping_add(mix64(number.value.wrapping_add(mix64(number.unit.wrapping_add(GAMMA)))))
        });
        self.numbers.sort_unstable_by_key(|number| number.value ^ number.unit);
        self.sample.clear();
        for same in self.numbers.chunk_by(|one, other| one == other) {
            self.sample.extend((0_u64..).zip(same).map(|(occurrence, number)| {
                let value = mix64(number.value.wrapping_add(occurrence.wrapping_mul(GAMMA)));
                (value.wrapping_add(number.unit) >> 48) as u16
            }));
        }
        self.sample.sort_unstable();
        self.sample.truncate(limit);
        Numbers { count: self.numbers.len(), digest, sample: &self.sample }
    }
}

/// A folded text, with places that may be outside of it.
struct Text<'a> {
    points: &'a [u32],
    kinds: &'a [u8],
}

impl Text<'_> {
    fn find(&self, digits: &mut Vec<u8>, found: &mut Vec<Number>) {
        let mut date_parts = 0; // how many parts of a date as 2008-08-15 are still to come
        let mut at = 0;
        while (at as usize) < self.points.len() {
            let (start, kind) = (at, self.kind(at));
            let value;
            if kind == DIGIT {
                if self.is_date(start) {
                    date_parts = DATE_UNITS.len();
                }
                (at, value) = self.decimal(start, digits);
            } else if kind >= NUMERAL {
                (at, value) = self.numerals(start, digits);
                if at - start == 1 && !self.single_counts(start) {
                    continue;
                }
            } else {
                at += 1;
                continue;
            }
            let (sign, mut unit) = self.before(start);
            if date_parts > 0 {
                date_parts -= 1;
                unit = u64::from(u32::from(DATE_UNITS[date_parts]));
            } else if unit == 0 {
                unit = self.after(at);
            }
            let value = mix64(value.wrapping_add(sign.wrapping_mul(GAMMA)));
            found.push(Number { value, unit: if unit == 0 { 0 } else { mix64(unit) } });
        }
    }

    /// Return a character; 0 outside the text.
    fn code(&self, at: isize) -> u32 {
        usize::try_from(at).ok().and_then(|at| self.points.get(at)).copied().unwrap_or(0)
    }

    fn is(&self, at: isize, character: char) -> bool {
        self.code(at) == u32::from(character)
    }

    /// Return what a character is to a number; `NOTHING` outside the text.
    #[inline]
    fn kind(&self, at: isize) -> u8 {
        let code = self.code(at);
        let above = || if characters().is_letter(code) { LETTER_UNSPACED } else { NOTHING };
        self.kinds.get(code as usize).copied().unwrap_or_else(above)
    }

    /// Return how many digits begin at a place, at most `limit`.
    fn digits_at(&self, at: isize, limit: usize) -> usize {
        (at..).take(limit).take_while(|&at| self.kind(at) == DIGIT).count()
    }

    /// Whether a date begins here: a year of four digits, month and day, with the same mark between.
    fn is_date(&self, at: isize) -> bool {
        let mark = self.code(at + 4);
        if self.kind(at - 1) == DIGIT
            || !(self.is(at, '1') || self.is(at, '2'))
            || !['-', '.', '/'].map(u32::from).contains(&mark)
            || self.digits_at(at + 1, GROUP) < GROUP
        {
            return false;
        }
        let month = self.digits_at(at + 5, DAY_DIGITS + 1);
        let day = at + 5 + month as isize + 1;
        let is_short = |length: usize| (1..=DAY_DIGITS).contains(&length);
        is_short(month) && self.code(day - 1) == mark && is_short(self.digits_at(day, DAY_DIGITS + 1))
    }

    /// Return where the number of digits ends that begins here, and the hash of its value, with multipliers after it.
    fn decimal(&self, start: isize, digits: &mut Vec<u8>) -> (isize, u64) {
        // After "2008." of 2008.8.15, the rest is not the decimal number 8.15.
        let may_have_point = !(self.is(start - 1, '.') && self.kind(start - 2) == DIGIT);
        digits.clear();
        let (mut at, mut group) = (start, start);
        let mut point: Option<(isize, usize)> = None; // where it is, and the digits before it
        loop {
            if self.kind(at) == DIGIT {
                digits.push((self.code(at) - u32::from('0')) as u8);
                at += 1;
            } else if self.is(at, ',')
                && point.is_none()
                && (1..=GROUP as isize).contains(&(at - group))
                && self.digits_at(at + 1, GROUP + 1) == GROUP
            {
                at += 1;
                group = at;
            } else if self.is(at, '.') && self.kind(at + 1) == DIGIT && may_have_point {
                if let Some((first, whole)) = point.take() {
                    // A second point: several numbers, of which this is the first.
                    at = first;
                    digits.truncate(whole);
                    break;
                }
                point = Some((at, digits.len()));
                at += 1;
            } else {
                break;
            }
        }
        let mut whole = point.map_or(digits.len(), |(_, whole)| whole);
        let (power, after) = self.multiplier(if self.is(at, ' ') { at + 1 } else { at });
        if power > 0 {
            at = after;
            digits.resize(digits.len().max(whole + power.min(LONGEST_SHIFT)), 0);
            whole = (whole + power).min(digits.len());
            while digits.len() > whole && digits.last() == Some(&0) {
                digits.pop();
            }
        }
        (at, value_of(digits, whole, power > 0 || whole <= DAY_DIGITS))
    }

    /// Return the power of ten of the multipliers that begin here, 0 without one, and where they end.
    ///
    /// These are 千, 万 and 亿, 百 before one of them (百 alone often begins a word), and the English words.
    fn multiplier(&self, start: isize) -> (usize, isize) {
        let (mut power, mut at) = (0, start);
        loop {
            let kind = self.kind(at);
            if kind < UNIT + 2 || (kind == UNIT + 2 && self.kind(at + 1) < UNIT + GROUP as u8) {
                break;
            }
            power += usize::from(kind - UNIT);
            at += 1;
        }
        if power > 0 {
            return (power, at);
        }
        for (scale, number) in SCALES.iter().zip(1..) {
            let end = at + scale.len() as isize;
            if scale.chars().zip(at..).all(|(letter, at)| self.is(at, letter)) && self.kind(end) != LETTER {
                return (number * GROUP, end);
            }
        }
        (0, at)
    }

    /// Return where the Chinese numerals end that begin here, and the hash of their value, modulo 2⁶⁴.
    fn numerals(&self, start: isize, digits: &mut Vec<u8>) -> (isize, u64) {
        digits.clear();
        let mut at = start;
        let (mut total, mut section, mut last) = (0_u64, 0_u64, None);
        let mut pending: Option<u64> = None;
        let mut is_directly_after = false;
        loop {
            let kind = self.kind(at);
            if kind < NUMERAL {
                break;
            }
            if kind < UNIT {
                let digit = kind - NUMERAL;
                digits.push(digit);
                is_directly_after = pending.is_none();
                pending = Some(pending.unwrap_or(0).wrapping_mul(10).wrapping_add(u64::from(digit)));
            } else {
                let (power, before) = (kind - UNIT, pending.take().unwrap_or(0));
                let unit = 10_u64.pow(u32::from(power));
                last = Some(unit);
                if power < POWER_OF_MYRIAD {
                    section = section.wrapping_add(before.max(1).wrapping_mul(unit));
                } else {
                    let section = std::mem::take(&mut section).wrapping_add(before);
                    total = if power == POWER_OF_MYRIAD {
                        total.wrapping_add(section.max(1).wrapping_mul(unit))
                    } else {
                        total.wrapping_add(section).max(1).wrapping_mul(unit)
                    };
                }
            }
            at += 1;
        }
        let Some(last) = last else {
            return (at, value_of(digits, digits.len(), digits.len() <= DAY_DIGITS));
        };
        let mut rest = pending.unwrap_or(0);
        if pending.is_some() && is_directly_after && last > 10 && rest < 10 {
            rest *= last / 10; // 一万二 is 12,000
        }
        let sum = total.wrapping_add(section).wrapping_add(rest);
        digits.clear();
        digits.extend(sum.to_string().bytes().map(|digit| digit - b'0'));
        (at, value_of(digits, digits.len(), true))
    }

    /// Whether a single Chinese numeral is a number: after 第, before a calendar word, beside 点.
    fn single_counts(&self, at: isize) -> bool {
        self.is(at - 1, '第')
            || self.kind(at + 1) == CALENDAR
            || (self.is(at - 1, '点') && self.kind(at - 2) >= NUMERAL)
            || (self.is(at + 1, '点') && self.kind(at + 2) >= NUMERAL)
    }

    /// Return the sign of the number that begins here, and the currency or per cent (百分之) before it, 0 without one.
    fn before(&self, start: isize) -> (u64, u64) {
        let mut sign = self.sign(start - 1);
        let mut at = if sign > 0 { start - 2 } else { start - 1 };
        if self.kind(at) == CURRENCY {
            let mut currency = u64::from(self.code(at));
            at -= 1;
            sign = sign.max(self.sign(at));
            while self.kind(at) == LETTER {
                currency = with_letter(currency, self.code(at)); // US$, A$
                at -= 1;
            }
            return (sign, currency);
        }
        if self.is(at, '之') && self.is(at - 1, '分') && self.is(at - 2, '百') {
            return (sign, u64::from(b'%'));
        }
        if self.is(at, ' ') {
            at -= 1;
        }
        let word = at - GROUP as isize;
        if (word + 1..=at).any(|at| self.kind(at) != LETTER) || self.kind(word) == LETTER {
            return (sign, 0);
        }
        let is_here = |name: &&[u8; 3]| name.iter().zip(word + 1..).all(|(&letter, at)| self.is(at, letter.into()));
        let code = CURRENCY_CODES.into_iter().find(is_here);
        (sign, code.map_or(0, |name| name.iter().fold(0, |code, &letter| code << 8 | u64::from(letter))))
    }

    /// Return a sign: 1 for minus, 2 for plus, 3 for both; a hyphen or dash after a digit or a letter is none.
    fn sign(&self, at: isize) -> u64 {
        match char::from_u32(self.code(at)) {
            Some('+') => 2,
            Some('±') => 3,
            Some('-' | '−' | '–') => u64::from(!matches!(self.kind(at - 1), DIGIT | LETTER)),
            _ => 0,
        }
    }

    /// Return the unit after a number that ends here; 0 without one.
    fn after(&self, end: isize) -> u64 {
        let mut at = if self.is(end, ' ') { end + 1 } else { end };
        let (kind, after) = (self.kind(at), self.kind(at + 1));
        let mut unit = u64::from(self.code(at));
        let with_next = |unit: u64| unit << 21 | u64::from(self.code(at + 1));
        match kind {
            SYMBOL if self.is(at, '°') && after == LETTER => with_next(unit),
            SYMBOL | CURRENCY | CALENDAR => unit,
            LETTER => {
                while self.kind(at + 1) == LETTER {
                    at += 1;
                    unit = with_letter(unit, self.code(at));
                }
                unit
            }
            _ if kind == LETTER_UNSPACED || kind >= NUMERAL => {
                let goes_on = matches!(after, LETTER_UNSPACED | CALENDAR) || after >= NUMERAL;
                if goes_on { with_next(unit) } else { unit }
            }
            _ => 0,
        }
    }
}

fn with_letter(hash: u64, code: u32) -> u64 {
    mix64(hash.wrapping_add(GAMMA.wrapping_mul(u64::from(code))))
}

/// Return the hash of digits, of which `whole` are before the point. `is_bare`: zeros before the number are left out.
fn value_of(digits: &[u8], whole: usize, is_bare: bool) -> u64 {
    let zeros = digits.iter().take(whole.saturating_sub(1)).take_while(|&&digit| digit == 0).count();
    let first = if is_bare { zeros } else { 0 };
    digits.iter().enumerate().skip(first).fold(0, |hash, (place, &digit)| {
        let hash = if place == whole { with_letter(hash, u32::from('.')) } else { hash };
        with_letter(hash, u32::from(digit) + 1)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number of numbers, and their digest.
    fn figures(text: &str) -> (usize, u64) {
        let points: Vec<u32> = text.chars().map(u32::from).collect();
        let mut finder = NumberFinder::default();
        let numbers = finder.find(&points, 64);
        assert_eq!(numbers.sample.len(), numbers.count.min(64));
        (numbers.count, numbers.digest)
    }

    #[test]
    fn one_number_is_the_same_in_every_notation() {
        let same = [
            ["1,250,000 people", "1250000 people"],
            ["1.5万元", "一万五千元"],
            ["2008-08-15", "2008年8月15日"],
            ["二〇〇八年", "2008年"],
            ["5 million users", "5000000 users"],
            ["usd 30", "usd30"],
            ["百分之五十", "50%"],
            ["一万二", "12000"],
        ];
        for [one, other] in same {
            assert_eq!(figures(one), figures(other), "{one} {other}");
        }
    }

    #[test]
    fn signs_units_and_decimals_make_different_numbers() {
        let texts = ["5%", "-5%", "+5%", "±5%", "5", "5.0", "$5", "us$5", "5元", "5 km", "5°c", "0005", "第五", "5月"];
        let found: Vec<_> = texts.map(figures).into_iter().collect();
        assert!(found.iter().all(|(count, _)| *count == 1), "{found:?}");
        let distinct: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), texts.len() - 1); // 第五 is 5
    }

    #[test]
    fn runs_with_points_and_commas_are_several_numbers() {
        for (text, count) in [("2008.8.15", 3), ("1,2,3", 3), ("1.2.3.4", 4), ("一是一", 0), ("", 0), ("三点五分", 2)]
        {
            assert_eq!(figures(text).0, count, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_numbers(text in "[0-9.,一二十百千万亿点第年 $€a-c+°%−-]{0,60}") {
            let (count, digest) = figures(&text);
            prop_assert!(count > 0 || digest == 0);
            let (again, twice) = figures(&format!("{text}\n{text}"));
            prop_assert_eq!((again, twice), (2 * count, digest.wrapping_mul(2)));
        }
    }
}
