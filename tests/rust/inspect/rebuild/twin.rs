//! Random logs: the files are those of a naive writer, whatever the number of threads.

use cordwood::config::{LogConfig, StatedSettings};
use cordwood::inspect::rebuild::{RebuildOptions, rebuild};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::compared;
use crate::support::generated::{ALL, batches, steps};
use crate::support::partition::{Indexing, PartitionBuilder};
use crate::support::reading::folder;

proptest! {
    #![proptest_config(Config { cases: 150, rng_seed: RngSeed::Fixed(17), failure_persistence: None, ..Config::default() })]

    #[test]
    fn indexes_are_those_of_a_naive_writer(
        steps in steps(&ALL, 40),
        interval in 0_u32..700,
        segment_bytes in 200_usize..3000,
        threads in 1_usize..4,
    ) {
        let batches = batches(&steps);
        prop_assume!(!batches.is_empty());
        let folder = folder();
        let partition = PartitionBuilder::rolled(Indexing::every(interval as usize), segment_bytes, batches);
        let directory = partition.write(folder.path(), "orders-0");
        let config = LogConfig { index_interval_bytes: interval, stated: StatedSettings::ALL, ..LogConfig::default() };
        let report = compared(&directory, Some(config.clone()));
        for file in &report.files {
            let is_snapshot = file.file.extension().is_some_and(|extension| extension == "snapshot");
            prop_assert_eq!(file.state.code(), if is_snapshot { "missing" } else { "unchanged" }, "{}", file);
        }
        let options = RebuildOptions { config: Some(config), threads, ..RebuildOptions::default() };
        prop_assert_eq!(rebuild(&directory, &options).unwrap(), report.clone());
        // an interval that the indexes show writes the same indexes
        let inferred = compared(&directory, None);
        if inferred.interval_source.code() == "inferred" {
            prop_assert_eq!(inferred.files, report.files);
        }
    }
}
