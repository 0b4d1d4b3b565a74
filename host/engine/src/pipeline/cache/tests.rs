//! What the cache keeps, for which caller, until when, and how much.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use wrkflw_core::audit::Head;
use wrkflw_core::ids::{StateId, VersionRef};
use wrkflw_core::instance::{Entity, Instance, StateInstance, Status};
use wrkflw_core::json::Json;
use wrkflw_core::template::Labels;

const TENANT: TenantId = TenantId(7);

fn instance(number: u128) -> Stored {
    let at = Timestamp::UNIX_EPOCH;
    let state = StateInstance::new(StateId(Uuid::from_u128(number)), "Review", at);
    let instance = Instance {
        id: InstanceId(Uuid::from_u128(number)),
        definition: VersionRef {
            key: "review".into(),
            version: 1,
        },
        revision: 1,
        entity: Entity {
            kind: "document".into(),
            id: number.to_string(),
        },
        initiator: "ann".into(),
        requesters: vec!["ann".into()],
        status: Status::Running,
        started_at: at,
        updated_at: at,
        predecessor: None,
        parent: None,
        data: Json::empty(),
        labels: Labels::default(),
        attributes: BTreeMap::new(),
        active: vec![state],
        waiting: vec![],
        past: vec![],
        sole: false,
        observers: None,
        buffered: vec![],
    };
    let head = Head {
        seq: 1,
        hash: [1; 32],
        event_seq: 1,
    };
    Stored {
        instance,
        head,
        state_instances: 1,
    }
}

fn rob() -> Caller {
    Caller {
        tenant: TENANT,
        subject: "rob".into(),
        roles: vec!["user".into()],
    }
}

/// A load by rob.
fn loaded(caller: u128, found: Option<Stored>) -> Loaded {
    let actor = Actor {
        id: "rob".into(),
        groups: vec!["crew".into()],
        permissions: vec!["task:act".into()],
        on_behalf_of: None,
        stands_in_for: vec![],
    };
    Loaded {
        actor: Arc::new(actor),
        reply: None,
        found,
        definition: None,
        content: None,
        access_mark: Uuid::from_u128(caller),
        lasting: true,
        signalled: None,
        stopped: Vec::new(),
    }
}

fn has(cache: &InstanceCache, stored: &Stored) -> bool {
    let cached = cache.get(&rob(), stored.instance.id);
    cached.is_some_and(|(_, found)| *found == *stored)
}

#[test]
fn an_entry_needs_a_cached_instance_and_a_cached_caller() {
    let (cache, stored) = (InstanceCache::new(), instance(1));
    cache.insert(TENANT, stored.clone());
    assert!(!has(&cache, &stored), "rob is not cached yet");
    cache.note_load(&rob(), instance(2).instance.id, &loaded(3, None));
    assert!(has(&cache, &stored));
    let other = Caller {
        roles: vec!["admin".into()],
        ..rob()
    };
    assert!(cache.get(&other, stored.instance.id).is_none());
    let elsewhere = Caller {
        tenant: TenantId(8),
        ..rob()
    };
    assert!(cache.get(&elsewhere, stored.instance.id).is_none());
}

#[test]
fn a_new_access_mark_outdates_callers_read_before_it() {
    let (cache, stored) = (InstanceCache::new(), instance(1));
    cache.insert(TENANT, stored.clone());
    let id = stored.instance.id;
    let read = |who: Caller, mark| {
        let (cache, found) = (cache.clone(), Some(stored.clone()));
        cache.note_load(&who, id, &loaded(mark, found));
    };
    read(rob(), 4);
    let ann = Caller {
        subject: "ann".into(),
        ..rob()
    };
    // Marks have no order: the next one may be greater or less.
    for mark in [9, 3] {
        read(ann.clone(), mark);
        assert!(!has(&cache, &stored));
        assert!(cache.get(&ann, id).is_some());
    }
    read(rob(), 3);
    assert!(has(&cache, &stored));
    // An older read that is noted late outdates the callers that were read under the newer mark.
    read(ann.clone(), 9);
    assert!(!has(&cache, &stored));
}

#[test]
fn a_caller_whose_groups_change_with_time_is_not_cached() {
    let (cache, stored) = (InstanceCache::new(), instance(1));
    cache.insert(TENANT, stored.clone());
    let passing = Loaded {
        lasting: false,
        ..loaded(3, Some(stored.clone()))
    };
    cache.note_load(&rob(), stored.instance.id, &passing);
    assert!(!has(&cache, &stored));
}

#[test]
fn an_ended_instance_is_not_cached() {
    let cache = InstanceCache::new();
    cache.note_load(&rob(), InstanceId(Uuid::nil()), &loaded(3, None));
    let mut ended = instance(1);
    cache.insert(TENANT, ended.clone());
    assert!(has(&cache, &ended));
    ended.instance.status = Status::Completed {
        outcome: "DONE".into(),
        at: Timestamp::UNIX_EPOCH,
    };
    cache.insert(TENANT, ended.clone());
    assert!(cache.get(&rob(), ended.instance.id).is_none());
}

#[test]
fn it_is_not_used_after_many_misses_until_loads_confirm_it() {
    let (cache, stored) = (InstanceCache::new(), instance(1));
    let id = stored.instance.id;
    let mut moved = stored.clone();
    moved.instance.revision = 2;
    for _ in 0..HIT_SCORE_MAX / MISS_COST {
        cache.insert(TENANT, stored.clone());
        cache.note_load(&rob(), id, &loaded(3, Some(moved.clone())));
    }
    cache.insert(TENANT, stored.clone());
    assert!(!has(&cache, &stored), "too many misses");
    cache.note_load(&rob(), id, &loaded(3, Some(stored.clone())));
    assert!(has(&cache, &stored), "the last load was a hit");
}

#[test]
fn it_keeps_the_newest_instances_within_its_limit_of_bytes() {
    let cache = InstanceCache::new();
    cache.note_load(&rob(), InstanceId(Uuid::nil()), &loaded(3, None));
    let large = |number| {
        let mut stored = instance(number);
        let text = "x".repeat(1 << 20);
        stored.instance.data = Json::of(&serde_json::json!({ "text": text }));
        stored
    };
    for number in 1..=100 {
        cache.insert(TENANT, large(number));
    }
    assert!(cache.0.instances.weight() <= INSTANCE_BYTES_MAX);
    assert!(has(&cache, &large(100)));
    assert!(cache.get(&rob(), large(1).instance.id).is_none());
}
