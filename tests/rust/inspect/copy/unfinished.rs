//! An unfinished copy for everything else: it is no log to a writer, and a finding to a verification.

use std::fs;
use std::path::Path;

use cordwood::Error;
use cordwood::inspect::copy::{CopyOptions, copy, copy_data_directory};
use cordwood::inspect::verify::{Rule, Severity, VerifyOptions, verify};
use cordwood::log::Ranges;
use cordwood::writer::{LogWriter, WriterOptions};

use super::support::{copied, files, open, same_files};
use crate::support::golden::intact;
use crate::support::reading::folder;

const JOURNAL: &str = ".cordwood.copy";

fn findings(path: &Path) -> Vec<(Rule, Severity, String)> {
    let found = verify(&[path.to_owned()], &VerifyOptions::default(), |_| Ok(())).unwrap().findings;
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    found.iter().map(|finding| (finding.rule, finding.severity, name(&finding.file))).collect()
}

fn assert_refused_and_found(path: &Path, what: &str) {
    let before = files(path);
    for error in [
        LogWriter::open(path, &WriterOptions::default()).map(drop).unwrap_err(),
        LogWriter::plan_recovery(path, &WriterOptions::default()).map(drop).unwrap_err(),
    ] {
        match &error {
            Error::UnsupportedFormat { place, expected, .. } => {
                assert!(place.file.ends_with(JOURNAL), "{what}: {error}");
                assert!(
                    expected.contains("run the copy again") && expected.contains("remove"),
                    "{what}: {error}"
                );
            }
            _ => panic!("{what}: {error}"),
        }
    }
    assert!(files(path) == before, "{what}");
    let expected = (Rule::UnfinishedCopy, Severity::Error, JOURNAL.to_owned());
    // nothing else: `recover`, which other rules name, would not open it
    assert_eq!(findings(path), [expected], "{what}");
}

#[test]
fn a_writer_refuses_an_unfinished_copy_and_verify_finds_it() {
    let folder = folder();
    let source = intact().into_iter().find(|partition| partition.case == "01-small").unwrap().dir;
    let to = folder.path().join("orders-0");
    let ended =
        copy(&source, &to, &CopyOptions::default(), &mut |_| Err(Error::Interrupted("the test".into())));
    assert!(matches!(ended, Err(Error::Interrupted(_))));
    assert!(files(&to).keys().any(|name| name.ends_with(".log.cleaned")));
    assert_refused_and_found(&to, "with segments");
    // ended before the first segment
    let early = folder.path().join("early-0");
    fs::create_dir(&early).unwrap();
    let journal = fs::read(to.join(JOURNAL)).unwrap();
    fs::write(early.join(JOURNAL), &journal).unwrap();
    assert_refused_and_found(&early, "without a segment");
    // committed, and not yet ended
    copied(&source, &to, &CopyOptions::default()).unwrap();
    assert!(findings(&to).is_empty());
    fs::write(to.join(JOURNAL), &journal).unwrap();
    assert_refused_and_found(&to, "committed");
    copied(&source, &to, &CopyOptions::default()).unwrap();
    copied(&source, &early, &CopyOptions::default()).unwrap();
    for path in [to, early] {
        LogWriter::open(&path, &WriterOptions::default()).unwrap().close().unwrap();
        assert!(findings(&path).is_empty());
        assert_eq!(open(&path).log_end_offset().unwrap(), 370);
    }
}

#[test]
fn an_unfinished_copy_of_a_data_directory_is_found_too() {
    let folder = folder();
    let small = intact().into_iter().find(|partition| partition.case == "01-small").unwrap().dir;
    let source = folder.path().join("source");
    for name in ["aaa-0", "bbb-0"] {
        same_files(&small, &source.join(name));
    }
    let log = source.join("bbb-0/00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    bytes[3000] ^= 1;
    fs::write(&log, bytes).unwrap();
    let to = folder.path().join("copy");
    let copied = |end_offset| {
        let ranges = Ranges { end_offset, ..Ranges::default() };
        let options = CopyOptions { ranges, ..CopyOptions::default() };
        copy_data_directory(&source, &to, &options, |_| true, &mut |_| Ok(()))
    };
    assert!(matches!(copied(Some(200)), Err(Error::Corrupt { .. })));
    let path = |rule: Rule| {
        let found =
            verify(std::slice::from_ref(&to), &VerifyOptions::default(), |_| Ok(())).unwrap().findings;
        found.into_iter().filter(|found| found.rule == rule).map(|found| found.file).collect::<Vec<_>>()
    };
    assert_eq!(
        path(Rule::UnfinishedCopy),
        [to.clone(), to.join("aaa-0"), to.join("bbb-0")].map(|of| of.join(JOURNAL))
    );
    fs::remove_dir_all(source.join("bbb-0")).unwrap();
    same_files(&small, &source.join("bbb-0"));
    copied(Some(200)).unwrap();
    assert!(path(Rule::UnfinishedCopy).is_empty());
}
