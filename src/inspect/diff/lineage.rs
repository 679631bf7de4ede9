//! The leader epochs of two replicas, and where each would truncate its log as a follower of the other.

use super::Replica;
use crate::error::Result;
use crate::log::Log;
use crate::state::leader_epochs::LeaderEpochs;

/// Both replicas.
pub(super) fn replicas(logs: &[Log; 2]) -> Result<[Replica; 2]> {
    let [a, b] = logs;
    let (one, other) = (epochs(a)?, epochs(b)?);
    let (end, other_end) = (a.log_end_offset()?, b.log_end_offset()?);
    let replica = |log: &Log, own: &LeaderEpochs, end, leader, leader_end| Replica {
        path: log.path().to_owned(),
        log_start_offset: log.log_start_offset(),
        log_end_offset: end,
        leader_epochs: own.entries().to_vec(),
        truncated_to: truncated_to(own.clone(), end, leader, leader_end),
        warnings: Vec::new(),
    };
    Ok([replica(a, &one, end, &other, other_end), replica(b, &other, other_end, &one, end)])
}

fn epochs(log: &Log) -> Result<LeaderEpochs> {
    let text = LeaderEpochs::read_text(log.directory())?;
    Ok(text.and_then(|text| LeaderEpochs::parse(&text).ok()).unwrap_or_default())
}

/// The offset to which a follower truncates its log; `None` if its own and its leader's epochs do not tell.
///
/// The follower asks for the end of its latest epoch. If the leader does not know that epoch, it answers with
/// the one before, and the follower truncates to its own end of that one and asks again.
///
/// *Source*: `AbstractFetcherThread.getOffsetTruncationState`.
fn truncated_to(mut own: LeaderEpochs, end: i64, leader: &LeaderEpochs, leader_end: i64) -> Option<i64> {
    let mut end = end;
    loop {
        let (epoch, leader_end) = leader.end_offset_for(own.latest()?, leader_end)?;
        let Some((floor, own_end)) = own.end_offset_for(epoch, end) else { return Some(leader_end.min(end)) };
        if floor == epoch {
            return Some(own_end.min(leader_end).min(end));
        }
        let to = own_end.min(end);
        // each round drops an epoch of the follower
        if !own.truncate_from_end(to) {
            return Some(to);
        }
        end = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[(i32, i64)]) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        for (epoch, offset) in entries {
            epochs.assign(*epoch, *offset);
        }
        epochs
    }

    #[test]
    fn a_follower_truncates_where_its_epochs_leave_those_of_the_leader() {
        let leader = of(&[(0, 0), (2, 50), (3, 80)]);
        for (own, end, expected) in [
            (&[(0, 0), (2, 50), (3, 80)][..], 90, Some(90)),
            // ahead of the leader in the same epoch
            (&[(0, 0), (2, 50), (3, 80)], 120, Some(100)),
            // behind
            (&[(0, 0)], 30, Some(30)),
            // wrote in epoch 0 after the leader had left it
            (&[(0, 0)], 70, Some(50)),
            // an epoch that the leader never had
            (&[(0, 0), (1, 40)], 60, Some(40)),
            (&[], 60, None),
        ] {
            assert_eq!(truncated_to(of(own), end, &leader, 100), expected, "{own:?} {end}");
        }
        assert_eq!(truncated_to(of(&[(0, 0)]), 10, &of(&[]), 10), None);
    }
}
