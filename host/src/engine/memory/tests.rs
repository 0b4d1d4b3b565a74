//! What is remembered, of whom, until when, and how much of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::domain::audit::Head;
use crate::domain::ids::{StateId, VersionRef};
use crate::domain::instance::{Entity, Status};

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
        attributes: BTreeMap::new(),
        active: vec![state],
        waiting: vec![],
        past: vec![],
        early: vec![],
    };
    let head = Head {
        seq: 1,
        hash: [1; 32],
        event_seq: 1,
    };
    Stored {
        instance,
        head,
        stays: 1,
    }
}

fn rob() -> Principalship {
    Principalship {
        tenant: TENANT,
        subject: "rob".into(),
        roles: vec!["user".into()],
    }
}

/// What a load finds of rob.
fn loaded(standing: u128, found: Option<Stored>) -> Loaded {
    let actor = Actor {
        id: "rob".into(),
        groups: vec!["crew".into()],
        permissions: vec!["task:act".into()],
        on_behalf_of: None,
        stands_in_for: vec![],
    };
    Loaded {
        actor,
        reply: None,
        found,
        content: None,
        standing: Uuid::from_u128(standing),
        lasting: true,
        signalled: None,
        stopped: Vec::new(),
    }
}

async fn knows(memory: &Memory, stored: &Stored) -> bool {
    let recalled = memory.recall(&rob(), stored.instance.id).await;
    recalled.is_some_and(|(_, found)| *found == *stored)
}

#[tokio::test]
async fn both_are_remembered_or_nothing_is() {
    let (memory, stored) = (Memory::new(), instance(1));
    memory.left(TENANT, stored.clone()).await;
    assert!(!knows(&memory, &stored).await, "rob is a stranger");
    memory
        .read(&rob(), instance(2).instance.id, &loaded(3, None))
        .await;
    assert!(knows(&memory, &stored).await);
    let other = Principalship {
        roles: vec!["admin".into()],
        ..rob()
    };
    assert!(memory.recall(&other, stored.instance.id).await.is_none());
    let elsewhere = Principalship {
        tenant: TenantId(8),
        ..rob()
    };
    assert!(
        memory
            .recall(&elsewhere, stored.instance.id)
            .await
            .is_none()
    );
}

#[tokio::test]
async fn another_mark_outdates_whoever_was_read_before_it() {
    let (memory, stored) = (Memory::new(), instance(1));
    memory.left(TENANT, stored.clone()).await;
    let id = stored.instance.id;
    let read = |who: Principalship, mark| {
        let (memory, found) = (memory.clone(), Some(stored.clone()));
        async move { memory.read(&who, id, &loaded(mark, found)).await }
    };
    read(rob(), 4).await;
    let ann = Principalship {
        subject: "ann".into(),
        ..rob()
    };
    // Marks have no order: the next may be greater or less.
    for mark in [9, 3] {
        read(ann.clone(), mark).await;
        assert!(!knows(&memory, &stored).await);
        assert!(memory.recall(&ann, id).await.is_some());
    }
    read(rob(), 3).await;
    assert!(knows(&memory, &stored).await);
    // What was read before, and told after, makes nobody who is known by the other mark act on it.
    read(ann.clone(), 9).await;
    assert!(!knows(&memory, &stored).await);
}

#[tokio::test]
async fn who_changes_of_themselves_is_not_remembered() {
    let (memory, stored) = (Memory::new(), instance(1));
    memory.left(TENANT, stored.clone()).await;
    let passing = Loaded {
        lasting: false,
        ..loaded(3, Some(stored.clone()))
    };
    memory.read(&rob(), stored.instance.id, &passing).await;
    assert!(!knows(&memory, &stored).await);
}

#[tokio::test]
async fn what_has_ended_is_not_remembered() {
    let memory = Memory::new();
    memory
        .read(&rob(), InstanceId(Uuid::nil()), &loaded(3, None))
        .await;
    let mut ended = instance(1);
    memory.left(TENANT, ended.clone()).await;
    assert!(knows(&memory, &ended).await);
    ended.instance.status = Status::Completed {
        outcome: "DONE".into(),
        at: Timestamp::UNIX_EPOCH,
    };
    memory.left(TENANT, ended.clone()).await;
    assert!(memory.recall(&rob(), ended.instance.id).await.is_none());
}

#[tokio::test]
async fn it_reads_after_mistakes_and_learns_from_what_it_reads() {
    let (memory, stored) = (Memory::new(), instance(1));
    let id = stored.instance.id;
    let mut moved = stored.clone();
    moved.instance.revision = 2;
    for _ in 0..TRUST_MAX / MISTAKE {
        memory.left(TENANT, stored.clone()).await;
        memory
            .read(&rob(), id, &loaded(3, Some(moved.clone())))
            .await;
    }
    memory.left(TENANT, stored.clone()).await;
    assert!(!knows(&memory, &stored).await, "it was wrong too often");
    memory
        .read(&rob(), id, &loaded(3, Some(stored.clone())))
        .await;
    assert!(knows(&memory, &stored).await, "it would have been right");
}

#[tokio::test]
async fn it_holds_no_more_than_so_many_bytes_and_the_newest_of_them() {
    let memory = Memory::new();
    memory
        .read(&rob(), InstanceId(Uuid::nil()), &loaded(3, None))
        .await;
    let large = |number| {
        let mut stored = instance(number);
        let text = "x".repeat(1 << 20);
        stored.instance.data = Json::of(&serde_json::json!({ "text": text }));
        stored
    };
    for number in 1..=100 {
        memory.left(TENANT, large(number)).await;
    }
    memory.instances.run_pending_tasks().await;
    assert!(memory.instances.weighted_size() <= INSTANCE_BYTES_MAX);
    assert!(knows(&memory, &large(100)).await);
    assert!(memory.recall(&rob(), large(1).instance.id).await.is_none());
}
