//! Locks with other handles, other processes, forked children and a JVM.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cordwood::error::{Error, IoAction, Result};
use cordwood::fs::{Directory, Lock, PartitionLocks};

const NAME: &str = PartitionLocks::NAME;

fn open(path: &Path) -> Directory {
    Directory::open(path, "").unwrap()
}

/// The holder that a refused attempt reports.
fn holder<T: std::fmt::Debug>(attempt: Result<T>) -> String {
    match attempt.unwrap_err() {
        Error::Locked { found, .. } => found,
        other => panic!("{other}"),
    }
}

/// Whether a condition becomes true within 10 seconds. A process started by another test has a copy of this
/// process's descriptors until its `exec`, so that a released lock seems held until then.
fn becomes_true(is_true: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !is_true() {
        if start.elapsed() > Duration::from_secs(10) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Another process, which prints a line at each step and waits for a line before it continues.
struct Other {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Other {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// The rest of the next line that contains `start`; a test program also prints other lines.
    fn next_line_after(&mut self, start: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended without a line with {start}");
            assert!(!line.contains("FAILED"), "it failed without a line with {start}");
            if let Some(at) = line.find(start) {
                return line[at + start.len()..].trim().to_owned();
            }
        }
    }

    fn send_line(&mut self) {
        self.input.write_all(b"\n").unwrap();
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

#[test]
fn an_exclusive_lock_excludes_every_other_handle_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let directory = open(folder.path());
    let lock = Lock::exclusive(&directory, NAME).unwrap();
    assert!(lock.is_held());
    for attempt in [Lock::exclusive(&directory, NAME), Lock::shared(&open(folder.path()), NAME)] {
        assert_eq!(holder(attempt), "another handle of this process");
    }
    drop(lock);
    assert!(becomes_true(|| Lock::exclusive(&directory, NAME).is_ok()));
    assert!(folder.path().join(NAME).exists(), "a lock file is never deleted");
}

#[test]
fn shared_locks_exclude_only_exclusive_locks() {
    let folder = tempfile::tempdir().unwrap();
    let directory = open(folder.path());
    let (one, two) = (Lock::shared(&directory, NAME).unwrap(), Lock::shared(&directory, NAME).unwrap());
    assert_eq!(holder(Lock::exclusive(&directory, NAME)), "another handle of this process");
    drop(one);
    assert_eq!(holder(Lock::exclusive(&directory, NAME)), "another handle of this process");
    drop(two);
    assert!(becomes_true(|| Lock::exclusive(&directory, NAME).is_ok()));
}

#[test]
fn a_lock_is_on_the_file_and_not_on_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let partition = folder.path().join("orders-0");
    std::fs::create_dir(&partition).unwrap();
    std::os::unix::fs::symlink(&partition, folder.path().join("link-0")).unwrap();
    let _locks = PartitionLocks::take(&open(&partition)).unwrap();
    assert!(holder(PartitionLocks::take(&open(&folder.path().join("link-0")))).contains("this process"));
    std::fs::rename(&partition, folder.path().join("moved-0")).unwrap();
    assert!(holder(PartitionLocks::take(&open(&folder.path().join("moved-0")))).contains("this process"));
}

#[test]
fn of_many_threads_exactly_one_gets_the_lock() {
    const THREADS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let directory = open(folder.path());
    for round in 0..100 {
        let name = format!("{round}.lock");
        let (winners, barrier) = (AtomicUsize::new(0), Barrier::new(THREADS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    barrier.wait();
                    let lock = Lock::exclusive(&directory, &name);
                    winners.fetch_add(usize::from(lock.is_ok()), Ordering::Relaxed);
                    barrier.wait();
                });
            }
        });
        assert_eq!(winners.load(Ordering::Relaxed), 1, "round {round}");
    }
}

#[test]
fn a_link_a_pipe_and_a_directory_are_refused_as_lock_files() {
    let folder = tempfile::tempdir().unwrap();
    let directory = open(folder.path());
    let elsewhere = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, folder.path().join("link")).unwrap();
    std::fs::create_dir(folder.path().join("directory")).unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for name in ["link", "pipe", "directory"] {
        for attempt in [Lock::exclusive(&directory, name), Lock::shared(&directory, name)] {
            assert!(matches!(attempt.unwrap_err(), Error::Io { action: IoAction::Lock, .. }), "{name}");
        }
    }
    assert!(!elsewhere.exists(), "a link at the lock's name was followed");
}

#[test]
fn a_shared_lock_needs_no_write_permission() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    Lock::shared(&open(folder.path()), NAME).unwrap();
}

#[test]
fn the_lock_of_a_data_directory_is_taken_only_in_a_data_directory() {
    let markers =
        ["meta.properties", ".lock", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"];
    for marker in markers.into_iter().chain([""]) {
        let data = tempfile::tempdir().unwrap();
        let partition = data.path().join("orders-0");
        std::fs::create_dir(&partition).unwrap();
        if !marker.is_empty() {
            std::fs::write(data.path().join(marker), "").unwrap();
        }
        let locks = PartitionLocks::take(&open(&partition)).unwrap();
        assert!(locks.are_held());
        assert!(partition.join(NAME).exists());
        assert_eq!(data.path().join(".lock").exists(), !marker.is_empty(), "{marker}");
        let broker = Lock::exclusive(&open(data.path()), ".lock");
        assert_eq!(broker.is_err(), !marker.is_empty(), "{marker}");
    }
}

#[test]
fn two_partitions_of_a_data_directory_can_have_writers_and_only_their_files_count_as_locked() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("meta.properties"), "").unwrap();
    let [one, two, idle] = ["orders-0", "orders-1", "orders-2"].map(|name| {
        std::fs::create_dir(data.path().join(name)).unwrap();
        open(&data.path().join(name))
    });
    assert!(![&one, &two, &idle].into_iter().any(Directory::is_locked));
    let writers = [PartitionLocks::take(&one).unwrap(), PartitionLocks::take(&two).unwrap()];
    assert_eq!([&one, &two, &idle].map(Directory::is_locked), [true, true, false]);
    drop(writers);
    assert!(becomes_true(|| ![&one, &two, &idle].into_iter().any(Directory::is_locked)));
    let broker = Lock::exclusive(&open(data.path()), ".lock").unwrap();
    assert!([&one, &two, &idle].into_iter().all(Directory::is_locked));
    assert_eq!(holder(PartitionLocks::take(&idle)), "another handle of this process");
    drop(broker);
}

const PYTHON: &str = r#"
import fcntl, sys
with open(sys.argv[1], "a+") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("refused", flush=True)
    else:
        print("held", flush=True)
        sys.stdin.readline()
"#;

fn python(file: &Path) -> Other {
    Other::start(Command::new("python3").args(["-c", PYTHON]).arg(file))
}

#[test]
fn a_process_with_a_posix_lock_and_a_lock_of_cordwood_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let directory = open(folder.path());
    let mut other = python(&folder.path().join(NAME));
    assert_eq!(other.read_line(), "held");
    let found = holder(Lock::exclusive(&directory, NAME));
    assert!(found.starts_with(&format!("process {} (", other.process.id())), "{found}");
    other.send_line();
    other.end();
    let _lock = Lock::exclusive(&directory, NAME).unwrap();
    let mut other = python(&folder.path().join(NAME));
    assert_eq!(other.read_line(), "refused");
    other.end();
}

const JAVA: &str = r#"
import java.nio.channels.*;
import java.nio.file.*;
public class Hold {
    public static void main(String[] arguments) throws Exception {
        try (FileChannel file = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            do {
                FileLock lock = file.tryLock();
                System.out.println(lock == null ? "refused" : "held");
                int input = System.in.read();
                if (lock != null) lock.release();
                System.out.println("released");
                if (input < 0) return;
            } while (System.in.read() >= 0);
        }
    }
}
"#;

/// The JVM takes the lock as Kafka's `FileLock` does.
#[test]
fn a_writer_and_a_jvm_with_kafkas_lock_exclude_each_other() {
    if Command::new("java").arg("-version").stderr(Stdio::null()).status().is_err() {
        assert!(std::env::var_os("CI").is_none(), "java is missing, and CI requires it");
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let partition = data.path().join("orders-0");
    std::fs::create_dir(&partition).unwrap();
    let source = data.path().join("Hold.java");
    std::fs::write(&source, JAVA).unwrap();
    let directory = open(&partition);
    let mut broker = Other::start(Command::new("java").arg(&source).arg(data.path().join(".lock")));
    assert_eq!(broker.read_line(), "held");
    assert!(directory.is_locked());
    assert_eq!(holder(PartitionLocks::take(&directory)), format!("process {} (java)", broker.process.id()));
    assert!(!partition.join(NAME).exists(), "nothing was changed before the broker's lock was found");
    broker.send_line();
    assert_eq!(broker.read_line(), "released");
    let locks = PartitionLocks::take(&directory).unwrap();
    broker.send_line();
    assert_eq!(broker.read_line(), "refused");
    drop(locks);
    assert!(becomes_true(|| !directory.is_locked()));
    broker.send_line();
    assert_eq!(broker.read_line(), "released");
    broker.send_line();
    assert_eq!(broker.read_line(), "held");
    broker.send_line();
    assert_eq!(broker.read_line(), "released");
    broker.end();
}

/// Runs one ignored test of this program in another process, with the folder in an environment variable.
fn run_in_process(test: &str, folder: &Path) -> Other {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", test]).env("CORDWOOD_LOCKS", folder);
    Other::start(&mut command)
}

fn folder_of_the_test() -> std::path::PathBuf {
    std::env::var_os("CORDWOOD_LOCKS").expect("run by another test").into()
}

/// Forks a child that prints whether `check` is true and runs until its standard input is closed.
#[expect(unsafe_code, reason = "a fork without exec, as C code in the process may do it")]
fn fork_and_stay(check: impl FnOnce() -> bool) {
    // SAFETY: the child calls only what is allowed between fork and exec (read, write and _exit), and the
    // lock functions, which are usable in a forked child
    unsafe {
        if libc::fork() == 0 {
            let words: &[u8] = if check() { b"\nchild: right\n" } else { b"\nchild: wrong\n" };
            libc::write(1, words.as_ptr().cast(), words.len());
            let mut byte = 0u8;
            while libc::read(0, (&raw mut byte).cast(), 1) > 0 {}
            libc::_exit(0);
        }
    }
}

#[test]
#[ignore = "run by a_forked_child_does_not_hold_the_lock_and_does_not_release_that_of_its_parent"]
fn holds_a_lock_and_forks() {
    let directory = open(&folder_of_the_test());
    let lock = Lock::exclusive(&directory, NAME).unwrap();
    let mut shared_handle = Some(lock);
    let lock = &mut shared_handle;
    fork_and_stay(|| {
        let was_held = lock.as_ref().is_some_and(Lock::is_held);
        drop(lock.take());
        !was_held && holder(Lock::exclusive(&directory, NAME)).starts_with("process")
    });
    assert!(shared_handle.as_ref().is_some_and(Lock::is_held));
    println!("\nparent: {}", std::process::id());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_forked_child_does_not_hold_the_lock_and_does_not_release_that_of_its_parent() {
    let folder = tempfile::tempdir().unwrap();
    let directory = open(folder.path());
    let mut parent = run_in_process("fs::lock::holds_a_lock_and_forks", folder.path());
    let output = BTreeSet::from([parent.next_line_after(": "), parent.next_line_after(": ")]);
    assert_eq!(output, BTreeSet::from(["right".to_owned(), parent.process.id().to_string()]));
    // the child has dropped its copy of the handle
    assert!(
        holder(Lock::exclusive(&directory, NAME)).starts_with(&format!("process {} (", parent.process.id()))
    );
    parent.process.kill().unwrap();
    parent.process.wait().unwrap();
    // the child still has the other end of the pipe
    assert!(parent.input.write_all(b"x").is_ok());
    Lock::exclusive(&directory, NAME).unwrap();
}

#[test]
#[ignore = "run by forks_during_locking_in_other_threads_leave_nothing_locked"]
fn forks_while_threads_lock() {
    let directory = open(&folder_of_the_test());
    let names = ["a", "b", "c"];
    let stop = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(|| {
                while stop.load(Ordering::Relaxed) == 0 {
                    let name = name.to_owned();
                    assert!(becomes_true(|| Lock::exclusive(&directory, &name).is_ok()), "{name}");
                }
            });
        }
        for _ in 0..200 {
            fork_and_stay(|| true);
        }
        stop.store(1, Ordering::Relaxed);
    });
    let free = names.iter().all(|name| becomes_true(|| Lock::exclusive(&directory, name).is_ok()));
    println!("\nparent: {}", if free { "free" } else { "locked" });
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn forks_during_locking_in_other_threads_leave_nothing_locked() {
    let folder = tempfile::tempdir().unwrap();
    let mut parent = run_in_process("fs::lock::forks_while_threads_lock", folder.path());
    assert_eq!(parent.next_line_after("parent: "), "free");
    parent.send_line();
    parent.end();
}
