//! What a disk of memory holds: what the system shows, what is durable, and what lies between.
//!
//! ```text
//!   durable ──────▶ change ─▶ change ─▶ change ──────▶ shown
//!      what survives for sure     any of these may survive a crash, or a part of one
//! ```
//!
//! A change of contents is kept as whole sectors, as they were after it: the system writes pages, so that a sector on the
//! disk is as it was at one time or another, never a mixture. The size is another thing that changes, on its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fs::seeded_bugs::{self, SeededBug};

/// The names in a folder.
pub(super) type Entries = BTreeMap<Arc<str>, Node>;

/// What a name stands for, by its place in [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A regular file.
    File(usize),
    /// A folder in a folder.
    Folder(usize),
}

/// Everything. Clones share what is the same.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// How many bytes reach the disk together or not at all.
    pub(super) sector: usize,
    /// Every file there ever was: whoever has one open keeps it.
    pub(super) files: Vec<FileState>,
    /// The first one is the root.
    pub(super) folders: Vec<FolderState>,
}

/// A change of a file that is not durable yet.
#[derive(Debug)]
pub(super) struct Change {
    /// Where the sectors lie, from which position on: bytes.
    pub(super) position: usize,
    /// Whole sectors, as they were after the change; none where only the size changed.
    pub(super) sectors: Vec<u8>,
    /// The size after it, where it changed that.
    pub(super) size: Option<usize>,
}

/// One regular file.
#[derive(Debug, Clone)]
pub(super) struct FileState {
    /// The last name it had.
    pub(super) name: Arc<str>,
    /// What a reader sees.
    pub(super) shown: Arc<Vec<u8>>,
    /// What survives a crash whatever happens.
    pub(super) durable: Arc<Vec<u8>>,
    /// In the order in which they were made.
    pub(super) pending: Vec<Arc<Change>>,
    /// Which sectors have a place on the disk.
    pub(super) blocks: Arc<Vec<bool>>,
    /// The number of the operation that changed it last, or what a program has set.
    pub(super) modified: u64,
    /// The number of the operation that changed it or its time last.
    pub(super) changed: u64,
    /// A sync failed: what is shown is no longer what syncing makes durable.
    diverged: bool,
}

impl FileState {
    /// An empty file.
    pub(super) fn new(name: Arc<str>) -> Self {
        Self::holding(name, Arc::default(), 1)
    }

    /// A file that is wholly durable. Sectors of zeros are taken for holes.
    pub(super) fn holding(name: Arc<str>, contents: Arc<Vec<u8>>, sector: usize) -> Self {
        let blocks = contents.chunks(sector).map(|bytes| bytes.iter().any(|byte| *byte != 0)).collect();
        Self {
            name,
            shown: Arc::clone(&contents),
            durable: contents,
            pending: Vec::new(),
            blocks: Arc::new(blocks),
            modified: 0,
            changed: 0,
            diverged: false,
        }
    }

    /// Whether every byte of a range that is to be written has its place on the disk already.
    pub(super) fn has_blocks(&self, sector: usize, position: usize, length: usize) -> bool {
        let sectors = position / sector..(position + length).div_ceil(sector);
        sectors.into_iter().all(|sector| self.blocks.get(sector) == Some(&true))
    }

    fn take_blocks(&mut self, sector: usize, position: usize, length: usize) {
        let (first, end) = (position / sector, (position + length).div_ceil(sector));
        let blocks = Arc::make_mut(&mut self.blocks);
        if blocks.len() < end {
            blocks.resize(end, false);
        }
        blocks.get_mut(first..end).unwrap_or_default().fill(true);
    }

    /// Writes; behind the end the file grows.
    pub(super) fn write(&mut self, sector: usize, position: usize, bytes: &[u8]) {
        let end = position + bytes.len();
        let shown = Arc::make_mut(&mut self.shown);
        let grown = end > shown.len();
        if grown {
            shown.resize(end, 0);
        }
        if let Some(into) = shown.get_mut(position..end) {
            into.copy_from_slice(bytes);
        }
        self.take_blocks(sector, position, bytes.len());
        let first = position / sector * sector;
        let sectors = self.sectors(first, end.next_multiple_of(sector));
        self.pending.push(Arc::new(Change { position: first, sectors, size: grown.then_some(end) }));
    }

    /// Cuts, or lets grow by zeros without blocks.
    pub(super) fn set_size(&mut self, sector: usize, size: usize) {
        let before = self.shown.len();
        if size == before {
            return;
        }
        Arc::make_mut(&mut self.shown).resize(size, 0);
        let mut change = Change { position: size / sector * sector, sectors: Vec::new(), size: Some(size) };
        if size < before {
            // what is cut off is zeros if the file grows again
            change.sectors = self.sectors(change.position, before.next_multiple_of(sector));
            Arc::make_mut(&mut self.blocks).truncate(size.div_ceil(sector));
        }
        self.pending.push(Arc::new(change));
    }

    /// Lets the file grow by zeros that have blocks; none is cut off.
    pub(super) fn allocate(&mut self, sector: usize, size: usize) {
        if size > self.shown.len() {
            self.set_size(sector, size);
        }
        self.take_blocks(sector, 0, size);
    }

    /// What is shown from one position to another, with zeros behind the end.
    fn sectors(&self, from: usize, to: usize) -> Vec<u8> {
        let mut bytes = self.shown.get(from..to.min(self.shown.len())).unwrap_or_default().to_vec();
        bytes.resize(to - from, 0);
        bytes
    }

    /// Everything that was changed becomes durable.
    pub(super) fn sync(&mut self) {
        self.durable = if self.diverged { Arc::new(self.all_changes()) } else { Arc::clone(&self.shown) };
        self.pending.clear();
    }

    /// A sync that fails: the system forgets that the contents are dirty, and shows them on. The size survives, as it did
    /// where this was measured.
    pub(super) fn fail_sync(&mut self) {
        self.pending.retain_mut(|change| {
            *change = Arc::new(Change { position: 0, sectors: Vec::new(), size: change.size });
            change.size.is_some()
        });
        self.diverged = true;
    }

    /// Shows what the disk has from a position on; what is known to be dirty stays.
    pub(super) fn forget_cached(&mut self, position: usize) {
        let disk = self.all_changes();
        let shown = Arc::make_mut(&mut self.shown);
        shown.truncate(position);
        shown.extend_from_slice(disk.get(shown.len()..).unwrap_or_default());
        self.diverged &= *shown != disk;
    }

    fn all_changes(&self) -> Vec<u8> {
        self.surviving(1, |_, _| true, |_| true)
    }

    /// The contents of which some sectors of some changes survived, and the sizes of some: numbered from 0 on.
    pub(super) fn surviving(
        &self,
        sector: usize,
        mut sectors: impl FnMut(usize, usize) -> bool,
        mut sizes: impl FnMut(usize) -> bool,
    ) -> Vec<u8> {
        let mut bytes = Vec::clone(&self.durable);
        let mut size = bytes.len();
        for (number, change) in self.pending.iter().enumerate() {
            for (index, survivor) in change.sectors.chunks(sector).enumerate() {
                if sectors(number, index) {
                    let start = change.position + index * sector;
                    let end = start + survivor.len();
                    if bytes.len() < end {
                        bytes.resize(end, 0);
                    }
                    if let Some(into) = bytes.get_mut(start..end) {
                        into.copy_from_slice(survivor);
                    }
                }
            }
            if let Some(changed) = change.size
                && sizes(number)
            {
                size = changed;
            }
        }
        bytes.resize(size, 0);
        bytes
    }
}

/// A change of a folder's names that is not durable yet. Each is atomic.
#[derive(Debug, Clone)]
pub(super) enum EntryChange {
    /// A name for something new.
    Put(Arc<str>, Node),
    /// A name less.
    Remove(Arc<str>),
    /// Another name for what it stands for.
    Rename(Arc<str>, Arc<str>, Node),
}

impl EntryChange {
    /// Whether it takes a name away from what has it.
    fn takes(&self, name: &str) -> bool {
        match self {
            Self::Put(..) => false,
            Self::Remove(taken) | Self::Rename(taken, ..) => &**taken == name,
        }
    }
}

/// The names in one folder.
#[derive(Debug, Clone, Default)]
pub(super) struct FolderState {
    /// What a reader sees.
    pub(super) shown: Arc<Entries>,
    /// What survives a crash whatever happens.
    pub(super) durable: Arc<Entries>,
    /// In the order in which they were made.
    pub(super) pending: Vec<EntryChange>,
}

impl FolderState {
    /// A folder that is wholly durable.
    pub(super) fn holding(entries: Arc<Entries>) -> Self {
        Self { shown: Arc::clone(&entries), durable: entries, pending: Vec::new() }
    }

    /// Changes a name.
    pub(super) fn change(&mut self, change: EntryChange) {
        apply(Arc::make_mut(&mut self.shown), &change);
        self.pending.push(change);
    }

    /// All names become durable.
    pub(super) fn sync(&mut self) {
        if seeded_bugs::is(SeededBug::NoDirectorySyncOnCreate) {
            // as if nobody had synced after making a file; what else there is to sync would hide it
            let durable = Arc::make_mut(&mut self.durable);
            let pending = std::mem::take(&mut self.pending);
            for (number, change) in pending.iter().enumerate() {
                let later = pending.get(number + 1..).unwrap_or_default();
                match change {
                    EntryChange::Put(name, _) if !later.iter().any(|later| later.takes(name)) => {
                        self.pending.push(change.clone());
                    }
                    change => apply(durable, change),
                }
            }
            return;
        }
        self.durable = Arc::clone(&self.shown);
        self.pending.clear();
    }

    /// The names of which some changes survived, numbered from 0 on.
    pub(super) fn surviving(&self, mut survives: impl FnMut(usize) -> bool) -> Arc<Entries> {
        if self.pending.is_empty() {
            return Arc::clone(&self.durable);
        }
        let mut entries = Entries::clone(&self.durable);
        for (number, change) in self.pending.iter().enumerate() {
            if survives(number) {
                apply(&mut entries, change);
            }
        }
        Arc::new(entries)
    }
}

fn apply(entries: &mut Entries, change: &EntryChange) {
    match change {
        EntryChange::Put(name, node) => {
            entries.insert(Arc::clone(name), *node);
        }
        EntryChange::Remove(name) => {
            entries.remove(name);
        }
        EntryChange::Rename(from, to, node) => {
            // the name may stand for a later file already, where a change in between was lost
            if entries.get(from) == Some(node) {
                entries.remove(from);
            }
            entries.insert(Arc::clone(to), *node);
        }
    }
}
