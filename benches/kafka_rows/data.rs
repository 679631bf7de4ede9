//! The files that both sides read, written by Kafka's classes and kept for later runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::kafka::Kafka;
use super::random::Random;

/// An index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Offset,
    Time,
}

impl Kind {
    /// As the JVM's commands have it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Offset => "offset-index",
            Self::Time => "time-index",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Offset => "index",
            Self::Time => "timeindex",
        }
    }

    fn entry_bytes(self) -> u64 {
        match self {
            Self::Offset => 8,
            Self::Time => 12,
        }
    }
}

/// The content of a log.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Approximate size of a batch before compression, KiB.
    pub batch_kib: usize,
    /// The name of its codec in Kafka.
    pub codec: &'static str,
    /// Size of the log before compression.
    pub mib: u64,
}

/// The directory of the files.
#[derive(Debug)]
pub struct Data {
    dir: PathBuf,
}

impl Data {
    pub fn new(dir: &Path) -> Self {
        fs::create_dir_all(dir).unwrap();
        let data = Self { dir: dir.canonicalize().unwrap() };
        fs::create_dir_all(data.scratch()).unwrap();
        data
    }

    /// A directory for files that are removed at the end.
    pub fn scratch(&self) -> PathBuf {
        self.dir.join("scratch")
    }

    /// An index of that size, with a base offset; each base offset has other contents.
    pub fn index(&self, kafka: &mut Kafka, kind: Kind, mib: u64, base_offset: i64) -> PathBuf {
        let entries = (mib << 20) / kind.entry_bytes();
        let folder = self.dir.join(format!("{}-{mib}MiB", kind.command()));
        fs::create_dir_all(&folder).unwrap();
        written(&folder.join(format!("{base_offset:020}.{}", kind.extension())), |path| {
            let seed = base_offset.to_string();
            kafka.ask(&["write-index", kind.command(), path, &entries.to_string(), &seed]);
        })
    }

    /// The directory of a log of one segment.
    pub fn log(&self, kafka: &mut Kafka, shape: Shape) -> PathBuf {
        let Shape { batch_kib, codec, mib } = shape;
        let folder = self.dir.join(format!("log-{batch_kib}KiB-{codec}-{mib}MiB"));
        fs::create_dir_all(&folder).unwrap();
        written(&folder.join("orders-0"), |path| {
            let [batch_bytes, bytes] = [(batch_kib << 10) as u64, mib << 20].map(|size| size.to_string());
            kafka.ask(&["write-log", path, &batch_bytes, &bytes, codec]);
        })
    }

    /// The directory of a log of empty segments, whose base offsets have uneven distances; the first is 0.
    pub fn segments(&self, count: usize) -> PathBuf {
        let folder = self.dir.join(format!("segments-{count}"));
        fs::create_dir_all(&folder).unwrap();
        written(&folder.join("orders-0"), |path| {
            fs::create_dir(path).unwrap();
            let (mut random, mut base_offset) = (Random(1), 0);
            for _ in 0..count {
                File::create(Path::new(path).join(format!("{base_offset:020}.log"))).unwrap();
                base_offset += 500 + random.below(1000);
            }
        })
    }
}

/// A file or a directory, written if it is missing: under another name until it is complete.
fn written(path: &Path, write: impl FnOnce(&str)) -> PathBuf {
    if !path.exists() {
        let folder = path.parent().unwrap().join("partial");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        // the JVM reads the base offset from the file's name
        let partial = folder.join(path.file_name().unwrap());
        write(partial.to_str().unwrap());
        fs::rename(&partial, path).unwrap();
        fs::remove_dir(&folder).unwrap();
    }
    path.to_owned()
}
