//! Lists of people and groups, and of the members of a group.

use super::people::{known, member};
use super::*;

/// The ids of all pages of this size, and the number of pages.
async fn listed(app: &TestApp, path: &str, limit: usize) -> (Vec<String>, usize) {
    let (mut ids, mut pages, mut next) = (Vec::new(), 0, String::new());
    loop {
        let mark = if path.contains('?') { '&' } else { '?' };
        let page = app
            .get("author", &format!("{path}{mark}limit={limit}{next}"))
            .await
            .expect(200);
        let data = page["data"].as_array().expect("data");
        assert!(data.len() <= limit, "{page}");
        ids.extend(
            data.iter()
                .map(|one| one["id"].as_str().expect("an id").to_owned()),
        );
        pages += 1;
        match page["page"]["next"].as_str() {
            Some(cursor) => next = format!("&after={cursor}"),
            None => return (ids, pages),
        }
    }
}

async fn named(app: &TestApp, kind: &str, id: &str, name: &str) {
    let path = format!("/v1/{kind}/{id}");
    app.put("admin", &path, json!({ "name": name }))
        .await
        .expect(200);
}

#[tokio::test]
async fn people_and_groups_are_listed_by_id_and_found_by_the_beginning_of_id_or_name() {
    let app = TestApp::empty().await;
    for (id, name) in [
        ("mara", "Zoe Mara"),
        ("marc", "MARCUS"),
        ("u-1", "Marah"),
        ("u-2", "marah"),
        ("Upper", "50%_\\"),
        ("percent", "Percent"),
    ] {
        named(&app, "people", id, name).await;
    }
    named(&app, "groups", "z", "Reviewing people").await;
    let everyone = [
        "Upper",
        "approver",
        "author",
        "mara",
        "marc",
        "percent",
        "reviewer",
        "reviewer2",
        "u-1",
        "u-2",
    ];
    for limit in [1, 3, 100] {
        let (ids, pages) = listed(&app, "/v1/people", limit).await;
        assert_eq!(ids, everyone);
        assert_eq!(pages, everyone.len().div_ceil(limit));
        // Matches by id come first, and nobody is listed twice.
        let (ids, _) = listed(&app, "/v1/people?q=mar", limit).await;
        assert_eq!(ids, ["mara", "marc", "u-1", "u-2"], "{limit}");
        let (ids, _) = listed(&app, "/v1/groups?q=review", limit).await;
        assert_eq!(ids, ["reviewers", "z"]);
    }
    for (q, found) in [
        ("MARC", vec!["marc"]),
        ("upper", vec![]),
        ("Upper", vec!["Upper"]),
        ("50%25_", vec!["Upper"]),
        ("%25", vec![]),
        ("nobody", vec![]),
    ] {
        let (ids, _) = listed(&app, &format!("/v1/people?q={q}"), 25).await;
        assert_eq!(ids, found, "{q}");
    }
    let one = &app.get("author", "/v1/people?q=marc").await.expect(200)["data"][0];
    assert_eq!(one, &json!({ "id": "marc", "name": "MARCUS" }));
    app.get("author", "/v1/people?q=a&after=!")
        .await
        .problem(400, "invalid_cursor");
    app.get("author", "/v1/groups?limit=101")
        .await
        .problem(400, "malformed_request");
}

/// The response is bounded for a group of any size, whose members are read page by page.
#[tokio::test]
async fn a_group_shows_its_first_members_and_lists_all() {
    let app = TestApp::empty().await;
    named(&app, "groups", "crowd", "Crowd").await;
    let ids: Vec<String> = (0..101).map(|number| format!("p-{number:03}")).collect();
    for id in &ids[..100] {
        member(&app, "crowd", id).await;
    }
    let group = app.get("author", "/v1/groups/crowd").await.expect(200);
    assert_eq!(group["members"], json!(ids[..100]));
    assert_eq!(group["more"], false);
    member(&app, "crowd", &ids[100]).await;
    let group = app.get("author", "/v1/groups/crowd").await.expect(200);
    assert_eq!(group["members"], json!(ids[..100]));
    assert_eq!(group["more"], true);
    for limit in [33, 100] {
        let (listed, pages) = listed(&app, "/v1/people?group=crowd", limit).await;
        assert_eq!(listed, ids);
        assert_eq!(pages, ids.len().div_ceil(limit));
    }
    // Former members are not listed, and members have names.
    let path = "/v1/groups/crowd/members/p-000";
    let left = app.host().send("admin", "DELETE", path, &[], None).await;
    left.expect(200);
    known(&app, &["outside"]).await;
    named(&app, "people", "p-001", "Pia").await;
    let page = app.get("author", "/v1/people?group=crowd&limit=1").await;
    assert_eq!(
        page.expect(200)["data"],
        json!([{ "id": "p-001", "name": "Pia" }])
    );
    let none = app.get("author", "/v1/people?group=nobody").await;
    assert_eq!(none.expect(200)["data"], json!([]));
    for query in ["group=crowd&q=p", "group=", "group=%C2%9B", "q=%C2%9B"] {
        app.get("author", &format!("/v1/people?{query}"))
            .await
            .problem(400, "malformed_request");
    }
    app.get("author", "/v1/people?group=crowd&after=!")
        .await
        .problem(400, "invalid_cursor");
}
