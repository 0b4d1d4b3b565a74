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

/// What a future gives that need not wait.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        done = future => Some(done),
        () = std::future::ready(()) => None,
    }
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
    let beyond = at_once(pools.slots(&components[3], (2, "hostile"), true)).await;
    assert!(beyond.is_none(), "{beyond:?}");
    held.push(
        pools
            .slots(&components[3], TRANSITION, true)
            .await
            .expect("slots"),
    );
    assert_eq!(pools.slow.available_permits(), 0);
}

#[tokio::test]
async fn who_waits_for_the_share_of_a_tenant_holds_no_slot_of_the_component_and_the_reverse() {
    const HOSTILE: (usize, &str) = (2, "hostile");
    let pools = Pools::new(4).expect("pools");
    let (its_own, common) = (Own::new(3), Own::new(1));
    let share = async || {
        let mut held = Vec::new();
        for _ in 0..3 {
            let slots = at_once(pools.slots(&its_own, HOSTILE, true)).await;
            held.push(slots.expect("free").expect("slots"));
        }
        held
    };
    let held = share().await;
    let mut waiting = Box::pin(pools.slots(&common, HOSTILE, true));
    assert!(at_once(&mut waiting).await.is_none());
    let other = at_once(pools.slots(&common, TRANSITION, true)).await;
    let other = other.expect("nobody holds it").expect("slots");
    // From here on it waits for the component.
    drop(held);
    assert!(at_once(&mut waiting).await.is_none());
    let held = share().await;
    drop(other);
    assert!(at_once(&mut waiting).await.is_none(), "no share is left");
    drop(held);
    let slots = at_once(waiting).await.expect("both").expect("slots");
    assert!(slots.begins_slow);
}
