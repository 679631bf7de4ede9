//! Damage of a sector, a page or a header before intact batches, in a log that ends in a torn batch or in
//! zeros: the batches between them are read, and a recovery refuses to cut them.

use std::collections::BTreeMap;

use cordwood::log::OnDamage;
use cordwood::writer::{LogWriter, WriterOptions};
use proptest::prelude::*;

use crate::support::batches::{BatchV2, Built, Rec};
use crate::support::fixed_seed;
use crate::support::partition::file_name;
use crate::support::reading::{IOS, all, folder, open, write};

/// What is written over the log.
#[derive(Debug, Clone)]
enum Damage {
    /// Zeros from a multiple of their number on.
    ZeroedSector(usize),
    /// Other bytes, from the start of a batch on: they may end within the offset of a later batch, which no
    /// checksum covers.
    Noise(Vec<u8>),
}

fn sector() -> impl Strategy<Value = Damage> {
    prop_oneof![Just(512_usize), Just(4096)].prop_map(Damage::ZeroedSector)
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        sector(),
        proptest::collection::vec(any::<u8>(), 16..700).prop_map(|mut bytes| {
            // no possible offset: what follows a possible header may be its records
            bytes[0] |= 0x40;
            Damage::Noise(bytes)
        }),
    ]
}

/// How the log ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Whole,
    /// It is cut after the damage.
    Torn(prop::sample::Index),
    /// So many follow, as in a preallocated file.
    Zeros(usize),
}

fn built(sizes: &[(usize, u8)]) -> Vec<Built> {
    let mut next = 0;
    let build = |(size, count): &(usize, u8)| {
        let batch = (0..i64::from(*count)).fold(BatchV2::new(next), |batch, n| {
            // no two bytes in a row look like a length
            let value: Vec<u8> = (0..*size).map(|at| (at * 31 + size) as u8 | 0x80).collect();
            batch.record(Rec::at(next + n).value(value))
        });
        next += i64::from(*count);
        batch.build()
    };
    sizes.iter().map(build).collect()
}

proptest! {
    #![proptest_config(fixed_seed(1500))]

    #[test]
    fn intact_batches_between_damage_and_a_torn_end_are_read_and_not_cut(
        sizes in proptest::collection::vec((0_usize..400, 1_u8..4), 3..120),
        first in (damage(), any::<prop::sample::Index>()),
        second in proptest::option::of((sector(), any::<prop::sample::Index>())),
        end in prop_oneof![
            Just(End::Whole),
            any::<prop::sample::Index>().prop_map(End::Torn),
            prop_oneof![2_usize..20, Just(4096)].prop_map(End::Zeros),
        ],
        io in prop::sample::select(&IOS[..]),
    ) {
        let built = built(&sizes);
        // noise after intact batches may look like anything
        let second = second.filter(|_| matches!(first.0, Damage::ZeroedSector(_)));
        let damages: Vec<_> = std::iter::once(first).chain(second).collect();
        let whole: Vec<u8> = built.iter().flat_map(|batch| batch.bytes.clone()).collect();
        let starts: Vec<usize> = built
            .iter()
            .scan(0, |at, batch| Some(std::mem::replace(at, *at + batch.bytes.len())))
            .collect();
        let mut log = whole.clone();
        let mut damaged_to = 0;
        for (damage, place) in &damages {
            let (from, bytes) = match damage {
                Damage::ZeroedSector(size) => (place.index(log.len()) / size * size, vec![0; *size]),
                Damage::Noise(bytes) => (*place.get(&starts), bytes.clone()),
            };
            let to = log.len().min(from + bytes.len());
            log[from..to].copy_from_slice(&bytes[..to - from]);
            damaged_to = damaged_to.max(to);
        }
        match end {
            End::Whole => {}
            End::Torn(cut) => log.truncate(damaged_to + cut.index(log.len() - damaged_to + 1)),
            End::Zeros(count) => log.resize(log.len() + count, 0),
        }
        // a single byte may be what follows a value that is the last of its record
        let last_start = starts.iter().rfind(|start| **start < log.len());
        prop_assume!(matches!(end, End::Whole) || last_start.is_none_or(|start| start + 1 < log.len()));
        let intact: Vec<(&Built, usize)> = built
            .iter()
            .zip(starts.iter().copied())
            .filter(|(batch, at)| log.get(*at..at + batch.bytes.len()) == Some(&batch.bytes[..]))
            .collect();
        // no checksum covers an offset: zeros in that of the first batch after damage may be the next offset
        prop_assume!(!built.iter().zip(&starts).any(|(batch, at)| {
            let (offset, rest) = batch.bytes.split_at(8);
            log.get(at + 8..at + batch.bytes.len()) == Some(rest) && log[*at..at + 8] != *offset && log[*at] == 0
        }));
        let expected: Vec<i64> =
            intact.iter().flat_map(|(batch, _)| batch.base_offset..=batch.last_offset).collect();
        let parent = folder();
        let dir = write(parent.path(), "t-0", &BTreeMap::from([(file_name(0, "log"), log)]));
        let read = all(&open(&dir, io), OnDamage::Skip).whole();
        prop_assert_eq!(&read.offsets(), &expected, "{:?}, {:?}", damages, end);
        let last = expected.last().map_or(0, |last| last + 1);
        if last as usize > expected.len() {
            prop_assert!(LogWriter::plan_recovery(&dir, &WriterOptions::default()).is_err(), "{:?}, {:?}", damages, end);
        }
    }
}
