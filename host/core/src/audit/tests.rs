//! The hash of an entry, and the numbers of public entries.

use super::*;

fn stream() -> Stream {
    Stream {
        tenant: TenantId(1),
        kind: StreamKind::Instance,
        id: Uuid::from_u128(7),
    }
}

fn draft() -> Draft {
    Draft {
        id: Uuid::from_u128(1),
        kind: "TASK_CLAIMED".into(),
        revision: 2,
        command: CommandId(Uuid::from_u128(2)),
        actor: Some("ann".into()),
        task: None,
        payload: Json::parse(r#"{"a":1}"#).expect("JSON"),
        evidence: None,
        salt: [3; 16],
        at: Timestamp::UNIX_EPOCH,
        public: true,
        traceparent: None,
    }
}

#[test]
fn every_fact_of_an_entry_is_in_its_hash() {
    let before = Head::genesis(stream());
    let entry = before.clone().append(stream(), draft());
    let changes: [fn(&mut Entry); 11] = [
        |entry| entry.seq += 1,
        |entry| entry.event_seq = None,
        |entry| entry.stream.id = Uuid::from_u128(8),
        |entry| entry.draft.id = Uuid::from_u128(9),
        |entry| entry.draft.kind = "TASK_RELEASED".into(),
        |entry| entry.draft.revision += 1,
        |entry| entry.draft.actor = None,
        |entry| entry.draft.task = Some(TaskId(Uuid::nil())),
        |entry| entry.draft.payload = Json::empty(),
        |entry| entry.draft.evidence = Some(Json::empty()),
        |entry| entry.draft.at = Timestamp::from_millisecond(1).expect("a time"),
    ];
    for (index, alter) in changes.iter().enumerate() {
        let mut tampered = entry.clone();
        alter(&mut tampered);
        assert_ne!(tampered.digest(&before.hash), entry.hash, "change {index}");
    }
    assert_ne!(entry.digest(&[0; 32]), entry.hash, "the entry before");
    assert_eq!(entry.digest(&before.hash), entry.hash);
}

#[test]
fn public_entries_are_numbered_without_gaps() {
    let mut head = Head::genesis(stream());
    let numbers = [true, false, true]
        .map(|public| head.append(stream(), Draft { public, ..draft() }).event_seq);
    assert_eq!((numbers, head.seq), ([Some(1), None, Some(2)], 3));
}
