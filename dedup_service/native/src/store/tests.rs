//! Stores against plain maps, and under everything that a machine may do to them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::mapped_file::faults;
use super::*;

/// A page: fields, path, evidence.
type Page = (Row, Vec<u8>, Vec<u8>);

/// What live rows should be.
type Rows = BTreeMap<u32, Page>;

/// A folder that is deleted with the value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn copy(&self) -> Self {
        let copy = Self::new();
        fs::create_dir_all(&copy.0).unwrap();
        for entry in fs::read_dir(&self.0).unwrap().flatten() {
            let _ = fs::copy(entry.path(), copy.0.join(entry.file_name())); // it may go meanwhile
        }
        copy
    }

    fn store(&self) -> Store {
        Store::open(&self.0, &label(), OpenMode::Write).unwrap()
    }

    fn reader(&self) -> Result<Store> {
        Store::open(&self.0, &label(), OpenMode::Read)
    }

    /// Return whether some bytes are in a file, and in which.
    fn has(&self, bytes: &[u8]) -> Option<PathBuf> {
        let mut paths = fs::read_dir(&self.0).unwrap().flatten().map(|entry| entry.path());
        paths.find(|path| fs::read(path).unwrap().windows(bytes.len()).any(|window| window == bytes))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn label() -> Label {
    Label { log: "log".into(), space: "space".into() }
}

/// A page whose bytes are nowhere else: all of them are of its sequence.
fn page(sequence: i64, size: usize) -> Page {
    let value = crate::memory::mix64(sequence as u64 + 1);
    let bytes = |from: u64| (from..).flat_map(move |word| crate::memory::mix64(value ^ word).to_le_bytes());
    let row = Row {
        sequence,
        words: value,
        url_hash: !value,
        ordinal: sequence as u64,
        sieve: [value ^ 1, value ^ 2],
        host: value as u32,
        flags: value as u8,
        ..Row::default()
    };
    (row, bytes(1 << 32).take((size / 3).min(100)).collect(), bytes(0).take(size).collect())
}

fn append(store: &mut Store, pages: &[Page]) -> Result<u32> {
    let entries: Vec<_> = pages.iter().map(|(row, path, evidence)| Entry { row: *row, path, evidence }).collect();
    store.append(&entries)
}

fn append_many(store: &mut Store, count: usize, size: usize) -> Rows {
    let first = i64::from(store.next_row());
    let pages: Vec<_> = (first..).take(count).map(|sequence| page(sequence, size)).collect();
    (append(store, &pages).unwrap()..).zip(pages).collect()
}

fn commit(store: &mut Store, sequence: i64) {
    store.begin_commit(sequence, "tail", vec![1]).unwrap().finish(b"extra").unwrap();
}

fn read(store: &Store, row: u32) -> Result<Page> {
    let mut buffer = Vec::new();
    let evidence = store.evidence(row, &mut buffer)?.to_vec();
    let (fields, path) = store.row(row, &mut buffer)?;
    Ok((fields, path.to_vec(), evidence))
}

fn read_all(store: &Store) -> Result<Rows> {
    store.live_rows(0).map(|row| Ok((row, read(store, row)?))).collect()
}

/// Read the live rows that are there still.
fn read_left(store: &Store) -> Rows {
    let is_there = |found: &(u32, Result<Page>)| found.1 != Err(StoreError::Gone(found.0));
    let rows = store.live_rows(0).map(|row| (row, read(store, row))).filter(is_there);
    rows.map(|(row, found)| (row, found.unwrap())).collect()
}

fn assert_is(store: &Store, rows: &Rows) {
    assert_eq!(&read_all(store).unwrap(), rows);
    assert_eq!(store.len(), rows.len() as u64);
    for (row, (fields, ..)) in rows {
        assert_eq!(store.find(fields.sequence).unwrap(), Some(*row));
    }
    store.verify().unwrap();
}

#[derive(Clone, Debug)]
enum Change {
    Append(Vec<usize>),
    Remove(Vec<prop::sample::Index>),
    Erase(Vec<prop::sample::Index>),
    Begin,
    Finish,
    Compact,
    /// Hold what is live now, or what the last commit has.
    Hold(bool),
    Release,
    /// The process ends; what no commit has is cut at a random place, and garbage comes behind it.
    Crash(u64),
}

fn change() -> impl Strategy<Value = Change> {
    let some = || prop::collection::vec(any::<prop::sample::Index>(), 1..6);
    prop_oneof![
        6 => prop::collection::vec(prop_oneof![0..300usize, Just(9000)], 0..30).prop_map(Change::Append),
        4 => some().prop_map(Change::Remove),
        2 => some().prop_map(Change::Erase),
        3 => Just(Change::Begin),
        3 => Just(Change::Finish),
        1 => Just(Change::Compact),
        1 => any::<bool>().prop_map(Change::Hold),
        1 => Just(Change::Release),
        2 => any::<u64>().prop_map(Change::Crash),
    ]
}

fn chosen(rows: &Rows, places: &[prop::sample::Index]) -> Vec<u32> {
    let rows: Vec<u32> = rows.keys().copied().collect();
    let mut some: Vec<u32> =
        if rows.is_empty() { vec![] } else { places.iter().map(|place| *place.get(&rows)).collect() };
    some.sort_unstable();
    some.dedup();
    some
}

fn damage_tails(folder: &Path, seed: u64) {
    let manifest = read_manifest(folder).unwrap().unwrap();
    let rows = u64::from(manifest.next_row - manifest.first_row);
    for (path, len) in Files::paths(folder).iter().zip([manifest.rows_bytes, 16 * rows, manifest.evidence_bytes]) {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        let keeps = len + seed % (file.metadata().unwrap().len() - len + 1);
        file.set_len(keeps).unwrap();
        file.write_all_at(&[0xA5; 100], keeps).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    /// After any changes and crashes the store has what a map has, and no byte of what left it.
    #[test]
    fn equals_a_map(changes in prop::collection::vec(change(), 1..50), without_holes: bool) {
        faults::WITHOUT_HOLES.set(without_holes);
        let folder = Folder::new();
        let mut store = Store::create(&folder.0, &label()).unwrap();
        let (mut now, mut committed, mut begun) = (Rows::new(), Rows::new(), None::<(PendingCommit, i64, Rows)>);
        let (mut sequence, mut commits) = (0i64, 0i64);
        let (mut held, mut lost) = (None::<(Store, bool, Rows)>, Vec::new());
        for change in changes {
            match change {
                Change::Append(sizes) => {
                    let first = i64::from(store.next_row());
                    let pages: Vec<_> = (first..).zip(sizes).map(|(number, size)| page(10 * number, size)).collect();
                    now.extend((append(&mut store, &pages).unwrap()..).zip(pages));
                }
                Change::Remove(places) => {
                    let rows = chosen(&now, &places);
                    store.remove(&rows).unwrap();
                    now.retain(|row, _| !rows.contains(row));
                }
                Change::Erase(places) => {
                    let rows = chosen(&committed.clone().into_iter().chain(now.clone()).collect(), &places);
                    store.erase(&rows).unwrap();
                    for row in rows {
                        let found = [now.remove(&row), committed.remove(&row)];
                        if let Some((_, _, rows)) = &mut begun { rows.remove(&row); }
                        if let Some((_, _, rows)) = &mut held { rows.remove(&row); }
                        for (fields, path, evidence) in found.into_iter().flatten() {
                            prop_assert_eq!(store.find_kept(fields.sequence).unwrap(), None);
                            prop_assert_eq!(folder.has(&fields.words.to_le_bytes()), None);
                            if path.len() > 8 { prop_assert_eq!(folder.has(&path[..8]), None); }
                            if evidence.len() > 8 { prop_assert_eq!(folder.has(&evidence[..8]), None); }
                        }
                    }
                }
                Change::Begin => {
                    sequence += 1;
                    begun = Some((store.begin_commit(sequence, "", vec![]).unwrap(), sequence, now.clone()));
                }
                Change::Finish => if let Some((pending, at, rows)) = begun.take() {
                    pending.finish(&at.to_le_bytes()).unwrap();
                    lost.extend(committed.iter().filter(|(row, _)| !rows.contains_key(row)).map(|(_, page)| page.0.words));
                    if held.is_none() {
                        prop_assert!(lost.drain(..).all(|words| folder.has(&words.to_le_bytes()).is_none()));
                    }
                    (committed, commits) = (rows, at);
                },
                Change::Compact => { store.compact().unwrap(); }
                Change::Hold(is_of_now) => {
                    let mode = OpenMode::Hold;
                    let reader = if is_of_now { store.view() } else { Store::open(&folder.0, &label(), mode) };
                    held = Some((reader.unwrap(), is_of_now, if is_of_now { now.clone() } else { committed.clone() }));
                }
                Change::Release => held = None,
                Change::Crash(seed) => {
                    begun = None;
                    held = held.filter(|(_, is_of_now, _)| !is_of_now);
                    drop(store);
                    damage_tails(&folder.0, seed);
                    prop_assert_eq!(read_all(&folder.reader().unwrap()).unwrap(), committed.clone());
                    store = folder.store();
                    prop_assert_eq!(store.take_extra(), if commits == 0 { vec![] } else { commits.to_le_bytes().to_vec() });
                    now = committed.clone();
                }
            }
            assert_is(&store, &now);
            if let Some((reader, _, rows)) = &held {
                prop_assert_eq!(&read_left(reader), rows);
            }
        }
        faults::WITHOUT_HOLES.set(false);
    }

    /// Bytes of strangers in the place of a manifest or of an erasure are an error.
    #[test]
    fn refuses_bytes_of_strangers(bytes in prop::collection::vec(any::<u8>(), 0..400), name in "manifest|erased", at in 0..400usize) {
        let folder = Folder::new();
        drop(Store::create(&folder.0, &label()).unwrap());
        let path = folder.0.join(&name);
        fs::write(&path, &bytes).unwrap();
        prop_assert!(matches!(folder.reader(), Err(StoreError::Damaged(_))));
        if name == "manifest" {
            fs::remove_file(&path).unwrap();
            write_commit(&folder.0, &Manifest { sequence: 0, ..manifest() }, &RowSet::default(), &[], &[]).unwrap();
            let mut good = fs::read(&path).unwrap();
            let end = good.len().min(at + bytes.len());
            if at < end { good[at..end].copy_from_slice(&bytes[..end - at]); }
            fs::write(&path, good).unwrap();
            let _ = folder.reader();
        }
    }
}

fn manifest() -> Manifest {
    Manifest {
        label: label(),
        identity: 7,
        base: 0,
        first_row: 0,
        next_row: 0,
        live_rows: 0,
        rows_bytes: 0,
        evidence_bytes: 0,
        sequence: 0,
        last_sequence: 0,
        tail: String::new(),
        note: vec![],
        number: 1,
    }
}

/// Make a store with a commit and rows behind it.
fn small_store() -> (Folder, Rows) {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let mut rows = append_many(&mut store, 12, 30);
    store.remove(&[3]).unwrap();
    rows.remove(&3);
    commit(&mut store, 5);
    append_many(&mut store, 5, 30);
    (folder, rows)
}

/// Whatever a crash leaves behind the committed lengths, byte by byte, opening gives the last commit.
#[test]
fn a_torn_tail_is_cut_off() {
    let (folder, rows) = small_store();
    let manifest = read_manifest(&folder.0).unwrap().unwrap();
    let lens = [manifest.rows_bytes, 16 * 12, manifest.evidence_bytes];
    for (place, committed) in lens.into_iter().enumerate() {
        let path = &Files::paths(&folder.0)[place];
        for len in committed..=path.metadata().unwrap().len() {
            let copy = folder.copy();
            let torn = fs::OpenOptions::new().write(true).open(&Files::paths(&copy.0)[place]).unwrap();
            torn.set_len(len).unwrap();
            let mut store = copy.store();
            assert_is(&store, &rows);
            let more = append_many(&mut store, 1, 10);
            commit(&mut store, 6);
            assert_is(&copy.store(), &rows.clone().into_iter().chain(more).collect());
        }
    }
}

/// A file that is shorter than its manifest says, or missing, is named.
#[test]
fn a_short_or_missing_file_is_named() {
    let (folder, _) = small_store();
    let manifest = manifest_path(&folder.0);
    for path in Files::paths(&folder.0).into_iter().chain([manifest]) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let committed = if name == "manifest" { path.metadata().unwrap().len() } else { 12 * 16 };
        for len in (0..committed).map(Some).chain([None]) {
            let copy = folder.copy();
            let damaged = copy.0.join(name);
            match len {
                Some(len) => fs::OpenOptions::new().write(true).open(&damaged).unwrap().set_len(len).unwrap(),
                None => fs::remove_file(&damaged).unwrap(),
            }
            for mode in [OpenMode::Read, OpenMode::Write] {
                let error = Store::open(&copy.0, &label(), mode).unwrap_err();
                let text = error.to_string();
                assert!(matches!(error, StoreError::Damaged(_)) && text.contains(name), "{len:?}: {text}");
            }
        }
    }
}

/// A flipped byte of what a commit counts is never read as something else: it is found, or it is of a dead row.
#[test]
fn a_flipped_byte_is_found() {
    let (folder, rows) = small_store();
    drop(folder.store());
    let mut found = 0;
    for path in Files::paths(&folder.0).into_iter().chain([manifest_path(&folder.0)]) {
        let content = fs::read(&path).unwrap();
        for at in 0..content.len() {
            let mut flipped = content.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            match folder.reader().and_then(|store| read_all(&store)) {
                Ok(read) => assert_eq!(read, rows, "{path:?} at {at}"),
                Err(StoreError::Damaged(_) | StoreError::Foreign(_)) => found += 1,
                Err(error) => panic!("{path:?} at {at}: {error}"),
            }
        }
        fs::write(&path, &content).unwrap();
    }
    let dead = 84 + 10 + 34 + 16; // the places of row 3 count for the end of row 2
    let total: usize = Files::paths(&folder.0).iter().map(|path| fs::read(path).unwrap().len()).sum();
    let manifest = fs::read(manifest_path(&folder.0)).unwrap().len();
    assert!(found >= total + manifest - dead, "{found} of {total}");
}

/// Looks at a folder before each system call: as a process that ends leaves it, and as a machine that stops may.
struct Crashes {
    folder: Rc<Folder>,
    /// What of each file is on the disk for sure.
    durable: BTreeMap<PathBuf, Vec<u8>>,
    last: Option<(&'static str, PathBuf)>,
    copies: Vec<Folder>,
}

impl Crashes {
    fn look(&mut self, call: &'static str, path: &Path) {
        match self.last.replace((call, path.to_owned())) {
            Some(("sync", path)) => drop(self.durable.insert(path.clone(), fs::read(&path).unwrap())),
            Some(("sync folder", _)) => {
                for name in ["manifest", "erased"] {
                    let path = self.folder.0.join(name);
                    match fs::read(&path) {
                        Ok(content) => drop(self.durable.insert(path, content)),
                        Err(_) => drop(self.durable.remove(&path)),
                    }
                }
            }
            _ => {}
        }
        let (ended, content_lost, names_lost) = (self.folder.copy(), self.folder.copy(), self.folder.copy());
        for (path, content) in &self.durable {
            let name = path.file_name().unwrap();
            let is_named = ["manifest", "erased"].map(std::ffi::OsStr::new).contains(&name);
            fs::write((if is_named { &names_lost } else { &content_lost }).0.join(name), content).unwrap();
        }
        self.copies.extend([ended, content_lost, names_lost]);
    }
}

/// A crash between any two system calls leaves a commit, and nothing of what it had dead or what was erased before.
#[test]
fn a_crash_between_two_calls_leaves_a_commit() {
    let folder = Rc::new(Folder::new());
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let crashes = Rc::new(RefCell::new(Crashes {
        folder: Rc::clone(&folder),
        durable: BTreeMap::new(),
        last: None,
        copies: vec![],
    }));
    for path in Files::paths(&folder.0).into_iter().chain([manifest_path(&folder.0)]) {
        let content = fs::read(&path).unwrap();
        crashes.borrow_mut().durable.insert(path, content);
    }
    let (mut rows, mut committed, mut looks) = (append_many(&mut store, 60, 400), Rows::new(), 0);
    // Whatever is found after a crash in `run` is one of `allowed`.
    let mut crashing = |allowed: &[&Rows], run: &mut dyn FnMut()| {
        let looking = Rc::clone(&crashes);
        faults::looking(move |call, path| looking.borrow_mut().look(call, path), run);
        for copy in std::mem::take(&mut crashes.borrow_mut().copies) {
            looks += 1;
            let found = read_all(&copy.reader().unwrap());
            let store = copy.store();
            let opened = read_all(&store).unwrap();
            assert!(allowed.contains(&&opened), "{} rows", opened.len());
            assert!(found == Ok(opened) || found == Err(StoreError::Gone(0)) && allowed.len() > 1, "{found:?}");
            for (fields, _, evidence) in allowed.iter().flat_map(|rows| rows.values()) {
                if store.find_kept(fields.sequence).unwrap().is_none() {
                    assert_eq!(copy.has(&fields.words.to_le_bytes()), None);
                    assert_eq!(copy.has(&evidence[..8]), None);
                }
            }
        }
    };
    for round in 0..4 {
        crashing(&[&committed, &rows], &mut || commit(&mut store, round.into()));
        committed = rows.clone();
        crashing(&[&committed], &mut || rows.extend(append_many(&mut store, 20, 300)));
        let dead: Vec<u32> = rows.keys().copied().filter(|row| row % 7 == round).collect();
        store.remove(&dead).unwrap();
        rows.retain(|row, _| !dead.contains(row));
        let erased: Vec<u32> = rows.keys().copied().filter(|row| row % 11 == round).collect();
        let mut after = committed.clone();
        after.retain(|row, _| !erased.contains(row));
        crashing(&[&committed, &after], &mut || store.erase(&erased).unwrap());
        rows.retain(|row, _| !erased.contains(row));
        committed = after;
    }
    assert!(looks > 200, "{looks}");
}

/// What a child process does until it is killed, in the folder that the environment names.
#[test]
fn child_of_the_kill_test() {
    let Ok(folder) = std::env::var("STORE_KILLED") else { return };
    let folder = Folder(folder.into());
    let mut store = folder.store();
    let mut pending: Option<std::thread::JoinHandle<Result<()>>> = None;
    loop {
        append_many(&mut store, 64, 200);
        let rows = store.next_row();
        let dead: Vec<u32> = store.live_rows(0).take_while(|row| row + 2000 < rows).collect();
        store.remove(&dead).unwrap();
        let erased: Vec<u32> = store.live_rows(rows - 64).filter(|row| row % 50 == 0).collect();
        store.erase(&erased).unwrap();
        if let Some(running) = pending.take() {
            running.join().unwrap().unwrap();
        }
        let commit = store.begin_commit(i64::from(rows), "", vec![]).unwrap();
        pending = Some(std::thread::spawn(move || commit.finish(&rows.to_le_bytes())));
    }
}

/// A process that is killed at any moment leaves a commit with all of its rows, and nothing of others.
#[test]
fn a_killed_process_leaves_a_commit() {
    let folder = Folder::new();
    drop(Store::create(&folder.0, &label()).unwrap());
    let mut before = 0;
    for time in 0..12 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::child_of_the_kill_test"])
            .env("STORE_KILLED", &folder.0)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(60 + 37 * time % 200));
        child.kill().unwrap();
        child.wait().unwrap();
        damage_tails(&folder.0, crate::memory::mix64(time));
        let mut store = folder.store();
        let rows = store.next_row();
        assert!(rows >= before && (rows == 0 || store.take_extra() == rows.to_le_bytes()));
        let expected = |row: &u32| row + 2000 >= rows && row % 50 != 0;
        let expected: Rows = (0..rows).filter(expected).map(|row| (row, page(row.into(), 200))).collect();
        assert_is(&store, &expected);
        let content = fs::read(folder.0.join("evidence")).unwrap();
        let (zeros, _) = content.split_at(204 * rows.saturating_sub(2000) as usize);
        assert!(zeros.iter().all(|byte| *byte == 0), "rows that expired have bytes");
        before = rows;
    }
    assert!(before > 0);
}

/// A reader that opens a store at any moment has a commit of it, without the rows that the owner takes away meanwhile.
#[test]
fn a_reader_needs_no_lock() {
    assert_readable(OpenMode::Read);
}

/// One that holds it has all rows of a commit.
#[test]
fn a_reader_may_hold_a_store() {
    assert_readable(OpenMode::Hold);
}

fn assert_readable(mode: OpenMode) {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let write = move || {
        for _ in 0..60 {
            append_many(&mut store, 50, 500);
            let rows = store.next_row();
            let some: Vec<u32> = store.live_rows(0).filter(|row| row + 300 < rows || row % 9 == 0).collect();
            let (erased, dead) = some.split_at(if mode == OpenMode::Hold { 0 } else { some.len() / 8 });
            store.remove(dead).unwrap();
            store.erase(erased).unwrap();
            commit(&mut store, i64::from(rows));
        }
    };
    let (writer, mut buffer, mut is_over) = (std::thread::spawn(write), Vec::new(), false);
    while !is_over {
        is_over = writer.is_finished();
        let store = Store::open(&folder.0, &label(), mode).unwrap();
        assert_eq!(i64::from(store.next_row()), store.committed().sequence.max(0));
        for row in store.live_rows(0) {
            let (fields, path, evidence) = page(row.into(), 500);
            match store.row(row, &mut buffer) {
                Ok(found) => assert_eq!(found, (fields, path.as_slice())),
                error => assert_eq!((error, mode), (Err(StoreError::Gone(row)), OpenMode::Read)),
            }
            match store.evidence(row, &mut buffer) {
                Ok(found) => assert_eq!(found, evidence),
                error => assert_eq!((error, mode), (Err(StoreError::Gone(row)), OpenMode::Read)),
            }
        }
    }
    writer.join().unwrap();
}

/// Rows that the owner has lost are absent for whoever reads; zeros that it calls live are damage.
#[test]
fn zeros_of_live_rows_are_damage() {
    let (first, second) = (Folder::new(), Folder::new());
    let mut base = Store::create(&first.0, &label()).unwrap();
    append_many(&mut base, 40, 50);
    commit(&mut base, 1);
    let child = Store::create_on(&second.0, &label(), first.reader().unwrap()).unwrap();
    let reader = first.reader().unwrap();
    let gone = |row| Err(StoreError::Gone(row));
    let fields = |store: &Store, row| store.row(row, &mut vec![]).map(|(found, _)| found);
    base.erase(&[3]).unwrap();
    assert_eq!((fields(&child, 3), fields(&reader, 3)), (gone(3), gone(3)));
    base.remove(&[4]).unwrap();
    assert!(fields(&child, 4).is_ok() && fields(&reader, 4).is_ok());
    commit(&mut base, 2);
    assert_eq!((fields(&child, 4), fields(&reader, 4), fields(&child, 3)), (gone(4), gone(4), gone(3)));
    assert_eq!(child.evidence(4, &mut vec![]), Err(StoreError::Gone(4)));
    base.files.erase(5..6).unwrap();
    let errors = [fields(&child, 5), fields(&reader, 5), fields(&base, 5), fields(&first.reader().unwrap(), 5)];
    assert!(errors.iter().all(|error| matches!(error, Err(StoreError::Damaged(_)))), "{errors:?}");
    assert!(matches!(child.evidence(5, &mut vec![]), Err(StoreError::Damaged(_))));
    assert!(fields(&child, 6).is_ok());
    assert_eq!(fields(&child, 3), gone(3));
}

/// What someone holds stays while the store is closed and opened again, and its space is given back in the end.
#[test]
fn a_hold_outlives_the_owner() {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let rows = append_many(&mut store, 9, 30);
    commit(&mut store, 1);
    let reader = Store::open(&folder.0, &label(), OpenMode::Hold).unwrap();
    store.remove(&[1, 2]).unwrap();
    commit(&mut store, 2);
    drop(store);
    let mut store = folder.store();
    assert_eq!((store.find_kept(1), store.find(1)), (Ok(Some(1)), Ok(None)));
    commit(&mut store, 3);
    assert_is(&reader, &rows);
    drop(reader);
    commit(&mut store, 4);
    assert_eq!(folder.has(&rows[&1].0.words.to_le_bytes()), None);
    assert_eq!(store.find_kept(1), Ok(None));
}

/// A state goes on where its base ended; what the base takes down later disappears in a process that runs.
#[test]
fn a_store_goes_on_from_its_base() {
    let (first, second, third) = (Folder::new(), Folder::new(), Folder::new());
    let mut base = Store::create(&first.0, &label()).unwrap();
    let mut rows = append_many(&mut base, 40, 50);
    commit(&mut base, 1);
    let mut store = Store::create_on(&second.0, &label(), first.reader().unwrap()).unwrap();
    assert_is(&store, &rows);
    rows.extend(append_many(&mut store, 10, 60));
    store.remove(&[2, 41]).unwrap();
    assert!(matches!(store.erase(&[5]), Err(StoreError::State(_))));
    rows.retain(|row, _| ![2, 41].contains(row));
    commit(&mut store, 2);
    assert_is(&store, &rows);
    append_many(&mut base, 5, 50);
    commit(&mut base, 3);
    base.erase(&[7, 8]).unwrap();
    let (mut one, mut other) = (Vec::new(), Vec::new());
    assert_eq!(store.row(7, &mut one), Err(StoreError::Gone(7)));
    assert_eq!(store.evidence(8, &mut other), Err(StoreError::Gone(8)));
    assert_eq!(store.find(9).unwrap(), Some(9));
    drop(store);
    rows.retain(|row, _| ![7, 8].contains(row));
    let opened = || second.reader().unwrap().on(first.reader().unwrap()).unwrap();
    assert_is(&opened(), &rows);
    let mut last = Store::create_on(&third.0, &label(), opened()).unwrap();
    rows.extend(append_many(&mut last, 3, 10));
    assert_is(&last, &rows);
    assert_eq!((last.first_own_row(), last.next_row()), (50, 53));
    assert!(matches!(second.reader().unwrap().row(0, &mut vec![]), Err(StoreError::State(_))));
    assert!(matches!(second.reader().unwrap().on(third.reader().unwrap()), Err(StoreError::Foreign(_))));
    let fourth = Folder::new();
    assert!(matches!(Store::create_on(&fourth.0, &label(), base), Err(StoreError::State(_))));
    assert!(!fourth.0.exists());
    assert!(matches!(second.reader().unwrap().on(first.store()), Err(StoreError::State(_))));
}

/// The disk gets the space of dead rows, of single ones as soon as a block has no other.
#[test]
fn dead_rows_give_their_space_back() {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    append_many(&mut store, 4000, 400);
    commit(&mut store, 1);
    let full = store.info();
    for place in 0..8 {
        store.remove(&store.live_rows(0).filter(|row| row % 8 == place && *row < 3900).collect::<Vec<_>>()).unwrap();
        commit(&mut store, 2);
    }
    commit(&mut store, 3); // it names no ranges, which opening a copy would make zeros
    let thin = store.info();
    let of = |info: &StoreInfo| (info.rows_bytes + info.evidence_bytes) as f64;
    assert!(of(&thin) < 0.06 * of(&full), "{} of {}", of(&thin), of(&full));
    assert!(thin.memory_bytes < 2000 && thin.live_rows == 100);
    let copy = folder.copy();
    for path in Files::paths(&copy.0) {
        fs::write(&path, fs::read(&path).unwrap()).unwrap(); // a copy that has zeros in place of holes
    }
    let mut store = copy.store();
    assert!(of(&store.info()) > 0.9 * of(&full) && store.compact().unwrap() > 0);
    assert!(of(&store.info()) < 0.06 * of(&full));
    assert_eq!(store.len(), 100);
    store.verify().unwrap();
}

/// Growing beyond all row numbers is an error, and nothing is lost.
#[test]
fn row_numbers_end() {
    let folder = Folder::new();
    let mut store = Store::create_at(&folder.0, &label(), u32::MAX - 3, None).unwrap();
    let mut rows = append_many(&mut store, 2, 10);
    let pages = [page(i64::MAX - 1, 1), page(i64::MAX, 1)];
    assert!(matches!(append(&mut store, &pages), Err(StoreError::NumbersUsed(_))));
    rows.insert(append(&mut store, &pages[1..]).unwrap(), pages[1].clone());
    assert!(matches!(append(&mut store, &[page(i64::MAX, 1)]), Err(StoreError::State(_))));
    assert_eq!(store.next_row(), u32::MAX);
    commit(&mut store, 1);
    let store = folder.store();
    assert_is(&store, &rows);
    store.will_need(&[0, u32::MAX - 2, u32::MAX]);
    store.prefetch(&[0, u32::MAX - 2, u32::MAX]);
    store.will_need_all(0..u32::MAX, true);
    assert_eq!(store.row(u32::MAX, &mut vec![]), Err(StoreError::Gone(u32::MAX)));
}

/// A disk that does not take an append loses nothing, and after one that does not take a commit the store is opened again.
#[test]
fn a_full_disk_loses_nothing() {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let mut rows = append_many(&mut store, 10, 100);
    commit(&mut store, 1);
    let good = store.files.clone();
    for place in 0..3 {
        let path = &Files::paths(&folder.0)[place];
        let refuses = MappedFile::open(path.clone(), path.metadata().unwrap().len(), false).unwrap();
        *[&mut store.files.rows, &mut store.files.places, &mut store.files.evidence][place] = refuses;
        assert!(matches!(append(&mut store, &[page(1000, 10)]), Err(StoreError::Full(_))));
        store.files = good.clone();
        assert_is(&store, &rows);
    }
    rows.extend(append_many(&mut store, 10, 100));
    assert_is(&store, &rows);
    let pending = store.begin_commit(2, "", vec![]).unwrap();
    fs::create_dir(folder.0.join("manifest.tmp")).unwrap();
    assert!(matches!(pending.finish(&[]), Err(StoreError::Full(_))));
    assert!(matches!(store.begin_commit(3, "", vec![]), Err(StoreError::Full(_))));
    assert!(matches!(store.erase(&[1]), Err(StoreError::Full(_))));
    fs::remove_dir(folder.0.join("manifest.tmp")).unwrap();
    rows.retain(|row, _| *row < 10);
    assert_is(&folder.store(), &rows);
}

/// What contradicts the store or itself is refused, and changes nothing.
#[test]
fn contradictions_change_nothing() {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let rows = append_many(&mut store, 10, 20);
    let (row, _, evidence) = page(20, 9);
    let refused = [
        append(&mut store, &[page(9, 10)]),
        append(&mut store, &[page(20, 10), page(20, 10)]),
        store.append(&[Entry { row, path: &[0; 1033], evidence: &evidence }]),
    ];
    assert!(refused.iter().all(|result| matches!(result, Err(StoreError::State(_)))), "{refused:?}");
    for some in [[1, 1], [1, 10], [1, u32::MAX]] {
        assert_eq!(store.remove(&some), Err(StoreError::Gone(some[1])));
    }
    assert_is(&store, &rows);
    assert_eq!(store.find(10).unwrap(), None);
    assert!(matches!(Store::create(&folder.0, &label()), Err(StoreError::State(_))));
    let mut reader = folder.reader().unwrap();
    assert!(matches!(reader.remove(&[]), Err(StoreError::State(_))));
    let other = Label { log: "other".into(), ..label() };
    let error = Store::open(&folder.0, &other, OpenMode::Read).unwrap_err();
    assert!(matches!(&error, StoreError::Foreign(text) if text.contains("log log") && text.contains("log other")));
    fs::remove_file(manifest_path(&folder.0)).unwrap();
    assert!(matches!(Store::create(&folder.0, &label()), Err(StoreError::Damaged(_))));
    assert_eq!(read_manifest(&folder.0), Ok(None));
    fs::write(folder.0.join("manifest.json"), "{}").unwrap();
    let earlier = read_manifest(&folder.0).unwrap_err();
    assert!(matches!(&earlier, StoreError::Foreign(text) if text.contains("written by an earlier version")));
}

/// A commit that was overtaken does nothing, and one that is dropped is made up for by the next one.
#[test]
fn commits_overtake_each_other() {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let mut rows = append_many(&mut store, 10, 5000);
    commit(&mut store, 1);
    store.remove(&[4]).unwrap();
    let gone = rows.remove(&4).unwrap().2;
    drop(store.begin_commit(2, "", vec![]).unwrap());
    let late = store.begin_commit(3, "", vec![]).unwrap();
    assert!(folder.has(&gone[..8]).is_some());
    commit(&mut store, 4);
    assert_eq!(folder.has(&gone[..8]), None);
    late.finish(b"late").unwrap();
    assert_eq!(store.committed().sequence, 4);
    assert_eq!(folder.store().take_extra(), b"extra");
    assert_is(&folder.store(), &rows);
}

/// Neither a commit that is begun nor a look at the last one waits for a thread that waits for the disk.
#[test]
fn nothing_waits_for_the_disk() {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let shared = std::sync::Arc::clone(&store.shared);
    let finishing = locked(&shared.erasure);
    append_many(&mut store, 10, 10);
    let pending = store.begin_commit(1, "", vec![]).unwrap();
    assert_eq!(store.info().committed.sequence, i64::MIN);
    drop(finishing);
    pending.finish(&[]).unwrap();
    assert_eq!(store.committed().sequence, 1);
}

/// A manifest whose checksums are right and whose content contradicts itself is damage.
#[test]
fn a_manifest_that_contradicts_itself_is_damaged() {
    let folder = Folder::new();
    drop(Store::create(&folder.0, &label()).unwrap());
    let mut live = RowSet::default();
    live.extend(0..1);
    let contradictions = [
        (manifest(), RowSet::default(), std::iter::once(0..1).collect()),
        (Manifest { live_rows: 1, ..manifest() }, live.clone(), vec![]),
        (Manifest { next_row: 1, ..manifest() }, live, vec![]),
        (Manifest { first_row: 1, ..manifest() }, RowSet::default(), vec![]),
    ];
    for (manifest, live, dead) in contradictions {
        write_commit(&folder.0, &manifest, &live, &dead, &[]).unwrap();
        assert!(matches!(folder.reader(), Err(StoreError::Damaged(_))), "{manifest:?}");
    }
}

/// Places whose checksums are right and whose order is not are damage, as a stranger's base may have them.
#[test]
fn places_out_of_order_are_damaged() {
    let (folder, _) = small_store();
    let reader = folder.reader().unwrap();
    let word = files::place_word(reader.files.seed(5), Part::Evidence, 400).to_le_bytes();
    fs::OpenOptions::new().write(true).open(folder.0.join("places")).unwrap().write_all_at(&word, 5 * 16 + 8).unwrap();
    let reader = folder.reader().unwrap();
    reader.prefetch(&[4, 5]);
    reader.will_need(&[4, 5]);
    reader.will_need_all(5..6, true);
    for row in [4, 5] {
        assert!(reader.row(row, &mut vec![]).is_ok());
        assert!(matches!(reader.evidence(row, &mut vec![]), Err(StoreError::Damaged(_))));
    }
    let mut store = folder.store();
    assert!(matches!(store.erase(&[5]), Err(StoreError::Damaged(_))));
    store.remove(&[5]).unwrap();
    assert!(matches!(store.begin_commit(9, "", vec![]).unwrap().finish(&[]), Err(StoreError::Damaged(_))));
}

/// Whole blocks of an erased page go back to the disk, and those beside it stay as they are.
#[test]
fn an_erased_page_is_a_hole() {
    let folder = Folder::new();
    let mut store = Store::create(&folder.0, &label()).unwrap();
    let mut rows = append_many(&mut store, 3, 1 << 20);
    commit(&mut store, 1);
    store.erase(&[1]).unwrap();
    rows.remove(&1);
    assert_is(&store, &rows);
    let status = folder.0.join("evidence").metadata().unwrap();
    assert!(status.blocks() * 512 < status.len() - (1 << 19));
}
