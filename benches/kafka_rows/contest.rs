//! Both sides in alternating turns, and the table.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::arguments::Arguments;
use super::data::{Data, Kind, Shape};
use super::kafka::{Answer, Kafka};
use super::turns::{Clock, Pair, Spent};

/// The time that our side needs before a row is timed: it fills tables and caches, and nothing is compiled.
const OUR_WARM_UP: Duration = Duration::from_millis(200);

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    /// The name of Kafka's side.
    pub peer: &'static str,
    /// The ratio to reach.
    pub floor: Option<f64>,
    pub clock: Clock,
    /// The number of look-ups, batches or records of a pass.
    pub elements: usize,
}

/// The JVM beside this process, the files, and the rows so far.
#[derive(Debug)]
pub struct Contest {
    pub kafka: Kafka,
    pub arguments: Arguments,
    pub data: Data,
    pairs: Vec<Pair>,
}

impl Contest {
    /// Starts the JVM and warms it up with look-ups in both index classes.
    pub fn start(arguments: Arguments) -> Self {
        let mut kafka = Kafka::start();
        let data = Data::new(&arguments.data);
        println!("compared with Kafka {}; files in {}", kafka.version, arguments.data.display());
        let [offsets, times] =
            [(Kind::Offset, 2), (Kind::Time, 3)].map(|(kind, mib)| data.index(&mut kafka, kind, mib, 0));
        let millis = arguments.warm_up.as_millis().to_string();
        kafka.ask(&["warm-up", &millis, offsets.to_str().unwrap(), times.to_str().unwrap()]);
        println!("{}", Pair::ROW_HEAD);
        Self { kafka, arguments, data, pairs: Vec::new() }
    }

    /// Whether the row is measured.
    pub fn wants(&self, name: &str) -> bool {
        self.arguments.wants(name)
    }

    /// The log of look-ups and recovery.
    pub fn log(&mut self, batch_kib: usize) -> PathBuf {
        let shape = Shape { batch_kib, codec: "none", mib: self.arguments.log_mib };
        self.data.log(&mut self.kafka, shape)
    }

    /// A log that is scanned.
    pub fn scanned_log(&mut self, batch_kib: usize, codec: &'static str) -> PathBuf {
        let shape = Shape { batch_kib, codec, mib: self.arguments.scan_mib };
        self.data.log(&mut self.kafka, shape)
    }

    /// Times the passes of both sides over the same work, in turns. A pass returns a number that depends on
    /// all answers. `command`: Kafka's, without its last argument, the number of passes.
    ///
    /// # Panics
    /// If a number differs from that of the first pass.
    pub fn race(&mut self, row: Row, ours: impl FnMut() -> i64, command: &[&str]) {
        let ours = timed(ours);
        self.race_turns(row, ours, |kafka, passes| {
            let count = passes.to_string();
            numbers(&kafka.ask(&[command, &[&count]].concat()))
        });
    }

    /// As [`Contest::race`], with turns of any number of passes, which return their time and the sum of the
    /// numbers.
    pub fn race_turns(
        &mut self,
        row: Row,
        mut ours: impl FnMut(usize) -> (Spent, i64),
        mut theirs: impl FnMut(&mut Kafka, usize) -> (Spent, i64),
    ) {
        let Row { name, peer, floor, clock, elements } = row;
        let Self { kafka, arguments, .. } = self;
        let (turn, rounds) = (arguments.turn, arguments.rounds);
        let right = ours(1).1;
        let check = |side, passes: usize, (spent, sum): (Spent, i64)| {
            assert_eq!(sum, right.wrapping_mul(passes as i64), "{name}: {side}, {passes} passes");
            spent
        };
        let mut theirs = |passes| check("Kafka", passes, theirs(kafka, passes));
        let mut ours = |passes| check("cordwood", passes, ours(passes));
        let their_passes = warmed_up(arguments.row_warm_up, turn, &mut theirs);
        let our_passes = warmed_up(OUR_WARM_UP.min(arguments.row_warm_up), turn, &mut ours);
        let turns = (0..rounds).map(|round| {
            if round % 2 == 0 {
                let first = ours(our_passes);
                (first, theirs(their_passes))
            } else {
                let first = theirs(their_passes);
                (ours(our_passes), first)
            }
        });
        let turns = turns.collect();
        let elements = ((elements * our_passes) as u64, (elements * their_passes) as u64);
        let pair = Pair { name: name.clone(), peer, floor, clock, elements, turns };
        println!("{}", pair.row());
        self.pairs.push(pair);
    }

    /// Writes the CSV and frees the scratch space; false if a floor was missed and `--strict` is given.
    pub fn finish(self) -> bool {
        let Self { arguments, data, pairs, kafka } = self;
        drop(kafka);
        assert!(!pairs.is_empty(), "no row has such a name");
        Pair::record(&pairs, &arguments.record);
        let missed = pairs.iter().filter(|pair| pair.is_missed()).count();
        let floors = pairs.iter().filter(|pair| pair.floor.is_some()).count();
        println!(
            "{} of {floors} floors reached; recorded in {}",
            floors - missed,
            arguments.record.display()
        );
        let _ = fs::remove_dir_all(data.scratch());
        missed == 0 || !arguments.is_strict
    }
}

/// A turn of passes by this thread, timed.
fn timed(mut pass: impl FnMut() -> i64) -> impl FnMut(usize) -> (Spent, i64) {
    move |passes| Spent::on(|| (0..passes).fold(0, |sum: i64, _| sum.wrapping_add(pass())))
}

/// The times and the sum of an answer.
pub fn numbers(answer: &Answer) -> (Spent, i64) {
    (answer.spent(), answer.number("sum"))
}

/// Plays turns until they have taken that much CPU time (compilers get as much of busy cores as the work
/// does) and no longer become faster by more than a tenth, or until four times as much. Returns the number of
/// passes that fill a turn.
fn warmed_up(time: Duration, turn: Duration, play: &mut impl FnMut(usize) -> Spent) -> usize {
    let (mut played, mut passes, mut last) = (Duration::ZERO, 1, 0.0);
    loop {
        let spent = play(passes);
        played += spent.cpu;
        let pass = spent.cpu.as_secs_f64() / passes as f64;
        let is_steady = pass > last * 0.9;
        last = pass;
        let is_filled = spent.wall >= turn / 2;
        let needed = (passes as f64 * turn.as_secs_f64() / spent.wall.as_secs_f64()).ceil();
        // a first pass may be slow, and a short one says little
        passes = (needed as usize).clamp(1, passes * 16);
        if is_filled && (played >= 4 * time || played >= time && is_steady) {
            return passes;
        }
    }
}
