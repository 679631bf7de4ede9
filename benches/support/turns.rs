//! Two sides that take turns at the same work: what each turn took, and how many times faster one was than the other.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What a piece of work took.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    pub wall: Duration,
    /// Of the thread that did it, or of the process where it was many.
    pub cpu: Duration,
}

impl Spent {
    /// Times what this thread does.
    pub fn on<T>(work: impl FnOnce() -> T) -> (Self, T) {
        Self::by(ClockId::ThreadCPUTime, work)
    }

    /// Times what all threads of the process do.
    pub fn of_process<T>(work: impl FnOnce() -> T) -> (Self, T) {
        Self::by(ClockId::ProcessCPUTime, work)
    }

    fn by<T>(clock: ClockId, work: impl FnOnce() -> T) -> (Self, T) {
        let (wall, cpu) = (Instant::now(), cpu_time(clock));
        let done = work();
        let spent = Self { wall: wall.elapsed(), cpu: cpu_time(clock).saturating_sub(cpu) };
        (spent, done)
    }
}

fn cpu_time(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Which time a ratio is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Of the thread's CPU: what it costs, whoever else wants the cores.
    Cpu,
    /// Where waiting is what counts.
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
    /// What the other side is.
    pub peer: &'static str,
    /// How many times faster ours has to be.
    pub floor: Option<f64>,
    pub clock: Clock,
    /// What the times are divided by; of ours and of the other side's.
    pub elements: (u64, u64),
    /// What each turn took, ours first.
    pub turns: Vec<(Spent, Spent)>,
}

/// Median, least and largest.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub largest: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, largest) = (values[0], values[values.len() - 1]);
        Self {
            median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
            least,
            largest,
        }
    }

    fn show(self) -> String {
        format!("{:.3} ({:.3}–{:.3})", self.median, self.least, self.largest)
    }
}

impl Pair {
    /// How many times faster ours was than the other side in the same turn.
    pub fn ratio(&self, clock: Clock) -> Spread {
        let per_element = |spent: &Spent, elements: u64| clock.of(spent) / elements as f64;
        Spread::of(
            self.turns.iter().map(|(ours, theirs)| {
                per_element(theirs, self.elements.1) / per_element(ours, self.elements.0)
            }),
        )
    }

    /// µs an element.
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
            ratio.least,
            ratio.largest,
            other.median,
        )
    }

    /// What the columns of [`Pair::line`] are.
    pub const HEAD: &'static str = "name                     beside                         time           ours, µs an element      theirs, µs an element  ratio               other floor";

    /// All turns, a line each side, ns an element.
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
