//! Whether a text is Chinese, by the letters of each script and the language that its page states.
//!
//! A text is Chinese if at least a twentieth of its letters are Han, and if no other script than Latin has more letters or
//! the page states that it is Chinese: an English page that names a person in Chinese is not Chinese, a Chinese page full
//! of product names is. A text is Japanese if it has at least one kana for five Han, or if the page states that it is: a
//! Japanese headline may have no kana.

use crate::characters::characters;

/// Japanese text has at least one kana for five Han; Chinese text with a Japanese brand name has fewer.
const HAN_FOR_A_KANA: usize = 5;
/// Two of 16,719 crawled pages with any Han have more letters for each: Russian, with a Chinese name.
const LETTERS_FOR_A_HAN: usize = 20;

/// The language that a page states, as far as it decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// None, or any that does not decide.
    #[default]
    Other,
    /// Japanese.
    Japanese,
    /// Chinese.
    Chinese,
}

impl Language {
    /// Return the language of a BCP 47 tag.
    pub fn of_tag(tag: Option<&str>) -> Self {
        match tag.and_then(|tag| tag.get(..2)).map(str::to_ascii_lowercase).as_deref() {
            Some("ja") => Self::Japanese,
            Some("zh") => Self::Chinese,
            _ => Self::Other,
        }
    }
}

/// Return whether the Chinese segmenter cuts a folded text.
pub fn is_chinese(points: &[u32], stated: Language) -> bool {
    let characters = characters();
    let mut counts = [0; 5];
    for &code in points {
        counts[characters.script(code) as usize] += 1;
    }
    let [_, latin, han, kana, other] = counts;
    if han == 0 || stated == Language::Japanese || (kana > 0 && HAN_FOR_A_KANA * kana >= han) {
        return false;
    }
    (han >= other || stated == Language::Chinese) && LETTERS_FOR_A_HAN * han >= latin + han + kana + other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_chinese_text(text: &str, tag: Option<&str>) -> bool {
        is_chinese(&text.chars().map(u32::from).collect::<Vec<_>>(), Language::of_tag(tag))
    }

    #[test]
    fn scripts_and_the_stated_language_decide() {
        assert!(is_chinese_text("大桥今天通车 iphone", None));
        assert!(!is_chinese_text("the bridge of 大 was opened today by the mayor", None));
        assert!(!is_chinese_text("東京でラーメン", None) && !is_chinese_text("東京", Some("JA-jp")));
        assert!(!is_chinese_text("мост 大", None) && is_chinese_text("мост 大", Some("zh")));
        assert!(!is_chinese_text("", Some("zh")) && !is_chinese_text("漢字", Some("ja")));
        assert_eq!(Language::of_tag(Some("é")), Language::Other);
    }
}
