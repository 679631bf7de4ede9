//! Options with an entry for each of very many partitions. If an entry was compared with all before it, these
//! tests would take long.

use cordwood::plan::{Code, Offsets, SourceOptions, Start};

const PARTITIONS: i32 = 30_000;

/// The offset or time of the first entry: no number of seven digits looks like a date.
const FIRST: i32 = 1_000_000;

fn read(name: &str, text: &str) -> Result<SourceOptions, String> {
    let options = SourceOptions::from_texts([("path", "data"), (name, text)], &mut Vec::new());
    options.map_err(|error| {
        assert_eq!(error.code, Code::BadOption);
        error.reason
    })
}

/// `{"orders":{"0":1000000,"1":1000001,…}}`
fn of_one_topic() -> String {
    let entries: Vec<String> =
        (0..PARTITIONS).map(|partition| format!("\"{partition}\":{}", FIRST + partition)).collect();
    format!("{{\"orders\":{{{}}}}}", entries.join(","))
}

/// `{"t0":{"0":1000000},"t1":{"0":1000001},…}`
fn of_many_topics() -> String {
    let entries: Vec<String> =
        (0..PARTITIONS).map(|number| format!("\"t{number}\":{{\"0\":{}}}", FIRST + number)).collect();
    format!("{{{}}}", entries.join(","))
}

#[test]
fn offsets_of_very_many_partitions_are_read() {
    let one: Offsets = (0..PARTITIONS)
        .map(|partition| (("orders".to_owned(), partition), (FIRST + partition).into()))
        .collect();
    let many: Offsets =
        (0..PARTITIONS).map(|number| ((format!("t{number}"), 0), (FIRST + number).into())).collect();
    for (text, expected) in [(of_one_topic(), one), (of_many_topics(), many)] {
        let options = read("startingOffsets", &text).unwrap();
        assert_eq!(options.starting_offsets, Some(Start::Offsets(expected.clone())));
        let options = read("endingOffsetsByTimestamp", &text).unwrap();
        assert_eq!(options.ending_offsets_by_timestamp, Some(expected));
        let written = options.to_texts();
        assert_eq!(read("endingOffsetsByTimestamp", &written["endingOffsetsByTimestamp"]), Ok(options));
    }
}

#[test]
fn a_name_that_is_there_twice_is_found_among_very_many() {
    for (text, twice, name) in [
        (of_one_topic(), r#","0":5}}"#, "\"0\""),
        (of_one_topic(), r#","29999":5}}"#, "\"29999\""),
        (of_many_topics(), r#","t15000":{"1":5}}"#, "\"t15000\""),
    ] {
        let whole = text.trim_end_matches('}');
        let text =
            if text.starts_with("{\"t0\"") { format!("{whole}}}{twice}") } else { format!("{whole}{twice}") };
        let error = read("startingOffsets", &text).unwrap_err();
        assert!(error.contains(&format!("{name} is there twice")), "{error:.300}");
    }
}
