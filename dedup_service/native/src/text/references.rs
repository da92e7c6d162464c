//! Character references of HTML, which double escaping leaves in a text: `&ldquo;`, `&#8220;`.
//!
//! They are replaced as `html.unescape` of Python does, but only those that a semicolon ends.

use std::borrow::Cow;
use std::sync::LazyLock;

/// Letters of a name, and digits of a number, at most.
const MAX_NAME: usize = 31;
const MAX_DECIMAL: usize = 7;
const MAX_HEXADECIMAL: usize = 6;
/// Letters of a name without its semicolon, with which another may begin, at least.
const MIN_PREFIX: usize = 2;

/// Names, and numbers that stand for another character, ascending, each with its code points in hexadecimal.
static REFERENCES: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    include_str!("../../tables/references.txt").lines().filter_map(|line| line.split_once('\t')).collect()
});

/// Return a text with its character references replaced.
pub fn without_references(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        written.push_str(before);
        if let Some(name) = name_before_semicolon(behind) {
            write_referred(name, &mut written);
            rest = &behind[name.len() + 1..];
        } else {
            written.push('&');
            rest = behind;
        }
    }
    written.push_str(rest);
    Cow::Owned(written)
}

/// Return the name or number of a reference, behind whose `&` the text begins; None if it is none.
fn name_before_semicolon(text: &str) -> Option<&str> {
    let end = text.bytes().take(MAX_NAME + 1).position(|byte| byte == b';')?;
    let name = &text[..end];
    let is_number = |digits: &str, most, is_digit: fn(&u8) -> bool| {
        (1..=most).contains(&digits.len()) && digits.as_bytes().iter().all(is_digit)
    };
    let is_reference = match name.strip_prefix('#') {
        Some(number) => {
            is_number(number, MAX_DECIMAL, u8::is_ascii_digit)
                || number
                    .strip_prefix(['x', 'X'])
                    .is_some_and(|digits| is_number(digits, MAX_HEXADECIMAL, u8::is_ascii_hexdigit))
        }
        None => {
            end > 1 && name.as_bytes()[0].is_ascii_alphabetic() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        }
    };
    is_reference.then_some(name)
}

/// Write what a reference stands for: itself, if that is nothing.
fn write_referred(name: &str, written: &mut String) {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        written.extend(code.ok().and_then(character_of));
    } else if let Some(characters) = characters_of(&format!("{name};")) {
        written.extend(characters);
    } else {
        let mut prefixes = (MIN_PREFIX..=name.len()).rev().map(|end| name.split_at(end));
        let known = prefixes.find_map(|(prefix, rest)| Some((characters_of(prefix)?, rest)));
        match known {
            Some((characters, rest)) => written.extend(characters.chain(rest.chars())),
            None => written.extend(['&'].into_iter().chain(name.chars())),
        }
        written.push(';');
    }
}

/// Return the character of a number; None for one that says nothing.
fn character_of(code: u32) -> Option<char> {
    if let Some(mut characters) = characters_of(&format!("#{code}")) {
        return characters.next();
    }
    let is_invalid = matches!(code, 0x1..=0x8 | 0xB | 0xE..=0x1F | 0x7F | 0xFDD0..=0xFDEF)
        || (code & 0xFFFE == 0xFFFE && code < 0x11_0000);
    (!is_invalid).then(|| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn characters_of(name: &str) -> Option<impl Iterator<Item = char> + use<>> {
    let place = REFERENCES.binary_search_by_key(&name, |(name, _)| name).ok()?;
    let codes = REFERENCES[place].1.split(' ');
    Some(codes.filter_map(|code| u32::from_str_radix(code, 16).ok().and_then(char::from_u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_become_what_python_makes_of_them() {
        for (text, plain) in [
            ("&ldquo;&#65;&#x42;&#X43;&AMP;&Tab;", "“ABC&\t"),
            ("&notit; &ampx; &unknown; &#1;&#xFFFE;|", "¬it; &x; &unknown; |"),
            ("&#128;&#0;&#xD800;&#x110000;&#9999999;", "€\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"),
            ("&&amp;&a;&#;&#x;&#12345678;&é;&amp", "&&&a;&#;&#x;&#12345678;&é;&amp"),
            ("&NotEqualTilde;", "≂\u{338}"),
        ] {
            assert_eq!(without_references(text), plain, "{text}");
        }
    }
}
