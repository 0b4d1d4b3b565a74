//! Working calendars: refused with the places to mend, or settings that read as themselves and deadlines in their order.

use jiff::Timestamp;
use wrkflw_core::calendar::Calendar;
use wrkflw_core::json::Json;

/// The moments that working time is counted from: an ordinary one, the last one there is, and the first.
const STARTS: [Timestamp; 3] = [Timestamp::UNIX_EPOCH, Timestamp::MAX, Timestamp::MIN];
/// Working times in seconds.
const WORKING: [u32; 4] = [0, 1, 8 * 60 * 60, u32::MAX];

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let Ok(settings) = Json::parse(text) else {
        return;
    };
    let calendar = match Calendar::parse(&settings) {
        Ok(calendar) => calendar,
        Err(violations) => {
            assert!(!violations.is_empty());
            return;
        }
    };
    let again = Calendar::parse(&calendar.to_json());
    assert_eq!(again.as_ref(), Ok(&calendar));
    for start in STARTS {
        let mut before = start;
        for working in WORKING {
            let Some(moment) = calendar.after(start, working) else {
                continue;
            };
            assert!(moment >= before, "more work ends no earlier");
            before = moment;
        }
        let mut before = start;
        for days in [1, 7, 5_000] {
            let Some(moment) = calendar.days_after(start, days) else {
                continue;
            };
            assert!(moment > before, "more days end later");
            before = moment;
        }
    }
}
