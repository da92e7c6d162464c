//! The tokens of a page: characters of scripts without spaces, words and numbers, and which of them are facts.
//!
//! What a page does not say itself has no tokens: lines of a frame (dates, counts, authors, licences), lines that it
//! quotes if it has words of its own, addresses. A fact is a number that is no list or section number and no count of
//! readers, a word of `fact_words.txt`, a capitalised word inside a sentence, or an acronym.

use std::ops::Range;
use std::sync::LazyLock;

use crate::characters::characters;
use crate::memory::{GAMMA, mix64};
use crate::text::page_text::BodyAndTitle;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A word.
    Word,
    /// A capitalised word inside a sentence, or an acronym: a fact.
    Capital,
    /// A number, or a word that says one: a fact.
    Number,
    /// A number that is no fact.
    Ordinal,
    /// A character of a script without spaces.
    Character,
}

/// A token of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Hash of the folded token.
    pub hash: u64,
    /// What it is.
    pub class: Class,
}

/// Words outside quoted lines from which a page speaks for itself.
const MIN_OWN_WORDS: usize = 12;
/// Lines below so many characters are of the frame if one mark of it is in them, and below this with two.
const FRAME_LINE: [usize; 2] = [60, 150];
/// What a line with one mark has beside it at most: characters, or words of three.
const MOST_OTHERS: usize = 12;
const QUOTING_LINE: usize = 160;
/// Characters before a number in which a name of a count is searched.
const COUNT_REACH: usize = 12;
/// Characters before the @ of a mail address (RFC 5321, 4.5.3.1.1); a longer run is not read at each of its words.
const LONGEST_MAILBOX: usize = 64;

/// Marks of a line of the frame, folded.
const FRAME_MARKS: [&str; 32] = [
    "发表于",
    "发布于",
    "发布时间",
    "发表时间",
    "更新于",
    "更新时间",
    "阅读",
    "浏览",
    "点击数",
    "点赞",
    "收藏",
    "评论",
    "字数",
    "责任编辑",
    "责编",
    "编辑:",
    "来源:",
    "作者:",
    "版权",
    "转载",
    "原文链接",
    "本文链接",
    "本文作者",
    "posted on",
    "posted by",
    "posted in",
    "published",
    "last updated",
    "last modified",
    "views",
    "comments",
    "comment",
];
const COUNTS: [&str; 11] =
    ["阅读", "浏览", "点击", "评论", "点赞", "收藏", "回复", "views", "comments", "likes", "reads"];
const ATTRIBUTIONS: [&str; 4] = ["writes", "wrote", "schrieb", "says"];
const MAIL_FIELDS: [&str; 4] = ["subject", "message-id", "lines", "organization"];
/// Fields that other pages have as well, as a journey has: of a mail only beside one of the others.
const COMMON_FIELDS: [&str; 3] = ["from", "date", "references"];

static FACT_WORDS: LazyLock<HashSet> = LazyLock::new(|| {
    let lines = include_str!("../../tables/fact_words.txt").lines().filter(|line| !line.starts_with('#'));
    HashSet::of(lines.flat_map(str::split_whitespace).map(|word| hash_of(word.chars().map(u32::from))))
});
static MAY: LazyLock<u64> = LazyLock::new(|| hash_of("may".chars().map(u32::from)));
static FRAMES: LazyLock<Phrases> = LazyLock::new(|| Phrases::of(&FRAME_MARKS));
static COUNT_NAMES: LazyLock<Phrases> = LazyLock::new(|| Phrases::of(&COUNTS));

/// Append the tokens of a page to `body`, and those of its title to `title`.
pub fn find_tokens(page: &BodyAndTitle, body: &mut Vec<Token>, title: &mut Vec<Token>) {
    let lines = own_lines(page.body());
    let mut line = LineTokens { page, capitals: 0, is_title: false };
    let before = body.len();
    for range in lines.iter().filter(|range| !is_of_frame(&page.body()[range.start..range.end])) {
        line.find(range.clone(), body);
    }
    if body.len() == before {
        line.capitals = 0;
        for range in lines {
            line.find(range, body);
        }
    }
    line.is_title = true;
    line.find(page.body().len()..page.points().len(), title);
}

/// Return the lines of a body without those that it quotes, if it has words of its own.
fn own_lines(body: &[u32]) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in body.split(|&code| code == u32::from('\n')) {
        lines.push(start..start + line.len());
        start += line.len() + 1;
    }
    let is_mail = lines.iter().any(|line| has_field(&body[line.clone()], &MAIL_FIELDS));
    let is_quoting = |line: &[u32]| is_quoting(line) || (is_mail && is_mail_field(line));
    let quotes: Vec<bool> = lines.iter().map(|line| is_quoting(&body[line.clone()])).collect();
    if quotes.iter().filter(|quotes| **quotes).count() < 2 {
        return lines;
    }
    let own: Vec<Range<usize>> =
        lines.iter().zip(quotes).filter(|(_, quotes)| !quotes).map(|(line, _)| line.clone()).collect();
    let words: usize = own.iter().map(|line| words_in(&body[line.clone()])).sum();
    if words >= MIN_OWN_WORDS { own } else { lines }
}

fn words_in(line: &[u32]) -> usize {
    let characters = characters();
    line.chunk_by(|&one, &other| characters.is_alphanumeric(one) == characters.is_alphanumeric(other))
        .filter(|run| characters.is_alphanumeric(run[0]))
        .count()
}

/// Whether a line quotes another page, or says that one follows.
fn is_quoting(line: &[u32]) -> bool {
    let Some(&first) = line.first() else { return false };
    let is = |place: usize, character: char| line.get(place) == Some(&u32::from(character));
    let is_table = line.last() == Some(&u32::from('|'));
    if first == u32::from('>') || ((is(0, '|') || is(0, ':')) && is(1, ' ') && !is_table) {
        return true;
    }
    let initials = line.iter().take(5).take_while(|&&code| is_latin(code)).count();
    if (1..5).contains(&initials) && line.get(initials) == Some(&u32::from('>')) {
        return true;
    }
    if line.len() >= QUOTING_LINE {
        return false;
    }
    let mut end = line.len();
    while end > 0 && matches!(char::from_u32(line[end - 1]), Some(' ' | ':')) {
        end -= 1;
    }
    let ends = ATTRIBUTIONS
        .iter()
        .any(|word| ends_with(&line[..end], word) && is_whole_word(line, end - word.len(), word.len()));
    ends || starts_with(line, "in article ")
}

fn is_mail_field(line: &[u32]) -> bool {
    has_field(line, &MAIL_FIELDS) || has_field(line, &COMMON_FIELDS)
}

/// Whether a line begins with the name of one of some fields and a colon.
fn has_field(line: &[u32], fields: &[&str]) -> bool {
    line.len() < QUOTING_LINE
        && fields.iter().any(|field| {
            starts_with(line, field)
                && line[field.len()..].iter().find(|&&code| code != u32::from(' ')) == Some(&u32::from(':'))
        })
}

/// Whether a line is of a page's frame: its date, counts, author or licence.
fn is_of_frame(line: &[u32]) -> bool {
    let [few, many] = FRAME_LINE;
    if line.len() >= many {
        return false;
    }
    let (mut at, mut marks, mut others) = (0, 0, 0);
    while at < line.len() && marks < 2 {
        match FRAMES.at(line, at) {
            Some(length) if is_whole_word(line, at, length) => {
                marks += 1;
                at += length;
            }
            _ => {
                let begins_word = is_word_letter(line[at]) && !(at > 0 && is_word_letter(line[at - 1]));
                others += if begins_word { 3 } else { usize::from(is_unspaced(line[at])) };
                at += 1;
            }
        }
    }
    marks >= 2 || (marks == 1 && line.len() < few && others <= MOST_OTHERS && !line.iter().any(|&code| is_price(code)))
}

/// Whether a character says that a number is a price.
fn is_price(code: u32) -> bool {
    matches!(char::from_u32(code), Some('$' | '€' | '£' | '¥' | '元' | '价'))
}

/// Whether the Latin letters found are no part of a longer word; others need not be.
fn is_whole_word(line: &[u32], at: usize, length: usize) -> bool {
    let is_inside = |at: usize| line.get(at).is_some_and(|&code| is_latin(code));
    !is_latin(line[at]) || !(at > 0 && is_inside(at - 1) || is_inside(at + length))
}

/// Finds the tokens of one line after the other.
struct LineTokens<'a> {
    page: &'a BodyAndTitle,
    capitals: usize,
    is_title: bool,
}

impl LineTokens<'_> {
    fn find(&mut self, range: Range<usize>, tokens: &mut Vec<Token>) {
        let (line, base) = (&self.page.points()[range.clone()], range.start);
        let has_mail = line.contains(&u32::from('@'));
        let list_end = if self.is_title { 0 } else { end_of_list_number(line) };
        let (mut at, mut begins) = (0, true);
        while at < line.len() {
            let code = line[at];
            if let Some(end) = end_of_address(line, at, has_mail) {
                at = end;
                continue;
            }
            if is_digit(code) || is_numeral(code) {
                if let Some((token, end)) = self.number(line, at, list_end) {
                    tokens.push(token);
                    (at, begins) = (end, false);
                    continue;
                }
            }
            if is_unspaced(code) {
                if is_letter(code) {
                    tokens.push(Token { hash: hash_of([code]), class: Class::Character });
                    begins = false;
                }
                at += 1;
            } else if is_word_letter(code) {
                let end = end_of_word(line, at);
                tokens.push(self.word(base + at..base + end, begins));
                (at, begins) = (end, false);
            } else {
                begins |= matches!(char::from_u32(code), Some('.' | '!' | '?' | ':' | '。' | ';' | '"' | '“' | '('));
                at += 1;
            }
        }
    }

    fn number(&self, line: &[u32], at: usize, list_end: usize) -> Option<(Token, usize)> {
        let is_counted = at > 0 && line[at - 1] == u32::from('第');
        let run = |is: fn(u32) -> bool| at + line[at..].iter().take_while(|&&code| is(code)).count();
        let (hash, end, is_ordinal) = if is_counted {
            let end = run(|code| is_digit(code) || is_numeral(code));
            (hash_of(line[at..end].iter().copied()), end, true)
        } else if is_digit(line[at]) {
            let end = end_of_number(line, at);
            (hash_of_number(&line[at..end]), end, is_read_count(line, at))
        } else {
            let end = run(is_numeral);
            if end < at + 2 {
                return None;
            }
            (hash_of(line[at..end].iter().copied().chain([u32::from('h')])), end, false)
        };
        let is_ordinal = !self.is_title && (is_ordinal || at < list_end);
        Some((Token { hash, class: if is_ordinal { Class::Ordinal } else { Class::Number } }, end))
    }

    fn word(&mut self, range: Range<usize>, begins: bool) -> Token {
        let capitals = self.page.capitals();
        let place = |at: usize| capitals.partition_point(|&place| (place as usize) < at);
        while capitals.get(self.capitals).is_some_and(|&place| (place as usize) < range.start) {
            self.capitals += 1;
        }
        let is_capital = capitals.get(self.capitals).is_some_and(|&place| place as usize == range.start);
        let letters = &self.page.points()[range.clone()];
        let hash = hash_of(letters.iter().map(|&code| if code == u32::from('’') { u32::from('\'') } else { code }));
        let is_acronym = || {
            let others = letters.iter().skip(1).filter(|&&code| is_word_letter(code)).count();
            others > 0 && place(range.end) - self.capitals == others + 1
        };
        let class = if FACT_WORDS.has(hash) && (is_capital || hash != *MAY) {
            Class::Number
        } else if is_capital && (!begins || is_acronym()) {
            Class::Capital
        } else {
            Class::Word
        };
        Token { hash, class }
    }
}

/// Return where an address or a mail address ends that begins at a place.
fn end_of_address(line: &[u32], at: usize, has_mail: bool) -> Option<usize> {
    let rest = &line[at..];
    let is_part = |code: u32| code != u32::from(' ') && !is_unspaced(code);
    let scheme = ["http://", "https://", "www."].iter().find(|scheme| starts_with(rest, scheme));
    if let Some(scheme) = scheme.filter(|scheme| rest.get(scheme.len()).is_some_and(|&code| is_part(code))) {
        return Some(at + scheme.len() + rest[scheme.len()..].iter().take_while(|&&code| is_part(code)).count());
    }
    if !has_mail {
        return None;
    }
    let is_name = |code: u32| is_word_letter(code) || is_digit(code) || matches!(code, 0x5F | 0x2B | 0x2D | 0x2E);
    let name = rest.iter().take(LONGEST_MAILBOX).take_while(|&&code| is_name(code)).count();
    if name == 0 || rest.get(name) != Some(&u32::from('@')) {
        return None;
    }
    let host = rest[name + 1..].iter().take_while(|&&code| is_name(code)).count();
    (host > 0).then_some(at + name + 1 + host)
}

/// Return where a number of a list or section at the beginning of a line ends; 0 without one.
fn end_of_list_number(line: &[u32]) -> usize {
    let is_any = |code: u32, of: &str| of.chars().any(|other| u32::from(other) == code);
    let start = line.iter().take_while(|&&code| is_any(code, " #*>•·([【")).count();
    let run = |at: usize, most: usize, is: &dyn Fn(u32) -> bool| {
        line[at..].iter().take(most).take_while(|&&code| is(code)).count()
    };
    let mut end = start + run(start, 3, &is_digit);
    if end > start {
        for _ in 0..3 {
            let further = if line.get(end) == Some(&u32::from('.')) { run(end + 1, 3, &is_digit) } else { 0 };
            end += if further > 0 { further + 1 } else { 0 };
        }
    } else {
        end += run(start, 3, &|code| is_any(code, "一二三四五六七八九十"));
    }
    // 2.3 Close is a section, 200 g flour a fact.
    let has_point = line[start..end].contains(&u32::from('.'));
    let is_closed =
        line.get(end).is_some_and(|&code| is_any(code, ".、)]】:") || (has_point && code == u32::from(' ')));
    if end > start && is_closed { end + 1 } else { 0 }
}

fn end_of_number(line: &[u32], at: usize) -> usize {
    let digits = |at: usize| line[at..].iter().take_while(|&&code| is_digit(code)).count();
    let mut end = at + digits(at);
    while line.get(end).is_some_and(|&code| matches!(char::from_u32(code), Some('.' | ',' | ':' | '/' | '-'))) {
        let further = digits(end + 1);
        if further == 0 {
            break;
        }
        end += 1 + further;
    }
    end
}

/// Hash a number without commas between thousands and zeros before it.
fn hash_of_number(number: &[u32]) -> u64 {
    let is_comma = |code: &u32| *code == u32::from(',');
    let whole = number.iter().take_while(|&&code| code != u32::from('.')).count();
    let mut groups = number[..whole].split(is_comma);
    let first = groups.next().map_or(0, <[u32]>::len);
    let is_grouped =
        (1..=3).contains(&first) && groups.all(|group| group.len() == 3 && group.iter().all(|&c| is_digit(c)));
    let plain = || number.iter().copied().filter(|code| !(is_grouped && is_comma(code)));
    let zeros = plain().take_while(|&code| code == u32::from('0')).count().min(plain().count() - 1);
    hash_of(plain().skip(zeros))
}

/// Whether a number says how often a page was read.
fn is_read_count(line: &[u32], at: usize) -> bool {
    let mut end = at;
    while end > 0 && at - end < 3 && matches!(char::from_u32(line[end - 1]), Some(' ' | ':' | '(')) {
        end -= 1;
    }
    (end.saturating_sub(COUNT_REACH)..end).any(|start| {
        COUNT_NAMES.at(&line[start..end], 0) == Some(end - start) && is_whole_word(line, start, end - start)
    })
}

fn end_of_word(line: &[u32], at: usize) -> usize {
    let mut end = at;
    loop {
        end += line[end..].iter().take_while(|&&code| is_word_letter(code)).count();
        let is_joined = line.get(end).is_some_and(|&code| matches!(char::from_u32(code), Some('\'' | '’')));
        if !is_joined || !line.get(end + 1).is_some_and(|&code| is_word_letter(code)) {
            return end;
        }
        end += 1;
    }
}

/// Return a hash of code points.
pub fn hash_of(points: impl IntoIterator<Item = u32>) -> u64 {
    mix64(
        points
            .into_iter()
            .fold(0, |hash: u64, code| (hash ^ u64::from(code)).wrapping_add(1).wrapping_mul(GAMMA).rotate_left(29)),
    )
}

fn starts_with(line: &[u32], text: &str) -> bool {
    line.len() >= text.len() && text.bytes().zip(line).all(|(byte, &code)| u32::from(byte) == code)
}

fn ends_with(line: &[u32], text: &str) -> bool {
    line.len() >= text.len() && starts_with(&line[line.len() - text.len()..], text)
}

#[inline]
fn is_digit(code: u32) -> bool {
    (0x30..0x3A).contains(&code)
}

#[inline]
fn is_latin(code: u32) -> bool {
    (0x61..=0x7A).contains(&code)
}

/// Whether a character is a numeral of Chinese.
#[inline]
fn is_numeral(code: u32) -> bool {
    (code == 0x3007 || (0x4E00..=0x9FFF).contains(&code))
        && matches!(
            char::from_u32(code),
            Some(
                '〇' | '零'
                    | '一'
                    | '二'
                    | '三'
                    | '四'
                    | '五'
                    | '六'
                    | '七'
                    | '八'
                    | '九'
                    | '十'
                    | '百'
                    | '千'
                    | '万'
                    | '亿'
                    | '两'
            )
        )
}

/// Whether a character is of a script that writes no spaces between words.
#[inline]
pub fn is_unspaced(code: u32) -> bool {
    code >= 0xE00
        && matches!(code, 0xE00..=0xEFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
}

#[inline]
fn is_letter(code: u32) -> bool {
    characters().is_letter(code)
}

#[inline]
fn is_word_letter(code: u32) -> bool {
    is_latin(code) || (code > 0x7F && !is_unspaced(code) && is_letter(code))
}

/// Some phrases, found by their first character.
struct Phrases {
    phrases: Vec<Vec<u32>>,
    firsts: [u64; 4],
}

impl Phrases {
    fn of(texts: &[&str]) -> Self {
        let mut phrases: Vec<Vec<u32>> = texts.iter().map(|text| text.chars().map(u32::from).collect()).collect();
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
        let mut firsts = [0; 4];
        for phrase in &phrases {
            firsts[phrase[0] as usize >> 6 & 3] |= 1 << (phrase[0] & 63);
        }
        Self { phrases, firsts }
    }

    /// Return the length of the longest phrase at a place.
    #[inline]
    fn at(&self, line: &[u32], at: usize) -> Option<usize> {
        let first = *line.get(at)?;
        if self.firsts[first as usize >> 6 & 3] >> (first & 63) & 1 == 0 {
            return None;
        }
        self.phrases.iter().find(|phrase| line[at..].starts_with(phrase)).map(Vec::len)
    }
}

/// Some hashes, most others told apart by one bit.
struct HashSet {
    bits: [u64; 64],
    hashes: Vec<u64>,
}

impl HashSet {
    fn of(hashes: impl Iterator<Item = u64>) -> Self {
        let mut hashes: Vec<u64> = hashes.collect();
        hashes.sort_unstable();
        let mut bits = [0; 64];
        for hash in &hashes {
            bits[(hash >> 6 & 63) as usize] |= 1 << (hash & 63);
        }
        Self { bits, hashes }
    }

    #[inline]
    fn has(&self, hash: u64) -> bool {
        self.bits[(hash >> 6 & 63) as usize] >> (hash & 63) & 1 == 1 && self.hashes.binary_search(&hash).is_ok()
    }
}
