//! When the timeout of each phase of a connection ends.

use super::*;

const TIMEOUTS: Timeouts = Timeouts {
    idle_max: Duration::from_secs(7),
    head_max: Duration::from_secs(3),
    unread_max: Duration::from_secs(5),
};

#[test]
fn each_phase_has_its_own_timeout() {
    let begun = Instant::now();
    let at = |seconds| begun + Duration::from_secs(seconds);
    let activity = Activity::new(begun);
    assert_eq!(activity.due(&TIMEOUTS), Some((at(7), Overdue::Idle)));
    assert!(activity.is_idle_for(Duration::from_secs(2), at(2)));
    assert!(!activity.is_idle_for(Duration::from_secs(3), at(2)));
    activity.read(at(2));
    assert!(!activity.is_idle_for(Duration::ZERO, at(2)));
    assert_eq!(activity.due(&TIMEOUTS), Some((at(5), Overdue::Head)));
    activity.read(at(3));
    let unchanged = activity.due(&TIMEOUTS);
    assert_eq!(
        unchanged,
        Some((at(5), Overdue::Head)),
        "a drip gains nothing"
    );
    activity.begin(at(4));
    assert_eq!(
        activity.due(&TIMEOUTS),
        None,
        "the host's work is bounded elsewhere"
    );
    activity.blocked(at(5));
    activity.blocked(at(6));
    assert_eq!(activity.due(&TIMEOUTS), Some((at(10), Overdue::Unread)));
    activity.written(1, at(7));
    activity.end(at(8));
    assert_eq!(activity.due(&TIMEOUTS), Some((at(15), Overdue::Idle)));
}

#[test]
fn what_is_read_earns_time() {
    let begun = Instant::now();
    let at = |seconds| begun + Duration::from_secs(seconds);
    let rate = usize::try_from(BYTES_PER_SECOND_MIN).expect("a small number");
    let activity = Activity::new(begun);
    activity.begin(begun);
    let blocked = |now| {
        activity.blocked(now);
        activity.due(&TIMEOUTS)
    };
    assert_eq!(blocked(at(0)), Some((at(5), Overdue::Unread)));
    activity.written(0, at(3));
    assert_eq!(blocked(at(10)), Some((at(12), Overdue::Unread)));
    activity.written(rate, at(11));
    assert_eq!(blocked(at(11)), Some((at(13), Overdue::Unread)));
    activity.written(100 * rate, at(11));
    assert_eq!(blocked(at(20)), Some((at(25), Overdue::Unread)));
}
