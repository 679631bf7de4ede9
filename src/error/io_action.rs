//! The file operations that an I/O error names.

use std::fmt;

/// A file operation of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IoAction {
    /// Make a path absolute, or follow its symbolic links.
    Resolve,
    /// Open a file or a directory.
    Open,
    /// Get the size, the identity and the times of a file.
    Stat,
    /// List a directory.
    List,
    /// Read from a file.
    Read,
    /// Write to a file.
    Write,
    /// Get the permission to change a directory.
    WriteTo,
    /// Create a file or a directory.
    Create,
    /// Rename a file.
    Rename,
    /// Give a file a second name.
    Link,
    /// Remove a file or a directory.
    Remove,
    /// Make a file or a directory durable (`fsync`).
    Sync,
    /// Change the size of a file.
    Resize,
    /// Allocate the blocks of a file.
    Allocate,
    /// Set the modification time of a file.
    SetTime,
    /// Drop the cached pages of a file.
    DropCache,
    /// Take a lock.
    Lock,
    /// Query the holder of a lock.
    QueryLock,
    /// Register the handler that counts forks.
    WatchForks,
}

impl fmt::Display for IoAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Resolve => "resolve",
            Self::Open => "open",
            Self::Stat => "stat",
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteTo => "write to",
            Self::Create => "create",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Remove => "remove",
            Self::Sync => "sync",
            Self::Resize => "resize",
            Self::Allocate => "allocate blocks for",
            Self::SetTime => "set the time of",
            Self::DropCache => "drop the cache of",
            Self::Lock => "lock",
            Self::QueryLock => "query the lock of",
            Self::WatchForks => "watch forks for",
        })
    }
}
