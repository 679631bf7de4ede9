//! The contents of an in-memory disk: what is visible, what is durable, and the changes between them.
//!
//! ```text
//!   durable ──────▶ change ─▶ change ─▶ change ──────▶ visible
//!      survives every crash       any of these, or a part of one, may survive a crash
//! ```
//!
//! A change of contents is stored as whole sectors with their contents after the change. The system writes
//! pages, so a sector on the disk has the contents of one point in time, never a mixture. The size changes
//! independently.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The names in a folder.
pub(super) type Entries = BTreeMap<Arc<str>, Node>;

/// The object of a name, by its index in [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A regular file.
    File(usize),
    /// A folder in a folder.
    Folder(usize),
}

/// The state of the disk. Clones share unchanged parts.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// The unit that is written atomically, bytes.
    pub(super) sector: usize,
    /// All files that ever existed: open handles refer to removed ones.
    pub(super) files: Vec<FileState>,
    /// The first one is the root.
    pub(super) folders: Vec<FolderState>,
}

impl State {
    /// The number of sectors with contents or reserved, and of names.
    pub(super) fn used_sectors(&self) -> usize {
        let nodes = self.folders.iter().flat_map(|folder| folder.visible.values());
        nodes
            .map(|node| match node {
                Node::File(file) => 1 + self.files.get(*file).map_or(0, |file| file.taken),
                Node::Folder(_) => 1,
            })
            .sum()
    }
}

/// A change of a file that is not durable yet.
#[derive(Debug)]
pub(super) struct Change {
    /// The position of the sectors, bytes.
    pub(super) position: usize,
    /// Whole sectors with their contents after the change; empty if only the size changed.
    pub(super) sectors: Vec<u8>,
    /// The size after the change, if it changed the size.
    pub(super) size: Option<usize>,
}

/// One regular file.
#[derive(Debug, Clone)]
pub(super) struct FileState {
    /// The last name it had.
    pub(super) name: Arc<str>,
    /// What is visible to readers.
    pub(super) visible: Arc<Vec<u8>>,
    /// What survives every crash.
    pub(super) durable: Arc<Vec<u8>>,
    /// Changes that are not durable, in order.
    pub(super) pending: Vec<Arc<Change>>,
    /// Which sectors have blocks on the disk.
    pub(super) blocks: Arc<Vec<bool>>,
    /// Their number.
    taken: usize,
    /// The number of the operation that modified it last, or the value that a program has set.
    pub(super) modified: u64,
    /// The number of the operation that changed it or its modification time last.
    pub(super) changed: u64,
    /// A sync failed: the visible contents are no longer what a sync makes durable.
    diverged: bool,
}

impl FileState {
    /// An empty file.
    pub(super) fn new(name: Arc<str>) -> Self {
        Self::holding(name, Arc::default(), 1)
    }

    /// A file that is completely durable. Sectors of zeros count as holes.
    pub(super) fn holding(name: Arc<str>, contents: Arc<Vec<u8>>, sector: usize) -> Self {
        let blocks: Vec<_> =
            contents.chunks(sector).map(|bytes| bytes.iter().any(|byte| *byte != 0)).collect();
        Self {
            name,
            visible: Arc::clone(&contents),
            durable: contents,
            pending: Vec::new(),
            taken: blocks.iter().filter(|taken| **taken).count(),
            blocks: Arc::new(blocks),
            modified: 0,
            changed: 0,
            diverged: false,
        }
    }

    /// Whether the sectors of a range to be written all have blocks.
    pub(super) fn has_blocks(&self, sector: usize, position: usize, length: usize) -> bool {
        self.missing_sectors(sector, position, length) == 0
    }

    /// The number of sectors of a range that have no blocks.
    pub(super) fn missing_sectors(&self, sector: usize, position: usize, length: usize) -> usize {
        let sectors = position / sector..(position + length).div_ceil(sector);
        sectors.into_iter().filter(|sector| self.blocks.get(*sector) != Some(&true)).count()
    }

    /// Takes blocks, also beyond the end of the file.
    pub(super) fn take_blocks(&mut self, sector: usize, position: usize, length: usize) {
        self.taken += self.missing_sectors(sector, position, length);
        let (first, end) = (position / sector, (position + length).div_ceil(sector));
        let blocks = Arc::make_mut(&mut self.blocks);
        if blocks.len() < end {
            blocks.resize(end, false);
        }
        blocks.get_mut(first..end).unwrap_or_default().fill(true);
    }

    /// Writes, and extends the file if necessary.
    pub(super) fn write(&mut self, sector: usize, position: usize, bytes: &[u8]) {
        let end = position + bytes.len();
        let visible = Arc::make_mut(&mut self.visible);
        let grown = end > visible.len();
        if grown {
            visible.resize(end, 0);
        }
        if let Some(into) = visible.get_mut(position..end) {
            into.copy_from_slice(bytes);
        }
        self.take_blocks(sector, position, bytes.len());
        let first = position / sector * sector;
        let sectors = self.sectors(first, end.next_multiple_of(sector));
        self.pending.push(Arc::new(Change { position: first, sectors, size: grown.then_some(end) }));
    }

    /// Truncates, or extends by zeros without blocks.
    pub(super) fn set_size(&mut self, sector: usize, size: usize) {
        let before = self.visible.len();
        if size <= before {
            // also those reserved beyond the end
            Arc::make_mut(&mut self.blocks).truncate(size.div_ceil(sector));
            self.taken = self.blocks.iter().filter(|taken| **taken).count();
        }
        if size == before {
            return;
        }
        Arc::make_mut(&mut self.visible).resize(size, 0);
        let mut change = Change { position: size / sector * sector, sectors: Vec::new(), size: Some(size) };
        if size < before {
            // the part that is cut off reads as zeros if the file grows again
            change.sectors = self.sectors(change.position, before.next_multiple_of(sector));
        }
        self.pending.push(Arc::new(change));
    }

    /// Extends the file by zeros with blocks; never truncates.
    pub(super) fn allocate(&mut self, sector: usize, size: usize) {
        if size > self.visible.len() {
            self.set_size(sector, size);
        }
        self.take_blocks(sector, 0, size);
    }

    /// The visible bytes from one position to another, with zeros after the end.
    fn sectors(&self, from: usize, to: usize) -> Vec<u8> {
        let mut bytes = self.visible.get(from..to.min(self.visible.len())).unwrap_or_default().to_vec();
        bytes.resize(to - from, 0);
        bytes
    }

    /// Makes all changes durable.
    pub(super) fn sync(&mut self) {
        self.durable = if self.diverged { Arc::new(self.all_changes()) } else { Arc::clone(&self.visible) };
        self.pending.clear();
    }

    /// A failed sync: the system marks the contents as clean, and they stay visible. The size survives, as
    /// measured on real systems.
    pub(super) fn fail_sync(&mut self) {
        self.pending.retain_mut(|change| {
            *change = Arc::new(Change { position: 0, sectors: Vec::new(), size: change.size });
            change.size.is_some()
        });
        self.diverged = true;
    }

    /// Makes the disk's contents at and after a position visible, except for dirty data.
    pub(super) fn forget_cached(&mut self, position: usize) {
        let disk = self.all_changes();
        let visible = Arc::make_mut(&mut self.visible);
        visible.truncate(position);
        visible.extend_from_slice(disk.get(visible.len()..).unwrap_or_default());
        self.diverged &= *visible != disk;
    }

    fn all_changes(&self) -> Vec<u8> {
        self.surviving(1, |_, _| true, |_| true)
    }

    /// The contents after some sectors and some sizes of the changes survived. Changes are numbered from 0.
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
    /// A new name.
    Put(Arc<str>, Node),
    /// A removed name.
    Remove(Arc<str>),
    /// A renamed object.
    Rename(Arc<str>, Arc<str>, Node),
}

/// The names in one folder.
#[derive(Debug, Clone, Default)]
pub(super) struct FolderState {
    /// What is visible to readers.
    pub(super) visible: Arc<Entries>,
    /// What survives every crash.
    pub(super) durable: Arc<Entries>,
    /// Changes that are not durable, in order.
    pub(super) pending: Vec<EntryChange>,
}

impl FolderState {
    /// A folder that is completely durable.
    pub(super) fn holding(entries: Arc<Entries>) -> Self {
        Self { visible: Arc::clone(&entries), durable: entries, pending: Vec::new() }
    }

    /// Changes a name.
    pub(super) fn change(&mut self, change: EntryChange) {
        apply(Arc::make_mut(&mut self.visible), &change);
        self.pending.push(change);
    }

    /// All names become durable.
    pub(super) fn sync(&mut self) {
        self.durable = Arc::clone(&self.visible);
        self.pending.clear();
    }

    /// The names after some of the changes survived. Changes are numbered from 0.
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
            // the name may already belong to a later file, if a change between the two was lost
            if entries.get(from) == Some(node) {
                entries.remove(from);
            }
            entries.insert(Arc::clone(to), *node);
        }
    }
}
