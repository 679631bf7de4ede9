//! Kafka's own classes in a JVM process that takes turns with this one: `benches/kafka`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::turns::Spent;

/// The JVM.
#[derive(Debug)]
pub struct Kafka {
    process: Child,
    turns: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
    /// Kafka's version.
    pub version: String,
}

/// The time and the result of a turn.
#[derive(Debug, Clone, Copy)]
pub struct TurnResult {
    pub spent: Spent,
    pub log_end_offset: i64,
    /// Size of the `.log`, bytes.
    pub size: u64,
}

impl Kafka {
    /// Builds the Maven project, and starts it.
    ///
    /// # Panics
    /// If Maven or Java is missing or fails.
    pub fn start() -> Self {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("kafka");
        let built =
            Command::new("mvn").args(["-B", "-q", "-f"]).arg(project.join("pom.xml")).arg("compile").status();
        assert!(built.expect("mvn is needed").success(), "mvn compile in {}", project.display());
        let jars = std::fs::read_to_string(project.join("target/classpath.txt")).unwrap();
        let mut path = OsString::from(project.join("target/classes"));
        path.push(":");
        path.push(jars.trim());
        let mut process = Command::new("java")
            .args(["-Xms512m", "-Xmx512m", "-cp"])
            .arg(path)
            .arg("cordwood.bench.Turns")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // SLF4J's message about a missing logger, and the error of a failed turn
            .stderr(Stdio::inherit())
            .spawn()
            .expect("java is needed");
        let turns = process.stdin.take();
        let mut answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let version = answers.next().unwrap().unwrap().trim_start_matches("version=").to_owned();
        Self { process, turns, answers, version }
    }

    /// Sends a command and returns the time it took.
    ///
    /// # Panics
    /// If Kafka throws.
    pub fn turn(&mut self, words: &[&str]) -> TurnResult {
        let answer = self.ask(words);
        TurnResult {
            spent: answer.spent(),
            log_end_offset: answer.number("end"),
            size: answer.number("size").try_into().unwrap(),
        }
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Panics
    /// If Kafka throws.
    pub fn ask(&mut self, words: &[&str]) -> Answer {
        writeln!(self.turns.as_ref().unwrap(), "{}", words.join("\t")).unwrap();
        let answer = self.answers.next().expect("the JVM runs").unwrap();
        assert!(!answer.starts_with("error="), "{words:?}: {answer}");
        Answer(answer)
    }
}

/// The answer of a command: names and numbers.
#[derive(Debug)]
pub struct Answer(String);

impl Answer {
    /// The number with a name.
    ///
    /// # Panics
    /// If there is none.
    pub fn number(&self, name: &str) -> i64 {
        let field = self.0.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        field.and_then(|field| field.parse().ok()).unwrap_or_else(|| panic!("{name}: {}", self.0))
    }

    /// The time of the timed work.
    pub fn spent(&self) -> Spent {
        let time = |name| Duration::from_nanos(self.number(name).try_into().unwrap());
        Spent { wall: time("wall"), cpu: time("cpu") }
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        // the JVM ends at the end of its input
        self.turns = None;
        let _ = self.process.wait();
    }
}
