//! Which failures are the guest's fault and which are the host's.

use super::*;
use crate::settings::Compiler;

/// A busy machine delays an answer, but it does not make the guest responsible.
#[test]
fn over_time_by_the_clock_is_not_the_guests_fault() {
    let starved = answered::<()>(None, 250).expect_err("no answer");
    assert_eq!(starved, Cause::Starved { wall_ms: 5000 });
    assert_eq!(
        (starved.code(), starved.is_guests_fault()),
        ("logic_busy", false)
    );
    let overrun = answered::<()>(Some(Ended::Overrun), 250).expect_err("no answer");
    assert_eq!(overrun, Cause::DeadlinePassed { deadline_ms: 250 });
    assert!(overrun.is_guests_fault());
    let lost = answered::<()>(Some(Ended::Lost), 250).expect_err("no answer");
    assert_eq!(lost, Cause::Interrupted);
    assert!(!lost.is_guests_fault());
    assert_eq!(answered(Some(Ended::Answered(Ok(1))), 250), Ok(1));
}

#[test]
fn an_error_before_there_is_an_instance_is_no_malformed_answer() {
    let settings = Settings::new(Compiler::InProcess);
    let of = |change: fn(&mut Allowance)| {
        let mut allowance = Allowance::new(&settings);
        change(&mut allowance);
        without_trap(&settings, "no room".to_owned(), &allowance)
    };
    assert!(matches!(of(|_| ()), Cause::Unavailable { .. }));
    assert!(matches!(
        of(|allowance| allowance.table_refused = true),
        Cause::Incompatible(_)
    ));
    assert!(matches!(
        of(|allowance| allowance.is_instantiated = true),
        Cause::Malformed { .. }
    ));
}

#[test]
fn a_growth_beyond_the_guests_own_maximum_is_no_refusal_of_the_host() {
    let settings = Settings::new(Compiler::InProcess);
    let mut allowance = Allowance::new(&settings);
    let beyond = allowance.memory_growing(0, 2 << 16, Some(1 << 16));
    assert!(!beyond.expect("no error") && !allowance.memory_refused);
    let granted = allowance.memory_growing(0, 1 << 16, Some(1 << 16));
    assert!(granted.expect("no error"));
    let too_much = allowance.memory_growing(1 << 16, settings.memory_bytes_max + (1 << 16), None);
    assert!(!too_much.expect("no error") && allowance.memory_refused);
}
