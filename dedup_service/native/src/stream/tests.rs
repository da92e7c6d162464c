//! Tests for tokens, by examples, and for the comparison of two pages, by plain lists, maps and sets.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

use super::compare::{BEGINNING, Comparer, DATE, MOST_SWAPPED, NEAR_CUT, Quantities, SEED, WIDE};
use super::packed::{CAPITALS, FINE, MOST, MOST_TITLE, Stream, pack};
use super::tokens::{Class, Token, find_tokens, hash_of};
use crate::memory::{GAMMA, mix64};
use crate::text::page_text::PageText;

/// Return a token as it is written in these tests: its text, and w for a word, c a capital, n a number, o an ordinal,
/// or nothing for a character.
fn token(written: &str) -> Token {
    let (text, class) = match written.rsplit_once('/') {
        Some((text, "w")) => (text, Class::Word),
        Some((text, "c")) => (text, Class::Capital),
        Some((text, "n")) => (text, Class::Number),
        Some((text, "o")) => (text, Class::Ordinal),
        _ => (written, Class::Character),
    };
    Token { hash: hash_of(text.chars().map(u32::from)), class }
}

/// Check which tokens a page has. expected: of its body and of its title, with spaces between.
fn check(title: &str, body: &str, expected: [&str; 2]) {
    let page = PageText::of(title, body).folded;
    let (mut of_body, mut of_title) = (Vec::new(), Vec::new());
    find_tokens(&page, &mut of_body, &mut of_title);
    for (found, expected) in [of_body, of_title].iter().zip(expected) {
        let expected: Vec<&str> = expected.split_whitespace().collect();
        let differs = (0..found.len().max(expected.len()))
            .find(|&at| found.get(at) != expected.get(at).map(|written| token(written)).as_ref());
        assert_eq!(
            differs,
            None,
            "{body:?}: {} tokens, classes {:?}",
            found.len(),
            found.iter().map(|of| of.class).collect::<Vec<_>>()
        );
    }
}

#[test]
fn tokens_are_characters_words_and_numbers() {
    for (body, expected) in [
        ("The mayor of London met NASA on 3 May.", "the/w mayor/w of/w london/c met/w nasa/c on/w 3/n may/n"),
        ("NASA won. A win! (So it was: Good)", "nasa/c won/w a/w win/w so/w it/w was/w good/w"),
        ("May it rain? it may", "may/n it/w rain/w it/w may/w"),
        ("Don’t say rock 'n' roll, O'Neill", "don't/w say/w rock/w n/w roll/w o'neill/c"),
        (
            "for 1,200.50 or 1,2 or 007 or 0 or 0.5 at 12:30",
            "for/w 1200.50/n or/w 1,2/n or/w 7/n or/w 0/n or/w .5/n at/w 12:30/n",
        ),
        (
            "see https://a.example/B?c=1 and www.a.example/d, mail Ab.c-d@e.example now @ home",
            "see/w and/w mail/w now/w home/w",
        ),
        ("Am 3. März traf Anna zwei Bürgermeister.", "am/w 3/n märz/n traf/w anna/c zwei/n bürgermeister/c"),
        ("Die STRASSE heißt Straße", "die/w strasse/c heisst/w strasse/c"),
        ("大橋于2024年十二月开放", "大 桥 于 2024/n 年 十二h/n 月 开 放"),
        ("他买了IPhone,在Berlin。", "他 买 了 iphone/c 在 berlin/c"),
    ] {
        check("", body, [expected, ""]);
    }
}

#[test]
fn numbers_of_lists_chapters_and_readers_are_no_facts() {
    for (body, expected) in [
        ("1. Open it\n2.3 Close 4 doors\n(12) or 5", "1/o open/w it/w 2.3/o close/c 4/n doors/w 12/o or/w 5/n"),
        ("一、开放\n3、第三次,第12次", "一 开 放 3/o 第 三/o 次 第 12/o 次"),
        ("2024 was, 1.5 and 3", "2024/n was/w 1.5/n and/w 3/n"),
        (
            "今天下午他们在图书馆里坐着,那篇文章的阅读 120,评论(7)",
            "今 天 下 午 他 们 在 图 书 馆 里 坐 着 那 篇 文 章 的 阅 读 120/o 评 论 7/o",
        ),
        (
            "people reads: 120 books, a thread 5, likes  12",
            "people/w reads/w 120/o books/w a/w thread/w 5/n likes/w 12/o",
        ),
    ] {
        check("", body, [expected, ""]);
    }
    check("3. 第12次 of May", "x", ["x/w", "3/n 第 12/n 次 of/w may/n"]);
}

/// Unless a page has nothing else.
#[test]
fn lines_of_the_frame_have_no_tokens() {
    let long = "word ".repeat(12);
    for (frame, has_tokens) in [
        ("Posted by Anna", false),
        ("发布时间:2024", false),
        ("interviews with us", true),
        (&format!("{long} views"), true),
        (&format!("{long} views, comments"), false),
        (&format!("{long}{long}{long} views, comments"), true),
    ] {
        let page = PageText::of("", &format!("{frame}\nThe bridge opened.")).folded;
        let (mut body, mut title) = (Vec::new(), Vec::new());
        find_tokens(&page, &mut body, &mut title);
        assert_eq!(body.len() > 3, has_tokens, "{frame}");
    }
    check("", "Posted by Anna\nLast updated: May", ["posted/w by/w anna/c last/w updated/w may/n", ""]);
}

/// If twelve words or more are left, and two lines at least are quoted.
#[test]
fn quoted_lines_have_no_tokens() {
    let own = "a b c d e f g h i j k";
    for (quoted, own, has_tokens) in [
        ("> x\n| x\n", "a b c d e f g h i j k l", false),
        ("> x\nAbc> x\n", "a b c d e f g h i j k l", false),
        ("In article 5, Anna writes:\n: x\n", "a b c d e f g h i j k l", false),
        ("From: x\nSubject : x\n", "a b c d e f g h i j k l", false),
        ("From: x\nDate: x\nReferences: x\n", "a b c d e f g h i j k l", true),
        ("From: x\nDate: x\nLines: x\n", "a b c d e f g h i j k l", false),
        ("> x\n> x\n", own, true),
        ("> x\n", "a b c d e f g h i j k l", true),
        ("| x |\n| x |\n", "a b c d e f g h i j k l", true),
        ("Sie beschrieb:\nx rewrites\n", "a b c d e f g h i j k l", true),
    ] {
        let page = PageText::of("", &format!("{quoted}{own}")).folded;
        let (mut body, mut title) = (Vec::new(), Vec::new());
        find_tokens(&page, &mut body, &mut title);
        assert_eq!(body.len() > own.split(' ').count(), has_tokens, "{quoted}");
    }
}

/// Also in a text that the tables cannot fold, and behind a headline that is no part of the body.
#[test]
fn capitals_stay_known() {
    check("Berlin is", "Berlin is\nWe saw Berlin", ["we/w saw/w berlin/c", "berlin/w is/w"]);
    check("in e\u{301} Köln", "转发: ﬀ ß an e\u{301} Köln", ["ff/w ss/w an/w é/w köln/c", "in/w é/w köln/c"]);
    check("", "Ｉn Ｂerlin und İzmir", ["in/w berlin/c und/w i/c zmir/w", ""]);
}

/// As in a page of a million characters that look like the name of a mail address.
#[test]
fn a_long_run_that_is_no_address_takes_no_long_time() {
    let run = "a.".repeat(500_000) + " @";
    let page = PageText::of("", &run).folded;
    let mut body = Vec::new();
    find_tokens(&page, &mut body, &mut Vec::new());
    assert_eq!(body.len(), 500_000);
}

/// Tokens of a page, most of them out of fifty. words: how many of ten are no characters.
pub(super) fn some_tokens(count: usize, words: u64) -> impl Strategy<Value = Vec<Token>> + Clone {
    let classes = [Class::Word, Class::Word, Class::Capital, Class::Number, Class::Ordinal];
    let token = move |random: u64| Token {
        hash: mix64(if random % 7 == 0 { random } else { random >> 8 & 0xFF_FFFF } % 50),
        class: if random % 10 < words { classes[(random >> 32) as usize % 5] } else { Class::Character },
    };
    any::<u64>().prop_map(move |seed| (0..count as u64).map(|at| token(mix64(seed ^ at.wrapping_mul(GAMMA)))).collect())
}

/// Return the codes of tokens, whether they are facts, and the values of those that are.
pub(super) fn plain_tokens(tokens: &[Token], as_coarse: bool) -> [Vec<u16>; 3] {
    let kept = || tokens.iter().take(MOST);
    let code = |token: &Token| match (token.class, as_coarse) {
        (Class::Character, false) => token.hash % 15,
        (Class::Character, true) => token.hash % 15 % 7,
        (_, false) => 15 + token.hash % 64,
        (_, true) => 15 + token.hash % 32,
    };
    let fact = |token: &Token| match token.class {
        Class::Number => 2,
        Class::Capital => 1,
        _ => 0,
    };
    let value = |token: &Token| match token.class {
        Class::Number => (token.hash % 4096) as u16,
        Class::Capital => CAPITALS + code(token) as u16 - 15,
        _ => 0,
    };
    [kept().map(|token| code(token) as u16).collect(), kept().map(fact).collect(), kept().map(value).collect()]
}

/// A page, and where the other has its tokens.
struct Plain<'a> {
    body: &'a [Token],
    title: &'a [Token],
    codes: Vec<u16>,
    facts: Vec<u16>,
    values: Vec<u16>,
    held: Vec<Option<usize>>,
}

type Page = (Vec<Token>, Vec<Token>);

fn weight(codes: &[u16]) -> usize {
    codes.iter().map(|&code| if code < 15 { 3 } else { 5 }).sum()
}

/// The shortest window from each token that weighs enough, and what the last of them leaves at the end.
fn seeds(codes: &[u16], least: usize) -> Vec<Range<usize>> {
    let end_of = |start: usize| (start + 1..=codes.len()).find(|&end| weight(&codes[start..end]) >= least);
    let mut seeds: Vec<_> = (0..codes.len()).map_while(|start| end_of(start).map(|end| start..end)).collect();
    if seeds.last().is_some_and(|last| last.end < codes.len()) {
        seeds.push(seeds.len()..codes.len());
    }
    seeds
}

/// Where each token stands in the other page: as the shortest seed says that ends with it, or else the first one around
/// it.
fn held(ours: &[u16], theirs: &[u16], is_coarse: bool) -> Vec<Option<usize>> {
    let least = SEED[usize::from(is_coarse)];
    let firsts: HashMap<&[u16], usize> =
        seeds(theirs, least).into_iter().rev().map(|seed| (&theirs[seed.clone()], seed.start)).collect();
    let mut at_seed = vec![None; ours.len()];
    for seed in seeds(ours, least) {
        let Some(&place) = firsts.get(&ours[seed.clone()]) else { continue };
        for at in seed.clone() {
            at_seed[at] = at_seed[at].filter(|_| at + 1 < seed.end).or(Some(place + at - seed.start));
        }
    }
    let mut held = at_seed;
    if is_coarse {
        for at in 1..held.len() {
            let next = held[at - 1].map(|place| place + 1).filter(|&place| theirs.get(place) == Some(&ours[at]));
            held[at] = held[at].or(next);
        }
        for at in (1..held.len()).rev() {
            let before = held[at].and_then(|place| place.checked_sub(1)).filter(|&place| theirs[place] == ours[at - 1]);
            held[at - 1] = held[at - 1].or(before);
        }
    }
    held
}

impl<'a> Plain<'a> {
    fn of(pages: &'a [Page; 2]) -> [Self; 2] {
        let is_coarse = pages.iter().any(|(body, _)| body.len() > FINE);
        let mut plain = pages.each_ref().map(|(body, title)| {
            let [codes, facts, values] = plain_tokens(body, is_coarse);
            Self { body, title: &title[..title.len().min(MOST_TITLE)], codes, facts, values, held: Vec::new() }
        });
        for (place, other) in [(0, 1), (1, 0)] {
            plain[place].held = held(&plain[place].codes, &plain[other].codes, is_coarse);
        }
        let ends = plain.each_ref().map(|page| page.held.iter().rposition(Option::is_some).map_or(0, |at| at + 1));
        for (place, other) in [(0, 1), (1, 0)] {
            if plain[other].body.len() > MOST && ends[other] + NEAR_CUT > MOST {
                plain[place].held.truncate(ends[place].max(1));
            }
        }
        plain
    }

    fn weight(&self) -> usize {
        weight(&self.codes[..self.held.len()])
    }

    fn share_held(&self) -> f64 {
        let held = self.held.iter().zip(&self.codes).filter(|(held, _)| held.is_some());
        share(held.map(|(_, &code)| weight(&[code])).sum(), self.weight())
    }

    fn hunks(&self) -> Vec<Range<usize>> {
        let is_in = |at: usize| self.held.get(at) == Some(&None);
        let end_of = |start: usize| (start..=self.held.len()).find(|&at| !is_in(at)).unwrap();
        let starts = (0..self.held.len()).filter(|&at| is_in(at) && (at == 0 || !is_in(at - 1)));
        starts.map(|start| start..end_of(start)).collect()
    }

    fn facts(&self, range: Range<usize>, least: u16) -> BTreeSet<u16> {
        range.filter(|&at| self.facts[at] >= least).map(|at| self.values[at]).collect()
    }

    fn count(&self, is: impl Fn(u16, bool) -> bool) -> usize {
        self.held.iter().zip(&self.facts).filter(|(held, fact)| is(**fact, held.is_some())).count()
    }

    fn begins_with_own_number(&self) -> bool {
        let is_narrow = |hunk: &Range<usize>| weight(&self.codes[hunk.clone()]) <= DATE;
        self.hunks().into_iter().filter(is_narrow).flatten().any(|at| at < BEGINNING && self.facts[at] == 2)
    }

    /// Distinct words and pairs of the title that the other title lacks: the share that stands in the body and in a hunk,
    /// and in how many hunks those of the body stand.
    fn of_title(&self, other: &Self, is_coarse: bool) -> (f64, usize) {
        let value = |token: &Token| (token.hash % (15 * 64 * 34), token.class == Class::Character);
        let terms = |page: &Self| -> Vec<Vec<Token>> {
            let singles = page.title.chunks(1).filter(|term| term[0].class != Class::Character);
            singles.chain(page.title.windows(2)).map(<[Token]>::to_vec).collect()
        };
        let values = |term: &Vec<Token>| term.iter().map(value).collect::<Vec<_>>();
        let mut known: BTreeSet<Vec<(u64, bool)>> = terms(other).iter().map(values).collect();
        let own: Vec<Vec<Token>> = terms(self).into_iter().filter(|term| known.insert(values(term))).collect();
        let is_in_body = |term: &&Vec<Token>| {
            let is_same = |(one, other): (&Token, &Token)| one.hash == other.hash;
            self.body.windows(term.len()).any(|window| window.iter().zip(*term).all(is_same))
        };
        let of_body: Vec<Vec<u16>> =
            own.iter().filter(is_in_body).map(|term| plain_tokens(term, is_coarse)[0].clone()).collect();
        let hunks = self.hunks();
        let stands = |codes: &Vec<u16>, hunk: &Range<usize>| {
            let mut windows = self.codes[..self.held.len()].windows(codes.len()).enumerate();
            windows.any(|(at, window)| window == codes && at < hunk.end && at + codes.len() > hunk.start)
        };
        let found = of_body.iter().filter(|codes| hunks.iter().any(|hunk| stands(codes, hunk))).count();
        let with_one = hunks.iter().filter(|hunk| of_body.iter().any(|codes| stands(codes, hunk))).count();
        (share(found, own.len()), with_one)
    }
}

fn share(part: usize, all: usize) -> f64 {
    if all > 0 { part as f64 / all as f64 } else { 0.0 }
}

/// Facts that hunks swap which follow the same token, as one page has it and as the other has it.
fn swaps([one, other]: &[Plain; 2], least: u16) -> usize {
    let mut sum = 0;
    for (one, other) in [(one, other), (other, one)] {
        for ours in one.hunks() {
            let start = ours.start.checked_sub(1).map_or(0, |before| one.held[before].unwrap() + 1);
            let Some(theirs) = other.hunks().into_iter().find(|theirs| theirs.start == start) else { continue };
            if weight(&one.codes[ours.clone()]).max(weight(&other.codes[theirs.clone()])) <= WIDE {
                let (ours, theirs) = (one.facts(ours, least), other.facts(theirs, least));
                sum += (&ours - &theirs).len().min((&theirs - &ours).len()).min(MOST_SWAPPED);
            }
        }
    }
    sum
}

fn plain_quantities(pages: &[Page; 2]) -> Quantities {
    let is_coarse = pages.iter().any(|(body, _)| body.len() > FINE);
    let plain = Plain::of(pages);
    let [one, other] = &plain;
    let length = |page: &Plain| if page.body.len() > MOST { 5 * page.body.len() } else { page.weight() };
    let mut by_length = [one, other].map(|page| (length(page), page.share_held()));
    by_length.sort_by(|(one, less), (other, more)| one.cmp(other).then(more.total_cmp(less)));
    let least = one.weight().min(other.weight()).max(3);
    let held_numbers = one.count(|fact, held| fact == 2 && held).min(other.count(|fact, held| fact == 2 && held));
    let mut facts = plain.each_ref().map(|page| page.facts(0..page.held.len(), 1));
    facts.sort_by_key(BTreeSet::len);
    let in_hunks = |page: &Plain| page.count(|fact, held| fact > 0 && !held);
    let all_facts = |page: &Plain| page.count(|fact, _| fact > 0);
    let titles = [one.of_title(other, is_coarse), other.of_title(one, is_coarse)];
    let have_titles = !one.title.is_empty() && !other.title.is_empty();
    Quantities {
        held_longer: by_length[1].1,
        held_shorter: by_length[0].1,
        hunks: 300.0 * share(one.hunks().len() + other.hunks().len(), one.weight() + other.weight()),
        swapped: 300.0 * share(swaps(&plain, 1), 2 * least),
        swapped_numbers: share(swaps(&plain, 2), swaps(&plain, 2) + 2 * held_numbers),
        missing_facts: share((&facts[0] - &facts[1]).len(), facts[0].len() + 2),
        facts_in_hunks: share(in_hunks(one) + in_hunks(other), all_facts(one) + all_facts(other)),
        title_in_hunks: if have_titles { f64::midpoint(titles[0].0, titles[1].0) } else { 0.0 },
        hunks_with_title: if have_titles {
            share(titles[0].1 + titles[1].1, one.hunks().len() + other.hunks().len())
        } else {
            0.0
        },
        seeds_in_both: seeds_in_both([one, other], SEED[usize::from(is_coarse)]),
        begin_with_own_numbers: one.begins_with_own_number() && other.begins_with_own_number(),
    }
}

fn seeds_in_both([one, other]: [&Plain; 2], least: usize) -> f64 {
    let [ours, theirs] = [one, other].map(|page| {
        let seeds = seeds(&page.codes, least).into_iter().map(|seed| &page.codes[seed]);
        seeds.collect::<BTreeSet<_>>()
    });
    share(ours.intersection(&theirs).count(), ours.union(&theirs).count())
}

fn packed(pages: &[Page; 2]) -> [Vec<u8>; 2] {
    pages.each_ref().map(|(body, title)| {
        let mut packed = Vec::new();
        pack(body, title, &mut packed);
        packed
    })
}

fn compared(pages: &[Page; 2]) -> Quantities {
    let packed = packed(pages);
    let [one, other] = packed.each_ref().map(|packed| Stream::new(packed).unwrap());
    Comparer::default().compare(&one, &other)
}

/// Two pages of passages of one text and of others; some are coarse, or cut, by a filler that both have or one.
fn two_pages() -> impl Strategy<Value = [Page; 2]> {
    let filler = prop_oneof![60 => Just(0_usize), 20 => 1000..1100_usize, 2 => MOST - 90..MOST + 90];
    (0..=10_u64, filler).prop_flat_map(|(words, filler)| {
        let passages = || vec((0..100_usize, 1..40_usize, some_tokens(3, words), 0..4_usize), 0..7);
        let page = || (passages(), prop::sample::select(vec![0, filler, filler]), any::<bool>(), 0..40_usize);
        let texts = (some_tokens(100, words), some_tokens(filler, words), some_tokens(80, words));
        (texts, [page(), page()]).prop_map(|((text, filler, titles), pages)| {
            pages.map(|(passages, count, is_behind, title)| {
                let mut body = Vec::new();
                for (start, length, own, own_count) in passages {
                    body.extend(&text[start..100.min(start + length)]);
                    body.extend(&own[..own_count.min(3)]);
                }
                let place = if is_behind { body.len() } else { 0 };
                body.splice(place..place, filler[..count].iter().copied());
                let title = if title < 6 { Vec::new() } else { titles[title % 7..title].to_vec() };
                (body, title)
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// In both orders.
    #[test]
    fn quantities_are_those_of_lists_and_sets([one, other] in two_pages()) {
        let expected = plain_quantities(&[one.clone(), other.clone()]);
        prop_assert_eq!(compared(&[one.clone(), other.clone()]), expected);
        prop_assert_eq!(compared(&[other, one]), expected);
    }

    /// As long as it has a seed.
    #[test]
    fn a_page_holds_all_of_itself([page, _] in two_pages()) {
        let is_coarse = page.0.len() > FINE;
        prop_assume!(weight(&plain_tokens(&page.0, is_coarse)[0]) >= SEED[usize::from(is_coarse)]);
        let all = Quantities { held_longer: 1.0, held_shorter: 1.0, seeds_in_both: 1.0, ..Quantities::default() };
        prop_assert_eq!(compared(&[page.clone(), page]), all);
    }

    /// Streams are read from disk: whatever they say, they are compared, also after others by the same comparer.
    #[test]
    fn any_bytes_can_be_compared(
        headers in [(0..4_u8, 0..=32_u8, 0..300_u32), (0..4_u8, 0..=32_u8, 0..9000_u32)],
        bytes in vec(any::<u8>(), 150..900),
        offset in 0..60_usize,
        before in two_pages(),
    ) {
        let made = headers.map(|(flags, title, tokens)| {
            let kept = tokens.min(MOST as u32) as u16;
            let bytes = &bytes[offset * usize::from(flags & 1)..];
            [&[flags, title], &tokens.to_le_bytes()[..3], &kept.to_le_bytes(), bytes].concat()
        });
        let [one, other] = made.each_ref().map(|bytes| Stream::new(bytes).unwrap());
        let mut comparer = Comparer::default();
        let found = comparer.compare(&one, &other);
        prop_assert_eq!(comparer.compare(&other, &one), found);
        let shares = [
            found.held_longer,
            found.held_shorter,
            found.swapped_numbers,
            found.missing_facts,
            found.facts_in_hunks,
            found.title_in_hunks,
        ];
        prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{:?}", found);
        let rates = [found.hunks, found.swapped];
        prop_assert!(rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{:?}", found);
        let packed = packed(&before);
        comparer.compare(&Stream::new(&packed[0]).unwrap(), &Stream::new(&packed[1]).unwrap());
        prop_assert_eq!(comparer.compare(&one, &other), found);
    }
}
