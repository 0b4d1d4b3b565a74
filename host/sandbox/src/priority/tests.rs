//! Calls that turn slow, and who gets the places of slow calls.

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
        let places = pools.places(&own, function, false).await.expect("places");
        places.begins_slow
    };
    let deadline = Duration::from_secs(10);
    let places = pools.places(&own, TRANSITION, false).await.expect("places");
    pools.run(&own, TRANSITION, places, deadline, burn()).await;
    assert!(begins_slow(TRANSITION).await);
    let places = pools.places(&own, START, false).await.expect("places");
    pools.run(&own, START, places, deadline, async {}).await;
    assert!(begins_slow(TRANSITION).await);
    assert!(!begins_slow(START).await);
    // Until it is quick itself.
    let places = pools.places(&own, TRANSITION, false).await.expect("places");
    pools
        .run(&own, TRANSITION, places, deadline, async {})
        .await;
    assert!(!begins_slow(TRANSITION).await);
}

#[tokio::test]
async fn a_call_that_turned_slow_waits_without_a_quick_place() {
    let (pools, own, other) = (Pools::new(1).expect("pools"), Own::new(1), Own::new(1));
    let deadline = Duration::from_secs(10);
    let held = pools
        .places(&other, (2, "busy"), true)
        .await
        .expect("places");
    let places = pools.places(&own, TRANSITION, false).await.expect("places");
    let ended = pools.run(&own, TRANSITION, places, deadline, burn()).await;
    assert!(ended.is_none(), "{ended:?}");
    assert_eq!(pools.quick.available_permits(), 1);
    drop(held);
    // It begins again there, also if a quick call has ended meanwhile.
    own.slow[TRANSITION.0].store(false, Ordering::Relaxed);
    let places = pools.places(&own, TRANSITION, true).await.expect("places");
    assert!(places.begins_slow);
    let ended = pools.run(&own, TRANSITION, places, deadline, burn()).await;
    assert!(matches!(ended, Some(Ended::Answered(()))), "{ended:?}");
}

#[tokio::test]
async fn one_tenant_with_many_components_leaves_slow_places_to_others() {
    let pools = Pools::new(4).expect("pools");
    let components = [(); 4].map(|()| Own::new(2));
    let mut held = Vec::new();
    for own in &components[..3] {
        held.push(
            pools
                .places(own, (2, "hostile"), true)
                .await
                .expect("places"),
        );
    }
    let beyond = at_once(pools.places(&components[3], (2, "hostile"), true)).await;
    assert!(beyond.is_none(), "{beyond:?}");
    held.push(
        pools
            .places(&components[3], TRANSITION, true)
            .await
            .expect("places"),
    );
    assert_eq!(pools.slow.available_permits(), 0);
}

#[tokio::test]
async fn who_waits_for_the_share_of_a_tenant_holds_no_place_of_the_component_and_the_reverse() {
    const HOSTILE: (usize, &str) = (2, "hostile");
    let pools = Pools::new(4).expect("pools");
    let (its_own, common) = (Own::new(3), Own::new(1));
    let share = async || {
        let mut held = Vec::new();
        for _ in 0..3 {
            let places = at_once(pools.places(&its_own, HOSTILE, true)).await;
            held.push(places.expect("free").expect("places"));
        }
        held
    };
    let held = share().await;
    let mut waiting = Box::pin(pools.places(&common, HOSTILE, true));
    assert!(at_once(&mut waiting).await.is_none());
    let other = at_once(pools.places(&common, TRANSITION, true)).await;
    let other = other.expect("nobody holds it").expect("places");
    // From here on it waits for the component.
    drop(held);
    assert!(at_once(&mut waiting).await.is_none());
    let held = share().await;
    drop(other);
    assert!(at_once(&mut waiting).await.is_none(), "no share is left");
    drop(held);
    let places = at_once(waiting).await.expect("both").expect("places");
    assert!(places.begins_slow);
}
