//! Calls that turn slow, and who gets the slots of slow calls.

use super::*;

const START: (usize, &str) = (1, "acme");
const TRANSITION: (usize, &str) = (2, "acme");

/// As a guest does until its tick.
async fn burn() {
    let begun = processor_time();
    while processor_time() < begun + QUICK_MAX {}
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn a_quick_function_does_not_bring_a_slow_one_back() {
    let (pools, own) = (Pools::new(1).expect("pools"), Own::new(1));
    let begins_slow = async |function| {
        let slots = pools.slots(&own, function, false).await.expect("slots");
        slots.begins_slow
    };
    let deadline = Duration::from_secs(10);
    let slots = pools.slots(&own, TRANSITION, false).await.expect("slots");
    pools.run(&own, TRANSITION, slots, deadline, burn()).await;
    assert!(begins_slow(TRANSITION).await);
    let slots = pools.slots(&own, START, false).await.expect("slots");
    pools.run(&own, START, slots, deadline, async {}).await;
    assert!(begins_slow(TRANSITION).await);
    assert!(!begins_slow(START).await);
    // Until it is quick itself.
    let slots = pools.slots(&own, TRANSITION, false).await.expect("slots");
    pools.run(&own, TRANSITION, slots, deadline, async {}).await;
    assert!(!begins_slow(TRANSITION).await);
}

#[tokio::test]
async fn a_call_that_turned_slow_waits_without_a_quick_slot() {
    let (pools, own, other) = (Pools::new(1).expect("pools"), Own::new(1), Own::new(1));
    let deadline = Duration::from_secs(10);
    let held = pools.slots(&other, (2, "busy"), true).await.expect("slots");
    let slots = pools.slots(&own, TRANSITION, false).await.expect("slots");
    let ended = pools.run(&own, TRANSITION, slots, deadline, burn()).await;
    assert!(ended.is_none(), "{ended:?}");
    assert_eq!(pools.quick.available_permits(), 1);
    drop(held);
    // It begins again there, also if a quick call has ended meanwhile.
    own.slow[TRANSITION.0].store(false, Ordering::Relaxed);
    let slots = pools.slots(&own, TRANSITION, true).await.expect("slots");
    assert!(slots.begins_slow);
    let ended = pools.run(&own, TRANSITION, slots, deadline, burn()).await;
    assert!(matches!(ended, Some(Ended::Answered(()))), "{ended:?}");
}

#[tokio::test]
async fn one_tenant_with_many_components_leaves_slow_slots_to_others() {
    let pools = Pools::new(4).expect("pools");
    let components = [(); 4].map(|()| Own::new(2));
    let mut held = Vec::new();
    for own in &components[..3] {
        held.push(pools.slots(own, (2, "hostile"), true).await.expect("slots"));
    }
    tokio::select! {
        biased;
        _ = pools.slots(&components[3], (2, "hostile"), true) => panic!("it has them all"),
        () = std::future::ready(()) => (),
    }
    held.push(
        pools
            .slots(&components[3], TRANSITION, true)
            .await
            .expect("slots"),
    );
    assert_eq!(pools.slow.available_permits(), 0);
}
