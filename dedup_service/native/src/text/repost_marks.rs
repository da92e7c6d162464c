//! What people and portals write around a text that they repost.
//!
//! At the beginning: `转发:`, `RT @name:`, `//@name:`, `(转载)`, `【快讯】` and the like, also several in a row. At the end:
//! emoticons in brackets, `[赞][doge]`. In a short text these are a quarter of the letters, and two posts of one sentence
//! would not be the same. Inside a text nothing is removed: `[广州]` before a headline is a place.

use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;

use crate::characters::{Script, characters};

/// With what a marker at the beginning begins, but for white space, and with what emoticons at the end end.
const STARTS: [char; 9] = ['(', '[', '【', '/', '回', 'v', '转', 'r', '@'];
const LAST: char = ']';
/// Characters at the end of a text among which emoticons are searched.
const EMOTICON_CHARS: usize = 200;

static MARK: LazyLock<Regex> = LazyLock::new(|| {
    let labels = "转发|转载|转帖|转自|转|转发微博|快讯|最新|最新消息|头条|推荐|热点|分享|repost|rt";
    let name = r"@[^:\n@]{1,30}";
    let marks = [
        format!(r"[(\[【]\s*(?:{labels})\s*[)\]】]:?"), // (转), [转], 【快讯】
        format!(r"(?://|回复|via|转自|转发自?|rt)\s*{name}:"), // //@name:, rt @name:
        format!("{name}:"),
        r"(?:转发微博|转发|转载|转帖|转自|repost|rt)(?::|\s+)".to_owned(),
        "转:".to_owned(),
    ];
    constant(&format!(r"^\s*(?:{})\s*", marks.join("|")))
});
static EMOTICONS: LazyLock<Regex> = LazyLock::new(|| constant(r"(?:\[(?:[一-\x{9fff}]{1,6}|[a-z]{3,6})\]\s*)+$"));

fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// Return where a folded text is without repost markers; all of a text of nothing but markers.
pub fn between_repost_marks(points: &[u32]) -> Range<usize> {
    let whole = 0..points.len();
    if !may_have_marks(points) {
        return whole;
    }
    let text: String = points.iter().map(|&code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    let mut start = 0;
    while let Some(mark) = MARK.find(&text[start..]) {
        start += mark.end();
    }
    let mut end = text.len();
    // Emoticons are Chinese; in other texts the last word may be in brackets.
    if text.ends_with(LAST) && points.iter().any(|&code| characters().script(code) == Script::Han) {
        let tail = text.char_indices().rev().nth(EMOTICON_CHARS - 1).map_or(0, |(at, _)| at);
        let from = start.max(tail);
        end = EMOTICONS.find(&text[from..]).map_or(end, |emoticons| from + emoticons.start());
    }
    if start < end { text[..start].chars().count()..text[..end].chars().count() } else { whole }
}

fn may_have_marks(points: &[u32]) -> bool {
    let is_start = |first| first <= u32::from(' ') || STARTS.into_iter().any(|start| first == u32::from(start));
    points.first().copied().is_some_and(is_start) || points.last() == Some(&u32::from(LAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_cut_off_at_both_ends() {
        for (text, bare) in [
            ("转发微博: rt @晨读笔记: 大桥今天通车[赞][赞]", "大桥今天通车"),
            ("//@甲:【快讯】 回复 @乙:好 [doge]", "好 "),
            ("@甲:", "@甲:"),
            ("(转)[赞]", "(转)[赞]"),
            ("[广州]大桥", "[广州]大桥"),
            ("好]", "好]"),
            ("the river [rises]", "the river [rises]"),
            ("", ""),
        ] {
            let points: Vec<u32> = text.chars().map(u32::from).collect();
            let between = &points[between_repost_marks(&points)];
            assert_eq!(between.iter().filter_map(|&code| char::from_u32(code)).collect::<String>(), bare);
        }
    }
}
