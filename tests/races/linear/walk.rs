//! Who asks what: many actors, each at a host of its choice, mostly for what suits the moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::vote_on;
use super::history::{Asked, Call, History};
use super::rules::{CREW, Command, Flow, OPERATOR, OUTSIDER, REQUESTER};
use crate::support::app::{Answer, Host, TestApp};
use crate::support::guests::errands;

/// Instances at a time.
const SLOTS: usize = 4;
/// How often a request is repeated that a busy host did not get to.
const ATTEMPTS_MAX: usize = 20;

/// Numbers that look random, the same for the same seed (after `SplitMix64`).
pub(super) struct Dice(pub(super) u64);

impl Dice {
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

/// What all actors share.
pub(super) struct Field {
    hosts: Vec<Host>,
    /// Of beginnings and ends.
    clock: AtomicU64,
    slots: Mutex<Vec<Slot>>,
    done: Mutex<Vec<History>>,
}

/// An instance under way, as it was last shown.
struct Slot {
    history: History,
    shown: Value,
    /// Told apart from those before it.
    number: u64,
}

impl Field {
    pub(super) async fn new(app: &TestApp, hosts: Vec<Host>, seed: u64) -> Arc<Field> {
        vote_on(app, &[json!({})]).await;
        let published = app.publish("errands", errands(), &json!({})).await;
        published.expect(201);
        let path = "/v1/definitions/errands/versions/1/activate";
        app.post("admin", path, json!({})).await.expect(200);
        for person in CREW {
            let path = format!("/v1/people/{person}");
            let put = app.put("admin", &path, json!({ "name": person }));
            put.await.expect(200);
            let path = format!("/v1/groups/reviewers/members/{person}");
            app.put("admin", &path, json!({})).await.expect(200);
        }
        let field = Arc::new(Field {
            hosts,
            clock: AtomicU64::new(1),
            slots: Mutex::default(),
            done: Mutex::default(),
        });
        let mut dice = Dice(seed);
        for _ in 0..SLOTS {
            let slot = field.begin(&mut dice).await;
            field.slots.lock().expect("no panic").push(slot);
        }
        field
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
    async fn begin(&self, dice: &mut Dice) -> Slot {
        let number = dice.roll();
        let (flow, key, data) = if dice.below(2) == 0 {
            let offers = vec![json!({ "groups": ["reviewers"] }); 4];
            let needed = 2 + dice.below(2);
            let data = json!({ "assign": { "offers": offers, "needed": needed } });
            (Flow::Committee { needed }, "committee", data)
        } else {
            let (payments, keep_early) = (2 + dice.roll() % 3, dice.below(2) == 0);
            let data = json!({
                "first": "Work", "payments": payments, "wait": { "keepEarly": keep_early },
            });
            let flow = Flow::Errands {
                payments,
                keep_early,
            };
            (flow, "errands", data)
        };
        let body = json!({
            "definitionKey": key, "entityType": "thing", "entityId": number.to_string(), "data": data,
        });
        let (begun, host) = (self.tick(), dice.below(self.hosts.len()));
        let sent = self.hosts[host].send(REQUESTER, "POST", "/v1/instances", &[], Some(body));
        let answer = sent.await;
        let call = self.call(REQUESTER, Asked::Start, begun, answer);
        assert_eq!(call.status, 201, "{}", call.body);
        Slot {
            shown: call.body.clone(),
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

    /// So many requests by one actor, one after the other.
    pub(super) async fn act(self: Arc<Field>, mut dice: Dice, count: usize) {
        for _ in 0..count {
            let place = dice.below(SLOTS);
            let (shown, number) = {
                let slots = self.slots.lock().expect("no panic");
                (slots[place].shown.clone(), slots[place].number)
            };
            let is_over = ["COMPLETED", "CANCELLED"]
                .iter()
                .any(|over| shown["status"] == *over);
            if is_over && dice.below(5) == 0 {
                let slot = self.begin(&mut dice).await;
                let mut slots = self.slots.lock().expect("no panic");
                // Whoever was faster has put another one there; both are checked.
                let before = std::mem::replace(&mut slots[place], slot);
                self.done.lock().expect("no panic").push(before.history);
                continue;
            }
            let (who, asked) = choose(&mut dice, &shown);
            let call = self.ask(&mut dice, who, asked, &shown).await;
            self.keep(place, number, call);
        }
    }

    /// Writes the call down where it belongs, and shows others what it showed.
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
        // One that was answered with the instance finds its own; a refusal of one that is over says little more.
        if let Some(id) = instance(&call) {
            let found = histories.find(|history| instance(&history.calls[0]).as_ref() == Some(&id));
            let found = found.expect("what was replaced is kept");
            found.calls.push(call);
        }
    }

    /// Sends the request, again for as long as a host is busy: under one key, so that it happens once.
    async fn ask(&self, dice: &mut Dice, who: &'static str, asked: Asked, shown: &Value) -> Call {
        let (method, path, body) = request(&asked, shown);
        let key = format!("{:016x}", dice.roll());
        let headers = [("idempotency-key", key.as_str())];
        let headers = if method == "POST" { &headers[..] } else { &[] };
        let begun = self.tick();
        for _ in 0..ATTEMPTS_MAX {
            let host = &self.hosts[dice.below(self.hosts.len())];
            let answer = host.send(who, method, &path, headers, body.clone()).await;
            if answer.status == 503 {
                continue;
            }
            let call = self.call(who, asked, begun, answer);
            // Only what changed something is kept under its key.
            if call.is_change() && dice.below(8) == 0 {
                // A repeat comes to nothing more, whichever host it goes to.
                let host = &self.hosts[dice.below(self.hosts.len())];
                let again = host.send(who, method, &path, headers, body).await;
                assert_eq!((again.status, &again.body), (call.status, &call.body));
            }
            return call;
        }
        panic!("{path} found all hosts busy {ATTEMPTS_MAX} times");
    }
}

/// Mostly what suits the instance as it was last shown.
fn choose(dice: &mut Dice, shown: &Value) -> (&'static str, Asked) {
    const PEOPLE: [&str; 9] = [
        CREW[0], CREW[1], CREW[2], CREW[3], CREW[4], CREW[5], REQUESTER, OUTSIDER, OPERATOR,
    ];
    let anybody = dice.of(&PEOPLE);
    let tasks = shown["states"][0]["tasks"].as_array();
    let tasks = tasks.map_or(&[][..], Vec::as_slice);
    let suspended = shown["status"] == "SUSPENDED";
    match dice.below(100) {
        0..12 => return (anybody, Asked::Look),
        12..14 => return (dice.of(&[OPERATOR, anybody]), Asked::Do(Command::Cancel)),
        14..18 => return (dice.of(&[OPERATOR, anybody]), Asked::Do(Command::Suspend)),
        18..20 => return (OPERATOR, Asked::Do(Command::Resume)),
        20..50 if suspended => return (OPERATOR, Asked::Do(Command::Resume)),
        20..30 => return (anybody, signal(dice)),
        30..60 if tasks.is_empty() => return (anybody, signal(dice)),
        _ => {}
    }
    if tasks.is_empty() {
        return (anybody, Asked::Look);
    }
    let task = &tasks[dice.below(tasks.len())];
    let id = task["id"].as_str().unwrap_or_default().to_owned();
    let owner = PEOPLE.into_iter().find(|person| task["owner"] == *person);
    // At times somebody tries it whose it is not.
    let owner = owner.filter(|_| dice.below(6) > 0);
    let to = dice.of(&PEOPLE[..8]);
    match owner {
        None if dice.below(5) > 0 => (dice.of(&PEOPLE[..7]), Asked::Do(Command::Claim(id))),
        _ => {
            let who = owner.unwrap_or(anybody);
            let command = match dice.below(20) {
                0..9 => Command::Decide(id, dice.of(&["YES", "YES", "NO", "GO", "GO", "MAYBE"])),
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

/// At times one that was sent before.
fn signal(dice: &mut Dice) -> Asked {
    let trigger = dice.of(&["PAID", "PAID", "PAID", "LEAVE", "LEAVE", "WITHDRAW"]);
    let trigger = if trigger == "WITHDRAW" && dice.below(3) > 0 {
        "PAID"
    } else {
        trigger
    };
    // Others, and other triggers, have the same ids.
    let id = format!("no {}", dice.below(12));
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
