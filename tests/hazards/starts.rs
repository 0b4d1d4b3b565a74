//! A start has no row to lock: one insert settles who may be about an entity, and whose the key is.

use wrkflw::store::commit::Verdict;

use super::desk::{Desk, counts, keyed};

#[tokio::test]
async fn an_entity_started_twice_in_one_batch_starts_once() {
    let desk = Desk::new().await;
    let (first, second, other) = (desk.start("one"), desk.start("one"), desk.start("two"));
    let verdicts = desk.commit(&[&first, &second, &other]).await;
    assert_eq!(verdicts[2], Verdict::Applied);
    let mut twins = [verdicts[0], verdicts[1]];
    twins.sort_unstable_by_key(|verdict| *verdict == Verdict::Taken);
    assert_eq!(twins, [Verdict::Applied, Verdict::Taken]);
    let (won, lost) = if verdicts[0] == Verdict::Applied {
        (&first, &second)
    } else {
        (&second, &first)
    };
    assert_eq!(desk.load(won.after.id).await.instance, won.after);
    assert!(
        counts(&desk.rows(lost.after.id).await)
            .iter()
            .all(|(_, rows)| *rows == 0)
    );
}

#[tokio::test]
async fn a_key_used_twice_in_one_batch_starts_once() {
    let desk = Desk::new().await;
    let (first, second) = (keyed(desk.start("one"), "k"), keyed(desk.start("two"), "k"));
    let verdicts = desk.commit(&[&first, &second]).await;
    assert_eq!(
        verdicts
            .iter()
            .filter(|verdict| **verdict == Verdict::Applied)
            .count(),
        1,
        "{verdicts:?}"
    );
    assert_eq!(desk.count("select count(*) from instance").await, 1);
    assert_eq!(desk.count("select count(*) from idempotency_key").await, 1);
    // And once more after it.
    assert_eq!(
        desk.commit(&[&keyed(desk.start("three"), "k")]).await,
        [Verdict::Taken]
    );
    assert_eq!(
        desk.count("select count(*) from audit_entry where type = 'FLOW_STARTED'")
            .await,
        1
    );
}

#[tokio::test]
async fn a_running_entity_is_not_started_again_and_an_ended_one_is() {
    let desk = Desk::new().await;
    let running = desk.claimed("one").await;
    let again = keyed(desk.start("one"), "k");
    assert_eq!(desk.commit(&[&again]).await, [Verdict::Taken]);
    assert!(
        counts(&desk.rows(again.after.id).await)
            .iter()
            .all(|(_, rows)| *rows == 0)
    );
    assert_eq!(desk.count("select count(*) from idempotency_key").await, 0);
    desk.apply(&[&desk.decide(&running, "END")]).await;
    desk.apply(&[&keyed(desk.start("one"), "k")]).await;
}

#[tokio::test]
async fn a_start_does_not_take_the_key_of_another_command() {
    let desk = Desk::new().await;
    let earlier = keyed(desk.decide(&desk.claimed("one").await, "GO"), "earlier");
    desk.apply(&[&earlier]).await;
    assert_eq!(
        desk.commit(&[&keyed(desk.start("two"), "earlier")]).await,
        [Verdict::Taken]
    );

    let beside = keyed(desk.decide(&desk.claimed("three").await, "GO"), "beside");
    let verdicts = desk
        .commit(&[&keyed(desk.start("four"), "beside"), &beside])
        .await;
    assert_eq!(verdicts, [Verdict::Taken, Verdict::Applied]);
    assert_eq!(
        desk.count("select count(*) from instance where entity_id in ('two', 'four')")
            .await,
        0
    );
}
