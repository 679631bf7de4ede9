//! Images of the states in which a power loss at one point may leave a disk.

use std::sync::Arc;

use super::MemoryDisk;
use super::state::{Entries, FileState, FolderState, Node, State};

/// A point at which the power may fail.
#[derive(Debug, Clone)]
pub struct CrashPoint {
    state: Arc<State>,
}

/// The changes that survive, of those that are not durable.
///
/// The sectors and the size of a change survive independently. A sector that several changes wrote has the
/// contents of the last one that survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Survivors {
    /// No change.
    None,
    /// All changes.
    All,
    /// All but one change, by its number.
    AllBut(usize),
    /// One change, by its number.
    Only(usize),
    /// All names and sizes, and no contents: files grow by zeros.
    NoContents,
    /// All but the contents of one change, by its number.
    AllButContentsOf(usize),
    /// All but the size that one change gave a file, by its number.
    AllButSizeOf(usize),
    /// A random set, by its seed: sector by sector, size by size, name by name.
    Random(u64),
}

/// The contents of a disk after a crash. Unchanged contents are shared with the original disk.
#[derive(Debug, Clone)]
pub struct Image {
    sector: usize,
    files: Vec<Arc<Vec<u8>>>,
    folders: Vec<Arc<Entries>>,
    hash: u128,
}

impl CrashPoint {
    pub(super) fn new(state: State) -> Self {
        Self { state: Arc::new(state) }
    }

    /// The number of changes that are not durable.
    pub fn changes(&self) -> usize {
        let files: usize = self.state.files.iter().map(|file| file.pending.len()).sum();
        files + self.state.folders.iter().map(|folder| folder.pending.len()).sum::<usize>()
    }

    /// The number of parts that survive independently: sectors, sizes, names.
    fn choices(&self) -> u32 {
        let State { sector, files, folders } = &*self.state;
        let changes = files.iter().flat_map(|file| &file.pending);
        let of_files: usize = changes
            .map(|change| change.sectors.len().div_ceil(*sector) + usize::from(change.size.is_some()))
            .sum();
        let names: usize = folders.iter().map(|folder| folder.pending.len()).sum();
        u32::try_from(of_files + names).unwrap_or(u32::MAX)
    }

    /// The sets of survivors to test: none, all, each change lost alone and kept alone, sizes without
    /// contents and contents without sizes, and `random` random sets, which depend on the seed.
    pub fn survivors(&self, random: u64, seed: u64) -> Vec<Survivors> {
        let changes = self.changes();
        if changes == 0 {
            return vec![Survivors::All];
        }
        let mut sets = vec![Survivors::None, Survivors::All, Survivors::NoContents];
        for change in 0..changes {
            sets.extend([Survivors::AllBut(change), Survivors::Only(change)]);
        }
        // only for files, which are numbered first; a change with only sectors or only a size is covered by
        // the sets above
        let of_files = self.state.files.iter().flat_map(|file| &file.pending);
        for (change, of_file) in of_files.enumerate() {
            if of_file.size.is_some() && !of_file.sectors.is_empty() {
                sets.extend([Survivors::AllButContentsOf(change), Survivors::AllButSizeOf(change)]);
            }
        }
        // few changes have few subsets, and the sets above cover most of them
        let random = random.min(1u64.checked_shl(self.choices()).unwrap_or(u64::MAX));
        sets.extend((0..random).map(|number| Survivors::Random(mixed(seed ^ mixed(number)))));
        sets
    }

    /// The image for a set of surviving changes.
    pub fn image(&self, survivors: Survivors) -> Image {
        let mut dice = Dice::new(survivors);
        let State { sector, files, folders } = &*self.state;
        let mut first = 0;
        let mut contents = Vec::with_capacity(files.len());
        for file in files {
            contents.push(if file.pending.is_empty() {
                Arc::clone(&file.durable)
            } else {
                dice.contents(file, first, *sector)
            });
            first += file.pending.len();
        }
        let mut names = Vec::with_capacity(folders.len());
        for folder in folders {
            names.push(folder.surviving(|number| dice.survives(first + number)));
            first += folder.pending.len();
        }
        let mut image = Image { sector: *sector, files: contents, folders: names, hash: 0 };
        image.hash = image.hashed();
        image
    }
}

impl Image {
    /// A hash of names, sizes and bytes. Equal images have equal hashes; a collision is very unlikely.
    pub fn hash(&self) -> u128 {
        self.hash
    }

    /// A disk with these contents, all durable. Files without a name are removed.
    pub fn disk(&self) -> MemoryDisk {
        let mut files = Vec::new();
        let mut folders = Vec::with_capacity(self.folders.len());
        for entries in &self.folders {
            let mut renumbered = Entries::new();
            for (name, node) in &**entries {
                let node = match node {
                    Node::File(file) => {
                        let bytes = self.files.get(*file).cloned().unwrap_or_default();
                        files.push(FileState::holding(Arc::clone(name), bytes, self.sector));
                        Node::File(files.len() - 1)
                    }
                    folder @ Node::Folder(_) => *folder,
                };
                renumbered.insert(Arc::clone(name), node);
            }
            folders.push(FolderState::holding(Arc::new(renumbered)));
        }
        MemoryDisk::holding(State { sector: self.sector, files, folders })
    }

    /// The files: paths below the root, in order, with their contents.
    pub fn files(&self) -> Vec<(String, Arc<Vec<u8>>)> {
        let mut found = Vec::new();
        self.walk(0, "", &mut |path, bytes| {
            if let Some(bytes) = bytes {
                found.push((path, Arc::clone(bytes)));
            }
        });
        found
    }

    fn walk(&self, folder: usize, path: &str, visit: &mut impl FnMut(String, Option<&Arc<Vec<u8>>>)) {
        for (name, node) in self.folders.get(folder).into_iter().flat_map(|entries| &**entries) {
            let path = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            match node {
                Node::File(file) => visit(path, self.files.get(*file)),
                Node::Folder(folder) => {
                    visit(path.clone(), None);
                    self.walk(*folder, &path, visit);
                }
            }
        }
    }

    fn hashed(&self) -> u128 {
        let mut hash = Hash::default();
        self.add_folder(0, &mut hash);
        hash.value()
    }

    fn add_folder(&self, folder: usize, hash: &mut Hash) {
        let Some(entries) = self.folders.get(folder) else { return };
        hash.word(entries.len() as u64);
        for (name, node) in &**entries {
            hash.bytes(name.as_bytes());
            match node {
                Node::File(file) => hash.bytes(self.files.get(*file).map_or(&[], |bytes| bytes)),
                Node::Folder(folder) => {
                    hash.word(u64::MAX);
                    self.add_folder(*folder, hash);
                }
            }
        }
    }
}

/// Decides for each change, sector and size whether it survives.
struct Dice {
    survivors: Survivors,
    state: u64,
    /// The probability of a loss, in 1/256. It depends on the seed, so that some sets lose little and some
    /// nearly everything.
    lost: u64,
}

impl Dice {
    fn new(survivors: Survivors) -> Self {
        let seed = if let Survivors::Random(seed) = survivors { seed } else { 0 };
        let lost = [32, 96, 128, 160, 224].get(usize::from(seed.to_be_bytes()[0] % 5)).copied();
        Self { survivors, state: seed, lost: lost.unwrap_or(128) }
    }

    fn roll(&mut self) -> bool {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.state) & 255 >= self.lost
    }

    /// Whether a change of a name survives.
    fn survives(&mut self, change: usize) -> bool {
        match self.survivors {
            Survivors::None => false,
            Survivors::All
            | Survivors::NoContents
            | Survivors::AllButContentsOf(_)
            | Survivors::AllButSizeOf(_) => true,
            Survivors::AllBut(lost) => change != lost,
            Survivors::Only(kept) => change == kept,
            Survivors::Random(_) => self.roll(),
        }
    }

    /// The contents of a file, whose changes are numbered from `first`.
    fn contents(&mut self, file: &FileState, first: usize, sector: usize) -> Arc<Vec<u8>> {
        let sizes: Vec<_> =
            (first..).take(file.pending.len()).map(|change| self.size_survives(change)).collect();
        Arc::new(file.surviving(
            sector,
            |number, _| match self.survivors {
                Survivors::NoContents => false,
                Survivors::AllButContentsOf(lost) => first + number != lost,
                _ => self.survives(first + number),
            },
            |number| sizes.get(number) == Some(&true),
        ))
    }

    fn size_survives(&mut self, change: usize) -> bool {
        match self.survivors {
            Survivors::AllButSizeOf(lost) => change != lost,
            _ => self.survives(change),
        }
    }
}

/// Two hashes by folded multiplication.
struct Hash(u64, u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344)
    }
}

impl Hash {
    fn word(&mut self, word: u64) {
        self.0 = folded(self.0 ^ word, 0xa076_1d64_78bd_642f).wrapping_add(word);
        self.1 = folded(self.1.rotate_left(29) ^ word, 0xe703_7ed1_a0b4_28db).wrapping_add(self.0);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_be_bytes(*word));
        }
        let mut last = [0; 8];
        for (into, byte) in last.iter_mut().zip(rest) {
            *into = *byte;
        }
        self.word(u64::from_be_bytes(last));
    }

    fn value(&self) -> u128 {
        u128::from(mixed(self.0)) << 64 | u128::from(mixed(self.1))
    }
}

fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ a.wrapping_mul(b)
}

/// Mixes the bits of a word (the finaliser of `splitmix64`).
fn mixed(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
