//! The holder of a lock, for error messages.

use std::fs;

use rustix::fs::{major, minor};

use super::Kind;

pub(super) const UNKNOWN: &str = "another process";

/// What is known about the lock that conflicts with the requested one.
pub(super) struct Holder {
    /// The requested kind.
    pub(super) kind: Kind,
    /// The device of the file.
    pub(super) device: u64,
    /// The inode of the file.
    pub(super) inode: u64,
    /// The process, if the lock belongs to one, as the JVM's locks do.
    pub(super) process: Option<i32>,
}

impl Holder {
    /// For example "process 123 (java)". An OFD lock belongs to no process; `/proc` shows which descriptors
    /// hold one, for the processes that this one may inspect.
    pub(super) fn description(&self) -> String {
        let own = std::process::id().to_string();
        if let Some(process) = self.process {
            return describe_process(&process.to_string());
        }
        if self.is_held_by(&own) {
            return "another handle of this process".to_owned();
        }
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = processes.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .find(|process| self.is_held_by(process))
            .map_or_else(|| UNKNOWN.to_owned(), |process| describe_process(&process))
    }

    fn is_held_by(&self, process: &str) -> bool {
        let file = format!("{:02x}:{:02x}:{}", major(self.device), minor(self.device), self.inode);
        let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
        descriptors.filter_map(|entry| fs::read_to_string(entry.path()).ok()).any(|info| {
            // lock:	1: OFDLCK  ADVISORY  WRITE -1 fe:00:1234 0 EOF
            info.lines().filter(|line| line.starts_with("lock:")).any(|line| {
                let mut fields = line.split_whitespace().skip(2);
                let is_ofd = fields.next() == Some("OFDLCK");
                let is_conflicting = fields.nth(1) == Some("WRITE") || self.kind == Kind::Exclusive;
                is_ofd && is_conflicting && fields.nth(1) == Some(file.as_str())
            })
        })
    }
}

fn describe_process(process: &str) -> String {
    match fs::read_to_string(format!("/proc/{process}/comm")) {
        Ok(name) => format!("process {process} ({})", name.trim()),
        Err(_) => format!("process {process}"),
    }
}
