//! Texts and messages of Kafka's tool for every file of the fixtures, with its options:
//! `tests/vectors/dump_texts.jsonl.gz`.

use std::path::Path;

use cordwood::inspect::internal_topics::MessageParser;
use cordwood::inspect::{Decoder, DumpOptions};
use cordwood::record::crc::crc32c;
use serde_json::Value;

use super::dump;
use crate::support::golden;

fn options_of(words: &Value) -> DumpOptions {
    let words: Vec<_> = words.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let mut options = DumpOptions::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut next = || words.next().unwrap();
        match word {
            "--deep-iteration" => options.deep_iteration = true,
            "--print-data-log" => options.print_data_log = true,
            "--skip-record-metadata" => options.skip_record_metadata = true,
            "--index-sanity-check" => options.index_sanity_check = true,
            "--verify-index-only" => options.verify_index_only = true,
            "--max-bytes" => options.max_bytes = next().parse().unwrap(),
            "--max-message-size" => options.max_message_size = next().parse().unwrap(),
            "--key-decoder-class" => options.key_decoder = Decoder::of_name(next()),
            "--value-decoder-class" => options.value_decoder = Decoder::of_name(next()),
            "--offsets-decoder" => options.message_parser = Some(MessageParser::Offsets),
            "--transaction-log-decoder" => options.message_parser = Some(MessageParser::TransactionLog),
            "--cluster-metadata-decoder" => options.message_parser = Some(MessageParser::ClusterMetadata),
            "--remote-log-metadata-decoder" => {
                options.message_parser = Some(MessageParser::RemoteLogMetadata);
            }
            "--share-group-state-decoder" => options.message_parser = Some(MessageParser::ShareGroupState),
            _ => panic!("{word}"),
        }
    }
    options
}

#[test]
fn each_file_of_the_fixtures_has_the_text_and_the_messages_of_kafkas_tool_with_each_option() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors/dump_texts.jsonl.gz");
    let root = golden::root();
    let prefix = format!("{}/", root.display());
    let (mut runs, mut failed, mut messages) = (0, 0, 0);
    for line in golden::lines(&vectors) {
        let file = root.join(line["file"].as_str().unwrap());
        let found = dump(&[file], options_of(&line["options"]));
        let name = format!("{} {}", line["file"], line["options"]);
        let stdout = found.stdout.replace(&prefix, "");
        assert_eq!(found.stderr.replace(&prefix, ""), line["err"].as_str().unwrap(), "{name}");
        assert_eq!(found.error.is_some(), line["failed"].as_bool().unwrap(), "{name}: {:?}", found.error);
        let expected = (line["bytes"].as_u64().unwrap() as usize, line["crc32c"].as_u64().unwrap() as u32);
        assert_eq!((stdout.len(), crc32c(stdout.as_bytes())), expected, "{name}\n{stdout:.2000}");
        runs += 1;
        failed += usize::from(found.error.is_some());
        messages += usize::from(!found.stderr.is_empty());
    }
    assert!(
        runs > 4000 && failed > 50 && messages > 100,
        "{runs} runs, {failed} failed, {messages} with messages"
    );
}
