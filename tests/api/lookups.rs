//! What a turn is told of the directory: as it is now, no more than was asked for, and of its own tenant.

use std::collections::BTreeSet;

use wrkflw_core::ids::TenantId;
use wrkflw_core::json::Json;
use wrkflw_core::lookup::{Findings, Lookup};

use super::*;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_lookup_finds_what_holds_now() {
    let app = TestApp::empty().await;
    let manager = |person: &str| format!("/v1/people/{person}/manager");
    for (person, above) in [("author", "reviewer"), ("reviewer", "approver")] {
        let body = json!({ "manager": above });
        app.put("admin", &manager(person), body).await.expect(200);
    }
    delete(&app, "admin", &manager("reviewer"))
        .await
        .expect(200);
    delete(&app, "admin", "/v1/groups/reviewers/members/reviewer")
        .await
        .expect(200);
    sql(&app, "insert into calendar select id, 'office', '{\"zone\":\"UTC\",\"n\":1.50}', now() from tenant").await;
    let store = app.store();
    let tenant = store.tenant("default").await.expect("a tenant");
    let tenant = tenant.expect("a tenant");
    let lookup = Lookup {
        managers_of: names(&["author", "reviewer", "nobody"]),
        groups: names(&["reviewers", "approvers", "nothing"]),
        members_max: 1,
        calendars: names(&["office", "moon"]),
        people: names(&["approver", "nobody"]),
        memberships_of: names(&["author", "nobody"]),
        stand_ins_of: names(&["author", "nobody"]),
    };
    let now = app.engine.clock().now();
    let found = store.look_up(tenant, &lookup, now).await.expect("findings");
    let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let expected = Findings {
        managers: map("author", "reviewer"),
        // The first in the order of their ids, who is not the one who left.
        members: BTreeMap::from([
            ("approvers".to_owned(), vec!["approver".to_owned()]),
            ("reviewers".to_owned(), vec!["author".to_owned()]),
        ]),
        calendars: BTreeMap::from([(
            "office".to_owned(),
            Json::parse("{\"n\":1.50,\"zone\":\"UTC\"}").expect("JSON"),
        )]),
        people: names(&["approver"]),
        groups: BTreeMap::from([(
            "author".to_owned(),
            vec!["authors".to_owned(), "reviewers".to_owned()],
        )]),
        ..Findings::default()
    };
    assert_eq!(found.groups, expected.groups);
    assert_eq!(found.stand_ins, expected.stand_ins);
    assert_eq!(found.managers, expected.managers);
    assert_eq!(found.members, expected.members);
    assert_eq!(found.people, expected.people);
    // Text for text, as it is kept.
    assert_eq!(
        found.calendars["office"].as_str(),
        "{\"zone\":\"UTC\",\"n\":1.50}"
    );
    assert_eq!(found.calendars.len(), expected.calendars.len());
    let all = Lookup {
        members_max: 10,
        ..lookup.clone()
    };
    let found = store.look_up(tenant, &all, now).await.expect("findings");
    assert_eq!(found.members["reviewers"], ["author", "reviewer2"]);
    let elsewhere = store.look_up(TenantId(tenant.0 + 1), &all, now).await;
    assert_eq!(elsewhere.expect("findings"), Findings::default());
    let nothing = store.look_up(tenant, &Lookup::default(), now).await;
    assert_eq!(nothing.expect("findings"), Findings::default());
}

#[tokio::test]
async fn a_lookup_finds_for_whom_somebody_stands_in_at_a_moment() {
    let app = TestApp::empty().await;
    for (absent, substitute) in [("reviewer2", "approver"), ("approver", "author")] {
        let path = format!("/v1/people/{absent}/absences");
        let body = json!({
            "substitute": substitute, "activeFrom": "2100-01-01T00:00:00Z", "activeUntil": "2100-02-01T00:00:00Z",
        });
        app.post("admin", &path, body).await.expect(201);
    }
    let store = app.store();
    let tenant = store.tenant("default").await.expect("an answer");
    let tenant = tenant.expect("a tenant");
    let lookup = Lookup {
        stand_ins_of: names(&["author", "approver", "reviewer"]),
        ..Lookup::default()
    };
    let at = |moment: &str| moment.parse::<jiff::Timestamp>().expect("a moment");
    let before = store.look_up(tenant, &lookup, at("2099-12-31T23:59:59Z"));
    assert_eq!(before.await.expect("findings"), Findings::default());
    let meanwhile = store.look_up(tenant, &lookup, at("2100-01-01T00:00:00Z"));
    let found = meanwhile.await.expect("findings").stand_ins;
    let told: Vec<_> = found
        .iter()
        .flat_map(|(person, stand_ins)| stand_ins.iter().map(move |one| (person.as_str(), one)))
        .map(|(person, one)| {
            (
                person,
                one.person.as_str(),
                one.groups.join(","),
                one.via.join(","),
            )
        })
        .collect();
    let expected = [
        ("approver", "reviewer2", "reviewers", ""),
        ("author", "approver", "approvers", ""),
        ("author", "reviewer2", "reviewers", "approver"),
    ];
    let expected =
        expected.map(|(one, of, groups, via)| (one, of, groups.to_owned(), via.to_owned()));
    assert_eq!(told, expected);
}
