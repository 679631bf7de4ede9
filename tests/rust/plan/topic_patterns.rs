//! Hostile patterns of topics: an error or an answer within a short time and bounded memory, on a small
//! stack.

use std::time::Duration;

use cordwood::plan::TopicPattern;
use proptest::prelude::*;

use crate::support::cpu_time;
use crate::support::fixed_seed;

/// Of the processor, without optimisation.
const MAX_TIME: Duration = Duration::from_secs(1);
const MAX_BYTES: u64 = 128 << 20;
/// The default of a thread of Java is 1 MiB.
const STACK_BYTES: usize = 512 << 10;

/// Compiles a pattern, and searches it in names as long as a directory may have.
fn search(pattern: &str) -> Result<Vec<Result<bool, String>>, String> {
    let names = ["", "orders", &"a".repeat(249), &"ab".repeat(124), &format!("{}!", "a".repeat(248))];
    let compiled = TopicPattern::new(pattern)?;
    assert_eq!((compiled.as_str(), compiled.to_string().as_str()), (pattern, pattern));
    Ok(names.iter().map(|name| compiled.is_in(name)).collect())
}

/// The same, with its time and memory.
fn check(pattern: &str) {
    let shown: String = pattern.chars().take(60).collect();
    let found = std::thread::scope(|scope| {
        let search = || {
            let mut found = None;
            let memory = allocation_counter::measure(|| found = Some(search(pattern)));
            (found, memory.bytes_max, cpu_time())
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, search).unwrap().join()
    });
    let (found, bytes, time) = found.unwrap_or_else(|_| panic!("a panic: {shown}"));
    assert!(time < MAX_TIME, "{time:?}: {shown}");
    assert!(bytes < MAX_BYTES, "{bytes} bytes: {shown}");
    if let Some(Err(error)) = found {
        assert!(!error.is_empty(), "{shown}");
    }
}

#[test]
fn huge_repetitions() {
    for pattern in [
        "a{999999999}",
        "a{999999999,}",
        "a{0,999999999}",
        "a{999999999,1}",
        "a{9999999999}",
        "(a{1000}){1000}",
        "((((a{100}){100}){100}){100}){100}",
        "(a{999999999}){999999999}",
        "((a{999999999}){999999999}){999999999}",
        "((a{0,999999999}){0,999999999}){0,999999999}",
        "(?:(?=a)a{999999999}){999999999}",
        "(?:(?=a)a){999999999}",
        "(?:(?=a)a){0,999999999}b",
        "(?:(?:(?=a)a){999999999}){999999999}",
        "(?:(?:(?:(?=a)a){999999999}){999999999}){999999999}",
        "(?:(?=){999999999}){999999999}",
        "(?:(?:)*)*b",
        "(?:(?=a)|b){999999999}",
        "(?>a{999999999})",
        "(?<=a{999999999})b",
        "(?<=(?:(?=a)a){999999999})b",
        "(?<=a{0,999999999})b",
        "(?<!(a|bb)*)b",
        "[a-z]{999999999}",
        r"\w{100000}",
        r"(?i)\w{100000}",
        r"\Qab\E{999999999}",
    ] {
        check(pattern);
    }
}

#[test]
fn catastrophic_backtracking() {
    for pattern in [
        "(a*)*b",
        "(a+)+b",
        "(a|a)*b",
        "(a|aa)+b",
        "(?=(a+)+b)a",
        "(?=(a|aa)+b)",
        "(?:(?=a)a+)+b",
        "(?:(?=a)a*)*b",
        "(?:(?:(?=a)a*)*)*b",
        "(?!(a*)*b)(a*)*b",
        "(?<=(a+)+)b",
        "(?<!a)(?:(?=a)a+)+!b",
        "(?:a*?(?=a))+b",
        "(?>(a*)*)b",
        "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(?=b)c",
    ] {
        check(pattern);
    }
}

#[test]
fn deep_groups() {
    for opening in ["(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"] {
        for depth in [10, 40, 60, 100, 1000, 100_000] {
            check(&format!("{}a{}", opening.repeat(depth), ")".repeat(depth)));
            check(&format!("{}a{}", opening.repeat(depth), ")*".repeat(depth)));
            check(&opening.repeat(depth));
            check(&format!("a{}", ")".repeat(depth)));
        }
        check(&format!("{}a{}", opening.repeat(50), "){99}".repeat(50)));
        check(&format!("{}a{}", opening.repeat(50), "|b){0,99}".repeat(50)));
    }
}

#[test]
fn patterns_of_a_megabyte() {
    const MEGABYTE: usize = 1 << 20;
    for part in [
        "a",
        "a|",
        ".*",
        "a*",
        "a?",
        "a*?b",
        "(a)",
        "(a|b)",
        "[a-z]",
        "[^a]",
        r"\w",
        r"\W",
        r"\b",
        "^",
        "$",
        "|",
        "[",
        "{",
        "a{",
        "a{1}",
        "a{2}",
        "a{99}",
        "(a*)*",
        "(?:a)",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!a)",
        "(?<=a*)",
        "(?>a)",
        "(?>a*)",
        "(?i:a)",
        "(?=[a-z]{900})",
        "(?!\\w{3})",
        "(?>[a-z]{99})",
        "(?=a)b|",
        r"\Qa\E",
        r"\Q",
        r"\E",
        r"\.",
        "\\",
        "*",
        ")",
        "é",
        "\u{10ffff}",
        "\0",
        " ",
        "#",
        "&&",
        "~~",
        "[~~]",
        "[--]",
        r"\A",
        r"\z",
        "orders-[0-9]+|",
    ] {
        check(&part.repeat(MEGABYTE / part.len()));
        check(&format!("(?=b){}", part.repeat(MEGABYTE / part.len())));
        check(&format!("[{}]", part.repeat(MEGABYTE / part.len())));
        check(&format!("({})*", part.repeat(MEGABYTE / part.len())));
    }
}

/// The most that is accepted of each kind.
#[test]
fn patterns_just_below_the_limits() {
    const MOST: usize = 100_000;
    for (part, size) in [
        ("a", 1),
        ("a|", 2),
        ("a*", 5),
        (".*", 5),
        ("[a-z]", 35),
        (r"\w", 30),
        (r"\W", 30),
        (r"\b", 1),
        ("(?=a)", 101),
        ("(?<=a)", 101),
        ("(?>a*)", 105),
        ("(?=[a-z]{20})", 1000),
        ("(?=a)b|", 103),
        ("(a|b)*", 9),
        ("(?:(?=a)a*)*", 110),
        (r"(?=\w{30})", 1100),
    ] {
        check(&part.repeat(MOST / size));
    }
    let names: Vec<String> = (0..500).map(|number| format!("orders-of-the-region-{number:05}")).collect();
    let pattern = TopicPattern::new(&names.join("|")).unwrap();
    assert_eq!(names.iter().map(|name| pattern.is_in(name)).collect::<Vec<_>>(), vec![Ok(true); 500]);
    assert_eq!(pattern.is_in("orders-of-the-region-00500"), Ok(false));
}

proptest! {
    #![proptest_config(fixed_seed(300))]

    #[test]
    fn random_texts(text in ".{0,40}") {
        let _ = search(&text);
    }

    #[test]
    fn random_parts(
        parts in proptest::collection::vec(
            proptest::sample::select(&[
                "a", "b", ".", "(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", ")", ")*", "){2,3}", "*", "+", "?", "{2}", "{0}",
                "{3,}", "{99}", "|", "[a-b]", "[^a]", "[~]", r"\d", r"\W", r"\b", r"\Qa.\E", "^", "$", r"\z", r"\.", "*+", "+?",
            ][..]),
            0..15,
        ),
    ) {
        let _ = search(&parts.concat());
    }
}
