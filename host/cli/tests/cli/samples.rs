//! The sample instances that `wrkflw dev` creates when it starts.

use serde_json::{Value, json};

use crate::program::{Running, TestFolder};

const DOCUMENT: &str = "document";
/// The types of the documents of the sample product.
const PRODUCT: [&str; 4] = ["rfa", "transmittal", "circulation", "correspondence"];

fn dev(place: &TestFolder, options: &str) -> Running {
    place.start(&format!("dev --port 0{options}"))
}

/// Entity, status, outcome and revision of every instance about an entity of this type.
fn instances(place: &TestFolder, kind: &str) -> Vec<(String, Value, Value, Value)> {
    let listed = place.data("instance list --as admin");
    let instances = listed["data"].as_array().expect("a list").iter();
    let instances = instances.filter(|one| one["entityType"] == kind);
    let facts = instances.map(|one| {
        (
            one["entityId"].as_str().expect("an id").to_owned(),
            one["status"].clone(),
            one["outcome"].clone(),
            one["revision"].clone(),
        )
    });
    let mut facts: Vec<_> = facts.collect();
    facts.sort_by(|one, other| one.0.cmp(&other.0));
    facts
}

#[test]
fn the_first_start_creates_samples_and_a_second_one_adds_nothing() {
    let place = TestFolder::new();
    let mut first = dev(&place, "");
    let console = format!("{}/console", first.facts["url"].as_str().expect("its URL"));
    assert_eq!(first.facts["console"], console);
    let shown = instances(&place, DOCUMENT);
    let states: Vec<_> = shown.iter().map(|one| (&*one.0, &one.1, &one.2)).collect();
    let (completed, running) = (json!("COMPLETED"), json!("RUNNING"));
    let approved = json!("APPROVED");
    assert_eq!(
        states,
        [
            ("sample-approved", &completed, &approved),
            ("sample-open", &running, &Value::Null)
        ]
    );
    let history = place.data("instance history document/sample-approved --as author");
    let decided = |state: usize| &history["data"][state]["tasks"][0]["decision"];
    assert_eq!(
        (&decided(0)["actor"], &decided(0)["comment"]),
        (&json!("reviewer"), &json!("Clear and complete."))
    );
    assert_eq!(decided(1)["actor"], "approver");
    let open = place.data("task list --view available --as reviewer");
    let open = open["data"].as_array().expect("a list").iter();
    let open = open.clone().find(|one| one["entityId"] == "sample-open");
    let open = open.expect("its task").clone();
    for kind in PRODUCT {
        let of_product = instances(&place, kind);
        assert_eq!(of_product.len(), 1, "{kind}");
        assert_eq!(of_product[0].1, running, "{kind}");
    }
    assert_eq!(first.stop(), Some(0));

    let mut second = dev(&place, "");
    assert_eq!(instances(&place, DOCUMENT), shown);
    let task = open["id"].as_str().expect("an id");
    place.data(&format!(
        "task decide {task} REJECT --comment no --as reviewer"
    ));
    let rejected = instances(&place, DOCUMENT);
    assert_ne!(rejected, shown);
    assert_eq!(second.stop(), Some(0));

    let _third = dev(&place, "");
    assert_eq!(
        instances(&place, DOCUMENT),
        rejected,
        "a restart changes no instance"
    );
}

#[test]
fn an_interrupted_creation_of_samples_is_continued_by_the_next_start() {
    for approvals in 0..2 {
        let place = TestFolder::new();
        let mut empty = dev(&place, " --empty");
        assert_eq!(
            instances(&place, DOCUMENT),
            [],
            "`--empty` creates no samples"
        );
        let started = place.data(
            r#"instance start document-approval --entity document/sample-approved --data {"title":"Travel"} --as author"#,
        );
        if approvals > 0 {
            let task = &started["instance"]["states"][0]["tasks"][0]["id"];
            let task = task.as_str().expect("a task");
            place.data(&format!("task decide {task} APPROVE --as reviewer"));
        }
        assert_eq!(empty.stop(), Some(0));
        let _next = dev(&place, "");
        let approved = &instances(&place, DOCUMENT)[0];
        assert_eq!(
            (&*approved.0, &approved.2),
            ("sample-approved", &json!("APPROVED")),
            "after {approvals} approvals"
        );
    }
}

#[test]
fn a_directory_that_prevents_the_samples_does_not_prevent_the_start() {
    let place = TestFolder::new();
    let mut empty = dev(&place, " --empty");
    place.data("group remove authors author --as admin");
    assert_eq!(empty.stop(), Some(0));
    let _next = dev(&place, "");
    for kind in PRODUCT.into_iter().chain([DOCUMENT]) {
        assert_eq!(instances(&place, kind), [], "{kind}");
    }
    let log = std::fs::read_to_string(place.folder.join("host.log")).expect("its log");
    assert!(log.contains("a sample could not be made"), "{log}");
}
