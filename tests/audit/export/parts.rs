//! The counts of what an export of a part of a tenant does not contain.

use wrkflw_audit::record::rows::Which;
use wrkflw_core::checkpoint::Checkpoint;

use super::super::checkpoints::sign;
use super::{Bench, export, history, last_checkpoint};

#[tokio::test]
async fn an_export_of_a_part_is_distinguished_from_the_whole() {
    let (app, keys, id) = history().await;
    let older = last_checkpoint(&export(&app, &Which::All).await);
    sign(&app.engine, &keys).await;
    let whole = export(&app, &Which::All).await;
    let newest = last_checkpoint(&whole);
    let part = export(&app, &Which::One(id)).await;
    let of_other = Checkpoint {
        tenant: "other".into(),
        ..older.clone()
    };
    let own = [older, newest];
    let other = [of_other];
    for (lines, kept, expected) in [
        (&whole, &own[..], (0, 0)),
        (&part, &own[..], (1, 1)),
        (&part, &other[..], (1, 1)),
    ] {
        let bench = Bench {
            kept,
            ..Bench::of(&app, &keys)
        };
        let (tally, findings) = bench.verify(lines).await.expect("a file");
        assert_eq!(findings, []);
        assert_eq!((tally.parts, tally.uncompared), expected, "{kept:?}");
    }
}
