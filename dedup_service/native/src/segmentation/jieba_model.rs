//! What jieba's algorithm needs to know: the words with their probabilities, and the hidden Markov model.
//!
//! Both are those of an installed jieba, with a user's words. Reading its files takes most of a second, so what is made of
//! them is kept in a file that starts map; its name stands for the folder of jieba and the user's words, and the file says
//! of which size and time the files of jieba were. Without a folder that can be written it is made in every process: the
//! start is slower, but nothing fails.
//!
//! Source: <https://github.com/fxsjy/jieba>

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::model_file::Words;
use super::trie::{MAX_VALUE, NO_LETTER, Trie, nodes_of};
use crate::characters::PLANE;
use crate::error::{Result, TableError};

/// The frequency that every word of a user's dictionary gets, whatever the line says.
const USER_FREQUENCY: u64 = 100_000;
/// The log probability that jieba gives to what it has never seen.
const IMPOSSIBLE: f64 = -3.14e100;

/// States of a letter: first, last, between the two, or alone in its word. In this order: ties go to the later one.
const STATES: [char; 4] = ['B', 'E', 'M', 'S'];
pub(super) const FIRST: usize = 0;
pub(super) const LAST: usize = 1;
pub(super) const MIDDLE: usize = 2;
pub(super) const ALONE: usize = 3;

const DICTIONARY: &str = "dict.txt";
const START: &str = "finalseg/prob_start.py";
const TRANSITIONS: &str = "finalseg/prob_trans.py";
const EMISSIONS: &str = "finalseg/prob_emit.py";

/// Words of the model that has the sizes of its arrays, and those of numbers beside arrays.
const SIZES: usize = 3;
const NUMBERS: usize = 4 + 16 + 1;
const CODES: usize = PLANE as usize * size_of::<u16>() / size_of::<u64>();

/// The dictionary and the hidden Markov model.
///
/// Invariant: the words are as `made` returns them, which `arrays_in` can read.
pub struct JiebaModel {
    words: Words,
}

/// What a cut reads.
#[derive(Clone, Copy)]
pub struct JiebaArrays<'a> {
    /// By code point of the first plane: 1 and more for letters, those of many words first.
    codes: &'a [u16],
    /// The words. A value is a place in `word_logs`.
    pub(super) trie: Trie<'a>,
    /// Log probabilities of words, -inf for a node at which no word ends.
    word_logs: &'a [f64],
    /// Log probabilities by code and state.
    emissions: &'a [[f64; 4]],
    /// Log probability of each state at the beginning, and from one to the next.
    pub(super) start: [f64; 4],
    pub(super) transitions: [[f64; 4]; 4],
    /// Log probability of a letter that is no word.
    pub(super) unknown: f64,
}

impl JiebaModel {
    /// Open the model of the jieba in a folder, kept in the folder `cache`, with words that are folded as texts are.
    ///
    /// # Errors
    /// Configuration, if jieba is not there, or not as its release 0.42 is; or if a dictionary is too large.
    pub fn open(jieba: &Path, cache: Option<&Path>, user_words: &[String]) -> Result<Self> {
        let mut user_words: Vec<&str> = user_words.iter().map(String::as_str).collect();
        user_words.sort_unstable();
        user_words.dedup();
        let source = stamp_of(jieba, &user_words)?;
        let path = cache.map(|cache| path_in(cache, jieba, &user_words));
        let known = |path: &PathBuf| {
            Words::open(path, source).filter(|words| arrays_in(words).is_some()).map(|words| Self { words })
        };
        if let Some(model) = path.as_ref().and_then(known) {
            return Ok(model);
        }
        let words = Words::of(source, made(jieba, &user_words)?);
        let kept = path.filter(|path| Words::keep(path, &words).is_ok());
        Ok(kept.as_ref().and_then(known).unwrap_or(Self { words: Words::Owned(words) }))
    }

    /// Return what a cut reads.
    pub(super) fn arrays(&self) -> JiebaArrays<'_> {
        arrays_in(&self.words).expect("the words were read before")
    }
}

impl JiebaArrays<'_> {
    /// Return the code of a letter; `NO_LETTER` for anything else.
    #[inline]
    pub(super) fn code(&self, point: u32) -> u16 {
        self.codes.get(point as usize).copied().unwrap_or(NO_LETTER)
    }

    /// Return the log probability of a word by the value of its node.
    #[inline]
    pub(super) fn word_log(&self, value: u16) -> f64 {
        self.word_logs.get(usize::from(value)).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Return the log probabilities of a letter by state.
    #[inline]
    pub(super) fn emissions(&self, code: u16) -> [f64; 4] {
        self.emissions.get(usize::from(code)).copied().unwrap_or([IMPOSSIBLE; 4])
    }
}

/// Return whether jieba takes a code point for a Chinese letter.
#[inline]
pub(super) fn is_han(point: u32) -> bool {
    (0x4E00..=0x9FD5).contains(&point)
}

/// Return whether jieba looks a character up in its dictionary.
fn is_letter(point: u32) -> bool {
    is_han(point) || u8::try_from(point).is_ok_and(|byte| byte.is_ascii_alphanumeric() || b"+#&._%-".contains(&byte))
}

/// Return what stands for a user's words and for the sizes and times of the files of jieba.
fn stamp_of(jieba: &Path, user_words: &[&str]) -> Result<u128> {
    let mut stamp = user_words.join("\n").into_bytes();
    for name in [DICTIONARY, START, TRANSITIONS, EMISSIONS] {
        let path = jieba.join(name);
        let status = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
        for number in [status.size() as i64, status.mtime(), status.mtime_nsec()] {
            stamp.extend(number.to_le_bytes());
        }
    }
    Ok(xxh3_128(&stamp))
}

fn path_in(cache: &Path, jieba: &Path, user_words: &[&str]) -> PathBuf {
    let folder = fs::canonicalize(jieba).unwrap_or_else(|_| jieba.to_owned());
    let name = [folder.as_os_str().as_bytes(), b"\0", user_words.join("\n").as_bytes()].concat();
    cache.join(format!("jieba-{:016x}", xxh3_64(&name)))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> TableError {
    TableError::Configuration(format!("cannot read {} of jieba: {error}; install jieba 0.42 again", path.display()))
}

fn read(jieba: &Path, name: &str) -> Result<String> {
    let path = jieba.join(name);
    fs::read_to_string(&path).map_err(|error: io::Error| unreadable(&path, &error))
}

/// Return the words of a model: sizes, numbers, codes, emissions, logs of words, and nodes.
fn made(jieba: &Path, user_words: &[&str]) -> Result<impl Iterator<Item = u64> + use<>> {
    let dictionary = read(jieba, DICTIONARY)?;
    let malformed = |name: &str, text: &str| unreadable(&jieba.join(name), &text);
    let mut entries: Vec<(&str, u64)> = Vec::with_capacity(dictionary.len() / 14);
    for (number, line) in dictionary.lines().enumerate() {
        entries.push(
            entry(line).ok_or_else(|| malformed(DICTIONARY, &format!("line {} has another format", number + 1)))?,
        );
    }
    entries.extend(user_words.iter().map(|&word| (word, USER_FREQUENCY)));
    let total = entries.iter().fold(0u64, |total, (_, frequency)| total.saturating_add(*frequency));
    entries.sort_by_key(|(word, _)| *word); // stable: the last one of a word counts
    entries.reverse();
    entries.dedup_by_key(|(word, _)| *word);
    entries.reverse();

    let mut different: Vec<u64> =
        entries.iter().map(|(_, frequency)| *frequency).filter(|&frequency| frequency > 0).collect();
    different.sort_unstable();
    different.dedup();
    if different.is_empty() || different.len() > MAX_VALUE {
        let text = format!("a dictionary has 1 to {MAX_VALUE} different frequencies, not {}", different.len());
        return Err(malformed(DICTIONARY, &text));
    }
    let log_total = (total as f64).ln();
    let value_of = |frequency| different.binary_search(&frequency).map_or(0, |place| place as u16 + 1);
    let has_letters = |word: &str| !word.is_empty() && word.chars().all(|letter| is_letter(letter.into()));
    let words: Vec<(&str, u16)> = entries
        .into_iter()
        .filter(|(word, _)| has_letters(word))
        .map(|(word, frequency)| (word, value_of(frequency)))
        .collect();
    let (codes, last_code) = letter_codes(&words);
    let nodes = nodes_of(&words, |letter| codes[letter as usize], last_code).ok_or_else(|| {
        let (all, own) = (words.len(), user_words.len());
        let text = format!("{all} words, {own} of them of user dictionaries, are too many: give fewer words");
        TableError::Configuration(text)
    })?;
    let logs: Vec<f64> = different.iter().map(|&frequency| (frequency as f64).ln() - log_total).collect();

    let states = |name: &str, path: &[char]| {
        let state = |key: &char| STATES.iter().position(|state| state == key);
        path.iter().map(state).collect::<Option<Vec<_>>>().ok_or_else(|| malformed(name, "it names an unknown state"))
    };
    let mut emissions = vec![[IMPOSSIBLE; 4]; usize::from(last_code) + 1];
    let values = |name: &str| match python_floats(&read(jieba, name)?) {
        values if values.is_empty() => Err(malformed(name, "it has no values")),
        values => Ok(values),
    };
    for (path, log) in values(EMISSIONS)? {
        match path[..] {
            [state, letter] if is_han(letter.into()) => {
                emissions[usize::from(codes[letter as usize])][states(EMISSIONS, &[state])?[0]] = log;
            }
            _ => {}
        }
    }
    let (mut start, mut transitions) = ([f64::NAN; 4], [[IMPOSSIBLE; 4]; 4]);
    for (path, log) in values(START)? {
        if let [state] = states(START, &path)?[..] {
            start[state] = log;
        }
    }
    for (path, log) in values(TRANSITIONS)? {
        if let [from, to] = states(TRANSITIONS, &path)?[..] {
            transitions[from][to] = log;
        }
    }
    if start.iter().any(|log| log.is_nan()) {
        return Err(malformed(START, "it lacks a state"));
    }
    let sizes = [emissions.len(), logs.len() + 1, nodes.len()].map(|size| size as u64);
    let numbers = start.into_iter().chain(transitions.into_iter().flatten()).chain([-log_total]);
    let logs = [f64::NEG_INFINITY].into_iter().chain(logs);
    let packed: Vec<u64> =
        codes.chunks_exact(4).map(|four| bytemuck::cast([four[0], four[1], four[2], four[3]])).collect();
    Ok(sizes
        .into_iter()
        .chain(numbers.map(f64::to_bits))
        .chain(packed)
        .chain(emissions.into_iter().flatten().chain(logs).map(f64::to_bits))
        .chain(nodes))
}

/// Return the arrays in the words of a model; None if it is none.
fn arrays_in(words: &[u64]) -> Option<JiebaArrays<'_>> {
    let (sizes, rest) = words.split_first_chunk::<SIZES>()?;
    let [letters, logs, nodes] = sizes.map(|size| size as usize);
    let (numbers, rest) = rest.split_first_chunk::<NUMBERS>()?;
    let (codes, rest) = rest.split_at_checked(CODES)?;
    let (emissions, rest) = rest.split_at_checked(letters.checked_mul(STATES.len())?)?;
    let (word_logs, rest) = rest.split_at_checked(logs)?;
    let number = |at: usize| f64::from_bits(numbers[at]);
    (rest.len() == nodes).then(|| JiebaArrays {
        codes: bytemuck::cast_slice(codes),
        trie: Trie { nodes: rest },
        word_logs: bytemuck::cast_slice(word_logs),
        emissions: bytemuck::cast_slice(emissions),
        start: std::array::from_fn(number),
        transitions: std::array::from_fn(|from| std::array::from_fn(|to| number(4 + 4 * from + to))),
        unknown: number(NUMBERS - 1),
    })
}

/// Return codes of the letters by code point, small ones for those of many words, so that families are close together;
/// and the last one.
fn letter_codes(words: &[(&str, u16)]) -> (Vec<u16>, u16) {
    let mut uses = vec![0u32; PLANE as usize];
    for letter in words.iter().flat_map(|(word, _)| word.chars()) {
        uses[letter as usize] += 1;
    }
    let mut letters: Vec<usize> = (0..uses.len()).filter(|&point| is_letter(point as u32)).collect();
    letters.sort_by_key(|&point| std::cmp::Reverse(uses[point]));
    let mut codes = vec![NO_LETTER; uses.len()];
    for (code, &point) in (1..).zip(&letters) {
        codes[point] = code;
    }
    (codes, letters.len() as u16)
}

/// Return the word of a line of the dictionary, and its frequency.
fn entry(line: &str) -> Option<(&str, u64)> {
    let mut fields = line.split(' ');
    let entry = (fields.next()?, fields.next()?.parse().ok()?);
    (fields.count() == 1).then_some(entry)
}

/// Return the numbers of a module that assigns a dict of dicts to `P`, each with the keys of one character above it.
fn python_floats(source: &str) -> Vec<(Vec<char>, f64)> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    let mut depth = 0usize;
    let mut rest = source.find('{').map_or("", |start| &source[start..]);
    while let Some(character) = rest.chars().next() {
        rest = match character {
            '{' => {
                depth += 1;
                &rest[1..]
            }
            '}' => {
                depth = depth.saturating_sub(1);
                &rest[1..]
            }
            '\'' => {
                let (key, behind) = rest[1..].split_once('\'').unwrap_or((&rest[1..], ""));
                let escaped = key.strip_prefix("\\u").and_then(|digits| u32::from_str_radix(digits, 16).ok());
                path.truncate(depth.saturating_sub(1));
                path.extend(escaped.and_then(char::from_u32).or_else(|| key.chars().next()));
                behind
            }
            '-' | '0'..='9' => {
                let end = rest.find([',', '}', '\n']).unwrap_or(rest.len());
                found.extend(rest[..end].trim().parse().ok().map(|number| (path.clone(), number)));
                &rest[end..]
            }
            other => &rest[other.len_utf8()..],
        };
    }
    found
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // logarithms are to be equal bit for bit
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::model_file::tests::Folder;
    use super::*;

    /// Write a small jieba: words of one to four letters, and a model that prefers words of two.
    pub(in crate::segmentation) fn small_jieba(folder: &Path) {
        fs::create_dir_all(folder.join("finalseg")).unwrap();
        let dictionary = "大桥 50 n\n今天 90 t\n通车 20 v\n大桥今天 1 n\n大 30 a\n天 3 n\nc++ 5 eng\n今天 80 t\n没有 0 v\n一二三四 9 m\n";
        fs::write(folder.join(DICTIONARY), dictionary).unwrap();
        fs::write(folder.join(START), "P={'B': -0.26,\n 'E': -3.14e+100,\n 'M': -3.14e+100,\n 'S': -1.46}\n").unwrap();
        let transitions = "P={'B': {'E': -0.51, 'M': -0.91},\n 'E': {'B': -0.58, 'S': -0.8},\n 'M': {'E': -0.33, 'M': -1.26},\n 'S': {'B': -0.72, 'S': -0.66}}\n";
        fs::write(folder.join(TRANSITIONS), transitions).unwrap();
        let emissions = "from __future__ import unicode_literals\nP={'B': {'\\u5f20': -3.65, 'x': -1}, 'E': {'\\u4e09': -3.0}, 'M': {}, 'S': {}}\n";
        fs::write(folder.join(EMISSIONS), emissions).unwrap();
    }

    /// Return the log probability of a word; None without one.
    fn log_of(model: &JiebaModel, word: &str) -> Option<f64> {
        let arrays = model.arrays();
        let codes: Vec<u16> = word.chars().map(|letter| arrays.code(letter.into())).collect();
        let log = arrays.word_log(arrays.trie.value(&codes));
        log.is_finite().then_some(log)
    }

    #[test]
    fn a_model_has_the_words_and_numbers_of_jieba() {
        let folder = Folder::new("jieba-model");
        small_jieba(&folder.0);
        let model =
            JiebaModel::open(&folder.0, None, &["大桥".into(), "新词".into(), "新词".into(), "é".into()]).unwrap();
        let total: f64 = (50 + 90 + 20 + 1 + 30 + 3 + 5 + 80 + 9 + 300_000).into();
        assert_eq!(log_of(&model, "今天"), Some(80f64.ln() - total.ln()));
        assert_eq!(log_of(&model, "大桥"), Some(100_000f64.ln() - total.ln()));
        assert_eq!(log_of(&model, "新词"), log_of(&model, "大桥"));
        assert_eq!([log_of(&model, "没有"), log_of(&model, "大桥今"), log_of(&model, "é")], [None; 3]);
        let arrays = model.arrays();
        assert_eq!(
            (arrays.unknown, arrays.start[ALONE], arrays.transitions[FIRST][MIDDLE]),
            (-total.ln(), -1.46, -0.91)
        );
        assert_eq!(arrays.emissions(arrays.code('张'.into()))[FIRST], -3.65);
        assert_eq!(arrays.emissions(arrays.code('三'.into())), [IMPOSSIBLE, -3.0, IMPOSSIBLE, IMPOSSIBLE]);
    }

    /// One file for each list of words; a later start maps it, and makes it again once jieba changed or it is damaged.
    #[test]
    fn a_model_is_kept_until_its_source_changes() {
        let folder = Folder::new("jieba-kept");
        small_jieba(&folder.0);
        let cache = folder.0.join("cache");
        let open = |words: &[String]| JiebaModel::open(&folder.0, Some(&cache), words).unwrap();
        let files = || fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let is_mapped = |model: &JiebaModel| matches!(model.words, Words::Mapped(_));
        assert!(is_mapped(&open(&[])));
        let first = files().pop().unwrap();
        let written = fs::metadata(&first).unwrap().ino();
        assert!(is_mapped(&open(&[])));
        assert_eq!(fs::metadata(&first).unwrap().ino(), written);
        assert!(log_of(&open(&["新词".into()]), "新词").is_some());
        assert_eq!(files().len(), 2);

        fs::write(folder.0.join(DICTIONARY), "新 1 n\n").unwrap();
        assert!(log_of(&open(&[]), "新").is_some() && log_of(&open(&[]), "大桥").is_none());
        assert_ne!(fs::metadata(&first).unwrap().ino(), written);
        fs::write(&first, b"damaged").unwrap();
        assert!(log_of(&open(&[]), "新").is_some());
        assert!(fs::metadata(&first).unwrap().len() > 7);
    }

    /// Threads, as processes, may make one file at once; a folder that cannot be written leaves it in memory.
    #[test]
    fn a_model_may_be_made_at_once_or_nowhere() {
        let folder = Folder::new("jieba-at-once");
        small_jieba(&folder.0);
        let cache = folder.0.join("cache");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let model = JiebaModel::open(&folder.0, Some(&cache), &[]).unwrap();
                    assert!(log_of(&model, "大桥").is_some());
                });
            }
        });
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
        let model = JiebaModel::open(&folder.0, Some(&folder.0.join(DICTIONARY)), &[]).unwrap();
        assert!(matches!(model.words, Words::Owned(_)) && log_of(&model, "大桥").is_some());
    }

    #[test]
    fn what_is_wrong_with_jieba_is_named() {
        let folder = Folder::new("jieba-wrong");
        let message = || match JiebaModel::open(&folder.0, None, &[]) {
            Err(TableError::Configuration(message)) => message,
            _ => String::new(),
        };
        assert!(message().contains("dict.txt"));
        for (name, text, part) in [
            (DICTIONARY, "大桥 n\n", "line 1"),
            (DICTIONARY, "大桥 1 n x\n", "line 1"),
            (DICTIONARY, "大桥 0 n\n", "frequencies"),
            (START, "P={'B': 1}", "lacks a state"),
            (START, "P={'Z': 1}", "unknown state"),
            (TRANSITIONS, "P={'B': {'Z': 1}}", "unknown state"),
            (EMISSIONS, "P={'Z': {'张': 1}}", "unknown state"),
        ] {
            small_jieba(&folder.0);
            fs::write(folder.0.join(name), text).unwrap();
            let message = message();
            assert!(message.contains(name) && message.contains(part), "{message}");
        }
    }

    proptest! {
        /// No text of a module, and no words of a file, stop the process.
        #[test]
        fn nonsense_is_read(text in "[{}'\\\\u4e0,:P=\\-.e é]{0,60}", words in prop::collection::vec(0..9u64, 0..40)) {
            python_floats(&text);
            prop_assert!(arrays_in(&words).is_none());
        }
    }
}
