//! Two sides that do the same work in alternating turns: the time of each turn, and the ratio.

use std::fs::File;
use std::io::Write;
use std::ops::AddAssign;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The time of a piece of work.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    pub wall: Duration,
    /// CPU time of the thread that did it, or of the process if there were several threads.
    pub cpu: Duration,
}

impl Spent {
    /// Times the work of this thread.
    pub fn on<T>(work: impl FnOnce() -> T) -> (Self, T) {
        Self::by(ClockId::ThreadCPUTime, work)
    }

    /// Times the work of all threads of the process.
    pub fn of_process<T>(work: impl FnOnce() -> T) -> (Self, T) {
        Self::by(ClockId::ProcessCPUTime, work)
    }

    /// No time.
    pub const ZERO: Self = Self { wall: Duration::ZERO, cpu: Duration::ZERO };

    fn by<T>(clock: ClockId, work: impl FnOnce() -> T) -> (Self, T) {
        let (wall, cpu) = (Instant::now(), cpu_time(clock));
        let done = work();
        let spent = Self { wall: wall.elapsed(), cpu: cpu_time(clock).saturating_sub(cpu) };
        (spent, done)
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }
}

fn cpu_time(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The clock of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The thread's CPU time: the cost, independent of other load on the cores.
    Cpu,
    /// Wall time, which includes waiting.
    Wall,
}

impl Clock {
    fn of(self, spent: &Spent) -> f64 {
        match self {
            Self::Cpu => spent.cpu,
            Self::Wall => spent.wall,
        }
        .as_secs_f64()
    }
}

/// A comparison.
#[derive(Debug)]
pub struct Pair {
    pub name: String,
    /// The name of the other side.
    pub peer: &'static str,
    /// The minimum ratio by which the library must be faster.
    pub floor: Option<f64>,
    pub clock: Clock,
    /// The divisors of the times: the library's and the other side's.
    pub elements: (u64, u64),
    /// The times of each turn, the library's first.
    pub turns: Vec<(Spent, Spent)>,
}

/// Median, minimum and maximum.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// # Panics
    /// Without values.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (values[0], values[values.len() - 1]);
        Self { median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]), min, max }
    }

    fn show(self) -> String {
        format!("{:.3} ({:.3}–{:.3})", self.median, self.min, self.max)
    }
}

impl Pair {
    /// How many times faster the library was than the other side in the same turn.
    pub fn ratio(&self, clock: Clock) -> Spread {
        let per_element = |spent: &Spent, elements: u64| clock.of(spent) / elements as f64;
        Spread::of(
            self.turns.iter().map(|(ours, theirs)| {
                per_element(theirs, self.elements.1) / per_element(ours, self.elements.0)
            }),
        )
    }

    /// µs per element.
    fn micros(&self, clock: Clock) -> (Spread, Spread) {
        let of = |spent: &Spent, elements: u64| clock.of(spent) * 1e6 / elements as f64;
        let ours = Spread::of(self.turns.iter().map(|turn| of(&turn.0, self.elements.0)));
        (ours, Spread::of(self.turns.iter().map(|turn| of(&turn.1, self.elements.1))))
    }

    /// Whether the floor was missed.
    pub fn is_missed(&self) -> bool {
        self.floor.is_some_and(|floor| self.ratio(self.clock).median < floor)
    }

    /// A line of the table.
    pub fn line(&self) -> String {
        let (ours, theirs) = self.micros(self.clock);
        let [ratio, other] = match self.clock {
            Clock::Cpu => [Clock::Cpu, Clock::Wall],
            Clock::Wall => [Clock::Wall, Clock::Cpu],
        }
        .map(|clock| self.ratio(clock));
        let floor = self.floor.map_or_else(String::new, |floor| format!("{floor:.1}"));
        let verdict = match (self.floor, self.is_missed()) {
            (None, _) => "",
            (_, false) => "kept",
            (_, true) => "MISSED",
        };
        format!(
            "{:<24} {:<30} {:<4} {:>26} {:>26} {:>6.2} ({:.2}–{:.2}) {:>6.2} {floor:>5} {verdict}",
            self.name,
            self.peer,
            format!("{:?}", self.clock).to_lowercase(),
            ours.show(),
            theirs.show(),
            ratio.median,
            ratio.min,
            ratio.max,
            other.median,
        )
    }

    /// The headings of [`Pair::line`].
    pub const HEAD: &'static str = "name                     compared with                  time           ours, µs an element      theirs, µs an element  ratio               other floor";

    /// A line of the table of read paths.
    pub fn row(&self) -> String {
        let (ours, theirs) = self.micros(self.clock);
        let ratio = self.ratio(self.clock);
        let floor = self.floor.map_or_else(String::new, |floor| format!("{floor:.1}"));
        let verdict = match (self.floor, self.is_missed()) {
            (None, _) => "",
            (_, false) => "reached",
            (_, true) => "MISSED",
        };
        format!(
            "{:<46} {:<36} {:>11} {:>11} {:>8.2} {:>16} {floor:>6} {verdict}",
            self.name,
            self.peer,
            format!("{:.1}", theirs.median * 1e3),
            format!("{:.1}", ours.median * 1e3),
            ratio.median,
            format!("({:.2}–{:.2})", ratio.min, ratio.max),
        )
    }

    /// The headings of [`Pair::row`].
    pub const ROW_HEAD: &'static str = "row                                            compared with                           Kafka, ns    ours, ns    ratio        (min–max)  floor";

    /// All turns, one line per side, ns per element.
    pub fn record(pairs: &[Self], path: &Path) {
        let mut file = File::create(path).unwrap();
        writeln!(file, "benchmark,side,turn,elements,cpu_ns,wall_ns").unwrap();
        for pair in pairs {
            for (turn, (ours, theirs)) in pair.turns.iter().enumerate() {
                for (side, spent, elements) in
                    [("cordwood", ours, pair.elements.0), (pair.peer, theirs, pair.elements.1)]
                {
                    let [cpu, wall] =
                        [spent.cpu, spent.wall].map(|time| time.as_secs_f64() * 1e9 / elements as f64);
                    writeln!(file, "{},{side},{},{elements},{cpu:.1},{wall:.1}", pair.name, turn + 1)
                        .unwrap();
                }
            }
        }
    }
}
