//! The commands: many actors, each at a random host, mostly with commands that fit the present state.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::vote_on;
use super::history::{Asked, Call, History};
use super::rules::{CREW, Command, Flow, OPERATOR, OUTSIDER, REQUESTER};
use crate::support::app::{Answer, Host, TestApp};
use crate::support::guests::subflows;

/// Concurrent instances.
const SLOTS: usize = 4;
/// How often a request is repeated that a host refused as busy.
const ATTEMPTS_MAX: usize = 20;

/// Pseudo-random numbers, the same for the same seed (after `SplitMix64`).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound.max(1) as u64).expect("below a bound that fits")
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The state that all actors share.
pub(super) struct Fixture {
    hosts: Vec<Host>,
    /// Counts beginnings and ends of requests.
    clock: AtomicU64,
    slots: Mutex<Vec<Slot>>,
    done: Mutex<Vec<History>>,
}

/// A running instance as it was shown last.
struct Slot {
    history: History,
    shown: Value,
    /// Tells it from earlier instances in this slot.
    number: u64,
}

impl Fixture {
    pub(super) async fn new(app: &TestApp, hosts: Vec<Host>, seed: u64) -> Arc<Fixture> {
        vote_on(app, &[json!({})]).await;
        let published = app.publish("subflows", subflows(), &json!({})).await;
        published.expect(201);
        let path = "/v1/definitions/subflows/versions/1/activate";
        app.post("admin", path, json!({})).await.expect(200);
        for person in CREW {
            let path = format!("/v1/people/{person}");
            let put = app.put("admin", &path, json!({ "name": person }));
            put.await.expect(200);
            let path = format!("/v1/groups/reviewers/members/{person}");
            app.put("admin", &path, json!({})).await.expect(200);
        }
        let fixture = Arc::new(Fixture {
            hosts,
            clock: AtomicU64::new(1),
            slots: Mutex::default(),
            done: Mutex::default(),
        });
        let mut random = Random(seed);
        for _ in 0..SLOTS {
            let slot = fixture.begin(&mut random).await;
            fixture.slots.lock().expect("no panic").push(slot);
        }
        fixture
    }

    /// The histories of all instances, once every actor is done.
    pub(super) fn histories(&self) -> Vec<History> {
        let mut done = std::mem::take(&mut *self.done.lock().expect("no panic"));
        let slots = std::mem::take(&mut *self.slots.lock().expect("no panic"));
        done.extend(slots.into_iter().map(|slot| slot.history));
        done
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Starts an instance of either flow.
    async fn begin(&self, random: &mut Random) -> Slot {
        let number = random.roll();
        let (flow, key, data) = if random.below(2) == 0 {
            let offers = vec![json!({ "groups": ["reviewers"] }); 4];
            let needed = 2 + random.below(2);
            let data = json!({ "assign": { "offers": offers, "needed": needed } });
            (Flow::Committee { needed }, "committee", data)
        } else {
            let (payments, buffered) = (2 + random.roll() % 3, random.below(2) == 0);
            let data = json!({
                "first": "Work", "payments": payments, "wait": { "bufferSignals": buffered },
            });
            let flow = Flow::Subflows { payments, buffered };
            (flow, "subflows", data)
        };
        let body = json!({
            "definitionKey": key, "entityType": "thing", "entityId": number.to_string(), "data": data,
        });
        let (begun, host) = (self.tick(), random.below(self.hosts.len()));
        let sent = self.hosts[host].send(REQUESTER, "POST", "/v1/instances", &[], Some(body));
        let answer = sent.await;
        let call = self.call(REQUESTER, Asked::Start, begun, answer);
        assert_eq!(call.status, 201, "{}", call.body);
        Slot {
            shown: call.shown().expect("it was started").clone(),
            history: History {
                flow,
                calls: vec![call],
            },
            number,
        }
    }

    fn call(&self, who: &'static str, asked: Asked, begun: u64, answer: Answer) -> Call {
        Call {
            who,
            asked,
            begun,
            ended: self.tick(),
            status: answer.status,
            body: answer.body,
        }
    }

    /// Sends so many requests as one actor, one after the other.
    pub(super) async fn act(self: Arc<Fixture>, mut random: Random, count: usize) {
        for _ in 0..count {
            let place = random.below(SLOTS);
            let (shown, number) = {
                let slots = self.slots.lock().expect("no panic");
                (slots[place].shown.clone(), slots[place].number)
            };
            let is_over = ["COMPLETED", "CANCELLED"]
                .iter()
                .any(|over| shown["status"] == *over);
            if is_over && random.below(5) == 0 {
                let slot = self.begin(&mut random).await;
                let mut slots = self.slots.lock().expect("no panic");
                // Another actor may have replaced it already. Both instances are checked.
                let before = std::mem::replace(&mut slots[place], slot);
                self.done.lock().expect("no panic").push(before.history);
                continue;
            }
            let (who, asked) = choose(&mut random, &shown);
            let call = self.ask(&mut random, who, asked, &shown).await;
            self.keep(place, number, call);
        }
    }

    /// Stores the call in its history, and the shown instance for other actors.
    fn keep(&self, place: usize, number: u64, call: Call) {
        let mut slots = self.slots.lock().expect("no panic");
        let slot = &mut slots[place];
        if slot.number == number {
            let known = slot.shown["revision"].as_u64();
            if let Some(shown) = call
                .shown()
                .filter(|shown| shown["revision"].as_u64() > known)
            {
                slot.shown = shown.clone();
            }
            slot.history.calls.push(call);
            return;
        }
        drop(slots);
        let mut done = self.done.lock().expect("no panic");
        let instance = |call: &Call| call.shown().map(|shown| shown["id"].clone());
        let mut histories = done.iter_mut();
        // A call whose answer has an instance is stored with it. A refusal by a replaced instance has little to check.
        if let Some(id) = instance(&call) {
            let found = histories.find(|history| instance(&history.calls[0]).as_ref() == Some(&id));
            let found = found.expect("what was replaced is kept");
            found.calls.push(call);
        }
    }

    /// Sends the request, again while the host is busy. The key makes it take effect once.
    async fn ask(
        &self,
        random: &mut Random,
        who: &'static str,
        asked: Asked,
        shown: &Value,
    ) -> Call {
        let (method, path, body) = request(&asked, shown);
        let key = format!("{:016x}", random.roll());
        let headers = [("idempotency-key", key.as_str())];
        let headers = if method == "POST" { &headers[..] } else { &[] };
        let begun = self.tick();
        for _ in 0..ATTEMPTS_MAX {
            let host = &self.hosts[random.below(self.hosts.len())];
            let answer = host.send(who, method, &path, headers, body.clone()).await;
            if answer.status == 503 {
                continue;
            }
            let call = self.call(who, asked, begun, answer);
            // Only changes are stored under their key.
            if call.is_change() && random.below(8) == 0 {
                // A repetition has no effect, whichever host gets it.
                let host = &self.hosts[random.below(self.hosts.len())];
                let again = host.send(who, method, &path, headers, body).await;
                assert_eq!((again.status, &again.body), (call.status, &call.body));
            }
            return call;
        }
        panic!("{path} found all hosts busy {ATTEMPTS_MAX} times");
    }
}

/// Mostly a command that fits the instance as it was shown last.
fn choose(random: &mut Random, shown: &Value) -> (&'static str, Asked) {
    const PEOPLE: [&str; 9] = [
        CREW[0], CREW[1], CREW[2], CREW[3], CREW[4], CREW[5], REQUESTER, OUTSIDER, OPERATOR,
    ];
    let anybody = random.of(&PEOPLE);
    let tasks = shown["states"][0]["tasks"].as_array();
    let tasks = tasks.map_or(&[][..], Vec::as_slice);
    let suspended = shown["status"] == "SUSPENDED";
    match random.below(100) {
        0..12 => return (anybody, Asked::Look),
        12..14 => return (random.of(&[OPERATOR, anybody]), Asked::Do(Command::Cancel)),
        14..18 => return (random.of(&[OPERATOR, anybody]), Asked::Do(Command::Suspend)),
        18..20 => return (OPERATOR, Asked::Do(Command::Resume)),
        20..50 if suspended => return (OPERATOR, Asked::Do(Command::Resume)),
        20..30 => return (anybody, signal(random)),
        30..60 if tasks.is_empty() => return (anybody, signal(random)),
        _ => {}
    }
    if tasks.is_empty() {
        return (anybody, Asked::Look);
    }
    let task = &tasks[random.below(tasks.len())];
    let id = task["id"].as_str().unwrap_or_default().to_owned();
    let owner = PEOPLE.into_iter().find(|person| task["owner"] == *person);
    // Sometimes somebody tries it who is not the owner.
    let owner = owner.filter(|_| random.below(6) > 0);
    let to = random.of(&PEOPLE[..8]);
    match owner {
        None if random.below(5) > 0 => (random.of(&PEOPLE[..7]), Asked::Do(Command::Claim(id))),
        _ => {
            let who = owner.unwrap_or(anybody);
            let command = match random.below(20) {
                0..9 => Command::Decide(id, random.of(&["YES", "YES", "NO", "GO", "GO", "MAYBE"])),
                9..12 => Command::Delegate(id, to),
                12..14 => Command::Resolve(id),
                14..17 => Command::Release(id),
                17 | 18 => return (OPERATOR, Asked::Do(Command::Reassign(id, to))),
                _ => return (OPERATOR, Asked::Do(Command::Reset(id))),
            };
            (who, Asked::Do(command))
        }
    }
}

/// Sometimes one that was sent before.
fn signal(random: &mut Random) -> Asked {
    let trigger = random.of(&["PAID", "PAID", "PAID", "LEAVE", "LEAVE", "WITHDRAW"]);
    let trigger = if trigger == "WITHDRAW" && random.below(3) > 0 {
        "PAID"
    } else {
        trigger
    };
    // Other senders, and other triggers, use the same ids.
    let id = format!("no {}", random.below(12));
    Asked::Do(Command::Signal(trigger, id))
}

fn request(asked: &Asked, shown: &Value) -> (&'static str, String, Option<Value>) {
    let instance = shown["id"].as_str().expect("an id");
    let whole = |what: &str| format!("/v1/instances/{instance}/{what}");
    let task = |id: &str, what: &str| format!("/v1/tasks/{id}/{what}");
    let why = || json!({ "reason": "as it happens" });
    let on = |to: &str| json!({ "to": to, "reason": "as it happens" });
    let (path, body) = match asked {
        Asked::Look | Asked::Start => {
            return ("GET", format!("/v1/instances/{instance}"), None);
        }
        Asked::Do(command) => match command {
            Command::Claim(id) => (task(id, "claim"), json!({})),
            Command::Release(id) => (task(id, "release"), json!({})),
            Command::Decide(id, outcome) => (task(id, "decide"), json!({ "outcome": outcome })),
            Command::Delegate(id, to) => (task(id, "delegate"), on(to)),
            Command::Resolve(id) => (task(id, "resolve"), json!({})),
            Command::Reassign(id, to) => (task(id, "reassign"), on(to)),
            Command::Reset(id) => (task(id, "reset"), why()),
            Command::Cancel => (whole("cancel"), why()),
            Command::Suspend => (whole("suspend"), why()),
            Command::Resume => (whole("resume"), json!({})),
            Command::Signal(trigger, id) => {
                (whole(&format!("signals/{trigger}")), json!({ "id": id }))
            }
        },
    };
    ("POST", path, Some(body))
}
