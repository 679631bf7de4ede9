//! The process ends at every operation of some scripts while the system keeps running. The next process finds
//! everything that was appended, and its log survives a power loss.

use cordwood::fs::mem::{Fault, FaultKind};
use cordwood::writer::FlushMode;

use crate::faults::SCRIPTS;
use crate::judge::{Judge, Tally};
use crate::model::Expected;
use crate::script::{Client, Op, Setup};

/// Ends the process at an operation of a script. Returns false if the script ends earlier.
fn kill(setup: Setup, script: &[Op], at: u64, tally: &mut Tally) -> bool {
    let mut client = Client::of(setup);
    client.writer = None;
    client.disk.set_fault(Some(Fault { at, kind: FaultKind::Killed, forever: true }));
    let mut expected = Expected::after(&client.model);
    for op in script {
        let mut calls = Vec::new();
        client.apply(*op, &mut |call| calls.push(call));
        let cut = calls.iter().find(|call| call.error.is_some());
        // after a call returned, all its records are expected, including those that are not synced
        expected = match cut {
            Some(call) => Expected::during(call.effect, &call.before, &call.after),
            None => Expected::after(&client.model),
        }
        .with_unsure(&client.unsure);
        if cut.is_some() {
            break;
        }
    }
    let is_over = client.disk.fault_is_over();
    client.writer = None;
    client.disk.set_fault(None);
    // a new judge: the old one would skip the power losses after a recovered log that it has already checked
    let mut judge = Judge::new(setup.options());
    judge.judge_disk(client.disk, &[expected], true, &|| {
        format!("{} {:?} {script:?} killed at operation {at}", setup.flush, setup.before)
    });
    tally.add(judge.tally);
    is_over
}

#[test]
fn the_log_of_a_process_that_ends_at_any_operation_is_recovered_completely_and_survives_a_power_loss() {
    let (mut tally, mut kills) = (Tally::default(), 0);
    for (before, script) in SCRIPTS {
        for flush in [FlushMode::Always, FlushMode::None] {
            let setup = Setup { flush, sector: 16, before };
            let mut at = 0;
            while kill(setup, script, at, &mut tally) {
                at += 1;
            }
            kills += at;
        }
    }
    println!(
        "{{\"rig\": \"killed\", \"kills\": {kills}, \"lost\": {}, \"invented\": {}, \"unopened\": {}, \"unstable\": {}}}",
        tally.lost, tally.invented, tally.unopened, tally.unstable
    );
    tally.assert_none();
    assert!(kills > 1_500, "{kills} kills");
}
