//! The `.log` of a segment of a copy while its batches are copied: written, compared with a file that is
//! there, or a hard link.

use super::destination::{Destination, something_else};
use crate::error::{Error, Malformed, Result};
use crate::fs::names::FileKind;
use crate::fs::{Directory, SystemFile, WritableFile};
use crate::record::crc::Running;
use crate::segment::Segment;
use crate::types::Interrupt;

/// The number of bytes that are written, compared or read back at a time.
const CHUNK: usize = 1 << 20;

#[derive(Debug)]
enum Contents {
    Written(WritableFile),
    /// Equal so far to a file that an earlier call has written.
    Compared(SystemFile),
    /// A link to the file of the source.
    Linked,
}

/// The `.log` of a segment.
pub(super) struct StagedLog {
    directory: Directory,
    name: String,
    /// Whether the copy was complete: then a difference is an error.
    is_final: bool,
    contents: Contents,
    buffer: Vec<u8>,
    /// Bytes before those in the buffer.
    done: u64,
    crc: Running,
    written: u64,
}

/// A `.log` that is complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct FinishedLog {
    pub(super) size: u64,
    /// The CRC-32C of its bytes.
    pub(super) crc: u32,
    pub(super) written: u64,
    pub(super) is_linked: bool,
}

impl StagedLog {
    /// Begins a `.log`. `link`: the segment to whose file it becomes a link if that is possible.
    pub(super) fn open(
        destination: &mut Destination,
        base_offset: i64,
        link: Option<(&Directory, &Segment)>,
    ) -> Result<Self> {
        let name = destination.add(base_offset, FileKind::Log);
        let directory = destination.directory.clone();
        let is_final = destination.is_complete();
        if destination.has_links() && !is_final {
            // writing to it would change the file of the source
            directory.remove(&name)?;
        }
        let exists = directory.identity_of(&name)?.is_some();
        let link = link.filter(|_| !is_final);
        let contents =
            if link.map_or(Ok(false), |(from, segment)| is_now_linked(from, segment, &directory, &name))? {
                Contents::Linked
            } else if exists {
                let file = directory.open_file(&name)?;
                // after a failed sync the page cache may have bytes that are not on the disk
                file.forget_cached()?;
                Contents::Compared(file)
            } else if is_final {
                return Err(something_else(&directory, &format!("no {name}")));
            } else {
                Contents::Written(directory.create(&name)?)
            };
        let buffer = Vec::with_capacity(CHUNK);
        Ok(Self { directory, name, is_final, contents, buffer, done: 0, crc: Running::new(2), written: 0 })
    }

    /// The number of bytes so far.
    pub(super) fn size(&self) -> u64 {
        self.done + self.buffer.len() as u64
    }

    /// Adds a batch at this position of the segment.
    pub(super) fn add(&mut self, bytes: &[u8], segment: &Segment, position: u64) -> Result<()> {
        if matches!(self.contents, Contents::Linked) {
            if position == self.size() {
                self.done += bytes.len() as u64;
                self.crc.update(bytes);
                return Ok(());
            }
            self.unlink(segment)?;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.crc.update(&self.buffer);
        let contents = match &self.contents {
            Contents::Linked => None,
            Contents::Written(file) => Some(file.clone()),
            Contents::Compared(file) => {
                let same = self.equal_bytes(file)?;
                if same == self.buffer.len() {
                    None
                } else if self.is_final {
                    let at = self.done + same as u64;
                    return Err(something_else(
                        &self.directory,
                        &format!("another byte at {at} of {}", self.name),
                    ));
                } else {
                    let file = self.directory.open_writable(&self.name)?;
                    file.set_size(self.done)?;
                    Some(file)
                }
            }
        };
        if let Some(file) = contents {
            file.write_all_at(&self.buffer, self.done)?;
            self.written += self.buffer.len() as u64;
            self.contents = Contents::Written(file);
        }
        self.done += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// The number of bytes at the start of the buffer that the file has at the same position.
    fn equal_bytes(&self, file: &SystemFile) -> Result<usize> {
        let left = usize::try_from(file.size().saturating_sub(self.done)).unwrap_or(usize::MAX);
        let mut existing = vec![0; left.min(self.buffer.len())];
        file.read_exact_at(self.done, &mut existing)?;
        Ok(existing.iter().zip(&self.buffer).take_while(|(existing, new)| existing == new).count())
    }

    /// Replaces the link by a file with the bytes so far, because the copy differs from the file of the
    /// source, or will.
    fn unlink(&mut self, segment: &Segment) -> Result<()> {
        if self.is_final {
            return Err(something_else(&self.directory, &format!("a link {}", self.name)));
        }
        self.directory.remove(&self.name)?;
        let file = self.directory.create(&self.name)?;
        let (source, mut chunk, mut position) = (segment.log_bytes()?, Vec::new(), 0);
        let mut crc = Running::new(2);
        while position < self.done {
            let length = usize::try_from(self.done - position).unwrap_or(CHUNK).min(CHUNK);
            source.copy(position, length, &mut chunk)?;
            crc.update(&chunk);
            file.write_all_at(&chunk, position)?;
            position += chunk.len() as u64;
        }
        if crc.value() != self.crc.value() {
            return Err(Error::LogChanged {
                file: segment.path(),
                expected: "the same bytes as before".to_owned(),
                found: "others".to_owned(),
            });
        }
        self.written += self.done;
        self.contents = Contents::Written(file);
        Ok(())
    }

    /// Ends the file: makes it durable, and compares the bytes on the disk with those that were copied.
    /// `may_be_link`: whether it may stay a link to the segment's file.
    pub(super) fn finish(
        mut self,
        segment: &Segment,
        may_be_link: bool,
        interrupt: Interrupt,
    ) -> Result<FinishedLog> {
        if matches!(self.contents, Contents::Linked) && !may_be_link {
            self.unlink(segment)?;
        }
        self.flush()?;
        let is_linked = matches!(self.contents, Contents::Linked);
        if self.is_final {
            let size = self.directory.identity_of(&self.name)?.map_or(0, |identity| identity.size);
            if size != self.done {
                let found = format!("{size} bytes instead of {} in {}", self.done, self.name);
                return Err(something_else(&self.directory, &found));
            }
        } else if !is_linked {
            let file = match &self.contents {
                Contents::Written(file) => file.clone(),
                _ => self.directory.open_writable(&self.name)?,
            };
            if file.identity()?.size != self.done {
                file.set_size(self.done)?;
            }
            // retention uses it for records without timestamps
            file.set_modified(segment.identity()?)?;
            file.sync()?;
            self.read_back(interrupt)?;
        }
        Ok(FinishedLog { size: self.done, crc: self.crc.value(), written: self.written, is_linked })
    }

    fn read_back(&self, interrupt: Interrupt) -> Result<()> {
        let file = self.directory.open_file(&self.name)?;
        file.forget_cached()?;
        let (mut crc, mut chunk, mut position) = (Running::new(2), Vec::new(), 0);
        while position < self.done {
            interrupt.check()?;
            let left = usize::try_from(self.done - position).unwrap_or(CHUNK);
            chunk.resize(left.min(CHUNK), 0);
            file.read_exact_at(position, &mut chunk)?;
            crc.update(&chunk);
            position += chunk.len() as u64;
        }
        if file.size() == self.done && crc.value() == self.crc.value() {
            return Ok(());
        }
        let expected = format!("{} bytes with the CRC-32C {:#010x}, as written", self.done, self.crc.value());
        let found = format!("{} bytes with the CRC-32C {:#010x}", file.size(), crc.value());
        Err(Malformed::new(expected, found).at(file.path(), 0, None))
    }
}

/// Makes a link to the file of a segment; false if the file system does not allow it.
fn is_now_linked(source: &Directory, segment: &Segment, to: &Directory, name: &str) -> Result<bool> {
    if !source.link(segment.log_name(), to, name)? {
        return Ok(false);
    }
    let linked = to.identity_of(name)?;
    if linked.is_some_and(|linked| Some(linked.inode) == segment.identity().ok().map(|known| known.inode)) {
        return Ok(true);
    }
    to.remove(name)?;
    Err(Error::LogChanged {
        file: segment.path(),
        expected: "the segment as it was when the log was opened".to_owned(),
        found: "a different file with that name".to_owned(),
    })
}
