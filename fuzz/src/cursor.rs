//! Cursors that callers send back: each is refused, or stands for the one position that it says.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use uuid::Uuid;
use wrkflw_server::http::page::{decode, encode};
use wrkflw_store::custody::CustodyCursor;
use wrkflw_store::feed::FeedCursor;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    // As it came, and as the position that a cursor hides.
    for cursor in [text, &encode(text)] {
        stands::<Uuid>(cursor);
        stands::<u64>(cursor);
        stands::<FeedCursor>(cursor);
        stands::<CustodyCursor>(cursor);
    }
    let hidden: Option<String> = decode(Some(&encode(text))).expect("any text can be hidden");
    assert_eq!(hidden.as_deref(), Some(text));
}

fn stands<T: FromStr + Display + PartialEq + Debug>(cursor: &str) {
    let Ok(position) = decode::<T>(Some(cursor)) else {
        return;
    };
    let position = position.expect("a cursor was given");
    let again = decode::<T>(Some(&encode(&position.to_string())));
    assert_eq!(
        again.expect("what is shown can be sent back"),
        Some(position)
    );
}
