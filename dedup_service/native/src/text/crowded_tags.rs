//! Attributes of tags of HTML that have more of them than any page needs.
//!
//! Tags are found as the HTML standard does: a `>` in a quoted value ends no tag, and inside comments, scripts, styles
//! and other raw text there is none. Each byte is read a bounded number of times.
//!
//! Source: HTML Living Standard, 13.2.5 (tokenization). Unlike there, and as in libxml2, `<script/>` has no content.
//! The escaped states of script data are left out, in which a script contains its own end tag inside a comment.

use std::ops::Range;

/// Elements whose content has no tags but their own end tag.
const RAW_TEXT: [&[u8]; 8] = [b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes"];

/// Return where the attributes of each tag after its first `limit` are, in bytes, ascending.
pub fn crowding_attributes(page: &[u8], limit: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = position(page, at, |byte| byte == b'<') {
        let rest = &page[start + 1..];
        let is_end_tag = matches!(rest, [b'/', letter, ..] if letter.is_ascii_alphabetic());
        if !is_end_tag && !rest.first().is_some_and(u8::is_ascii_alphabetic) {
            at = after_no_tag(page, start + 1);
            continue;
        }
        let name = start + 1 + usize::from(is_end_tag);
        let name_end = end_of(page, name, ends_name);
        let (end, crowding, is_closed) = after_attributes(page, name_end, limit);
        found.extend(crowding.map(|first| first..end));
        at = end;
        if !is_end_tag && !is_closed {
            let name = &page[name..name_end];
            if let Some(name) = RAW_TEXT.iter().find(|raw| raw.eq_ignore_ascii_case(name)) {
                at = end_tag(page, end, name);
            }
        }
    }
    found
}

fn position(page: &[u8], from: usize, is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    Some(from + page.get(from..)?.iter().position(|&byte| is_wanted(byte))?)
}

/// Return the first place from one on whose byte ends something; the end of the page, if none does.
fn end_of(page: &[u8], from: usize, ends: impl Fn(u8) -> bool) -> usize {
    position(page, from, ends).unwrap_or(page.len())
}

/// White space as Python has it in bytes.
fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// Return where a comment or a declaration ends whose `<` is before `at`; `at` itself, if there is neither.
fn after_no_tag(page: &[u8], at: usize) -> usize {
    match &page[at..] {
        [b'!', b'-', b'-', ..] => {
            let ends = |&end: &usize| page[end..].starts_with(b"-->") || page[end..].starts_with(b"--!>");
            (at + 1..page.len()).find(ends).unwrap_or(page.len())
        }
        [b'!' | b'?' | b'/', ..] => end_of(page, at + 1, |byte| byte == b'>'),
        _ => at,
    }
}

/// Return where the attributes that follow a name end, where those after the first `limit` begin, and whether the tag
/// ends in `/>`, which for libxml2 ends the element, also a script.
fn after_attributes(page: &[u8], mut at: usize, limit: usize) -> (usize, Option<usize>, bool) {
    let (mut count, mut crowding) = (0, None);
    loop {
        let end = at;
        at = end_of(page, at, |byte| !is_space(byte) && byte != b'/');
        if at == page.len() || page[at] == b'>' {
            return (at, crowding, at > end && page[at - 1] == b'/');
        }
        if count == limit {
            crowding = Some(at);
        }
        count += 1;
        at = after_attribute(page, at);
    }
}

/// Return where the attribute that begins at `at` ends, with its value.
fn after_attribute(page: &[u8], at: usize) -> usize {
    let name_end = end_of(page, at + 1, |byte| ends_name(byte) || byte == b'=');
    let equals = end_of(page, name_end, |byte| !is_space(byte));
    if page.get(equals) != Some(&b'=') {
        return name_end;
    }
    let value = end_of(page, equals + 1, |byte| !is_space(byte));
    match page.get(value) {
        Some(&quote @ (b'"' | b'\'')) => page.len().min(end_of(page, value + 1, |byte| byte == quote) + 1),
        _ => end_of(page, value, |byte| is_space(byte) || byte == b'>'),
    }
}

/// Return where the end tag of an element with raw text begins; the end of the page, if it has none.
fn end_tag(page: &[u8], mut at: usize, name: &[u8]) -> usize {
    while let Some(start) = position(page, at, |byte| byte == b'<') {
        let end = start + 2 + name.len();
        let is_it = page.get(start + 1) == Some(&b'/')
            && page.get(start + 2..end).is_some_and(|bytes| bytes.eq_ignore_ascii_case(name))
            && page.get(end).is_none_or(|&byte| ends_name(byte));
        if is_it {
            return start;
        }
        at = start + 1;
    }
    page.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_beyond_the_limit_are_found_where_a_tag_may_be() {
        for (page, crowding) in [
            ("<p a b=1 c=2>word", vec!["c=2"]),
            ("<p a='>' b = \"<p c d e>\" c/d>", vec!["c/d"]),
            ("<!-- <p a b c> --!></p a b c><p/a/b/c", vec!["c", "c"]),
            ("<script a b c><p a b c></scripts></SCRIPT a b =c d><? <p a b>", vec!["c", "d"]),
            ("<title/><p a=/ b=c/d =e>< a b c", vec!["=e"]),
        ] {
            let found = crowding_attributes(page.as_bytes(), 2);
            assert_eq!(found.into_iter().map(|range| &page[range]).collect::<Vec<_>>(), crowding, "{page}");
        }
    }
}
