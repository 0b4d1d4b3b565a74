//! Time limits of statements and transactions.

use super::*;
use crate::StoreError;
use crate::error::Outage;

#[test]
fn postgres_is_told_how_long_anybody_waits() {
    assert!(BEGIN.ends_with(&format!("'{}s'", ANSWER_MAX.as_secs())));
}

#[tokio::test]
async fn a_transaction_without_an_end_is_given_up_as_a_failure_that_passes() {
    let stuck = std::future::pending::<Result<(), StoreError>>();
    let given_up = ended_within(Duration::from_millis(1), stuck).await;
    let error = given_up.expect_err("no end");
    assert!(
        error.to_string().contains("no answer within 1ms"),
        "{error}"
    );
    assert!(error.is_passing());
    assert_eq!(error.outage(), Some(Outage::Unreachable));
}
