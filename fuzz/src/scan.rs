//! The look through a component before it is compiled: it ends, says why, and lets nothing through that cannot be
//! compiled.

use wrkflw_sandbox::fuzzing;

/// Problems of one component.
const PROBLEMS_MAX: usize = 50;
/// Characters of a problem's message, with what surrounds the part that the component chose.
const MESSAGE_CHARS_MAX: usize = 1_000;
/// Components that are compiled, too: beyond this size that takes too long to be done often.
const COMPILED_BYTES_MAX: usize = 2 * 1024;

pub(crate) fn run(data: &[u8]) {
    match wrkflw_sandbox::scan(data, crate::COMPONENT_BYTES_MAX).map(drop) {
        Err(problems) => {
            assert!((1..=PROBLEMS_MAX).contains(&problems.len()));
            for problem in problems {
                let length = problem.message.chars().count();
                assert!((1..=MESSAGE_CHARS_MAX).contains(&length), "{length}");
                assert!(!problem.message.chars().any(char::is_control));
            }
        }
        Ok(()) if data.len() <= COMPILED_BYTES_MAX => {
            fuzzing::compile(data).expect("what the scan lets through compiles");
        }
        Ok(()) => {}
    }
}
