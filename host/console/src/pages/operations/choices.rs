//! The operator's selection among many items: single items, all with the same error, or all. Also the status of items that
//! were sent again, which the page follows. Templates are `templates/choices.html` and `templates/sent.html`.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::confirm::Confirm;
use crate::language::Words;
use crate::list::Paged;
use crate::moment::Moment;
use crate::pages::instance::deliveries::DeliveryStatus;
use crate::posted::Fields;
use crate::session::{Halt, Visitor};

/// How many items one form sends again or discards.
pub(super) const MANY_MAX: usize = 500;
/// How many pages of the list are searched for items with an error.
const PAGES_MAX: usize = 50;
/// How many of the items sent again a page follows.
pub(super) const FOLLOWED_MAX: usize = 20;

/// The items with the same error.
pub(super) struct Group {
    pub(super) error: String,
    pub(super) count: String,
    pub(super) is_chosen: bool,
    pub(super) items: Vec<Item>,
}

/// An item that may be selected.
pub(super) struct Item {
    /// Its value in a form.
    pub(super) key: String,
    pub(super) error: String,
    pub(super) name: String,
    pub(super) address: String,
    pub(super) id: String,
    pub(super) about: String,
    pub(super) since: Moment,
    pub(super) is_chosen: bool,
}

/// The selection in a form.
#[derive(Default)]
pub(super) struct Choice {
    is_all: bool,
    errors: Vec<String>,
    keys: Vec<String>,
    pub(super) reason: String,
    /// The place in the list of the page that has the form.
    pub(super) after: String,
}

/// A page with choices.
pub(super) struct Choices {
    /// The address to which the form is sent.
    pub(super) address: String,
    pub(super) groups: Vec<Group>,
    pub(super) is_all: bool,
    pub(super) reason: String,
    /// The place of the page in the list.
    pub(super) after: String,
    /// The refused items, each with its page.
    pub(super) refused: Vec<(String, String, String)>,
    /// The results, in words.
    pub(super) done: Vec<String>,
    pub(super) refusal: Option<String>,
    pub(super) confirm: Option<Confirm>,
    pub(super) sent: Option<Sent>,
}

/// The items that were sent again.
pub(super) struct Sent {
    /// The address at which a script asks again.
    pub(super) address: String,
    pub(super) statuses: Vec<DeliveryStatus>,
    /// Whether one of them has no outcome yet.
    pub(super) waits: bool,
}

impl Sent {
    pub(super) fn of(address: String, statuses: Vec<DeliveryStatus>) -> Option<Sent> {
        (!statuses.is_empty()).then(|| Sent {
            waits: statuses.iter().any(|one| one.class == "waiting"),
            address,
            statuses,
        })
    }
}

impl Choice {
    pub(super) fn of(fields: &Fields) -> Choice {
        let all = |name: &'static str| fields.all(name).map(str::to_owned).collect();
        Choice {
            is_all: !fields.get("all").is_empty(),
            errors: all("error"),
            keys: all("item"),
            reason: fields.get("reason").trim().to_owned(),
            after: fields.get("after").to_owned(),
        }
    }

    fn has(&self, error: &str, key: &str) -> bool {
        let named = |all: &[String], one: &str| all.iter().any(|other| other == one);
        self.is_all || named(&self.errors, error) || named(&self.keys, key)
    }

    /// The keys of the selection, and whether there are more than one form takes. The form names single items. The list gives
    /// all items, or all with an error.
    pub(super) async fn resolved<T: DeserializeOwned>(
        &self,
        visitor: &Visitor,
        path: impl Fn(&str) -> String,
        item: impl Fn(&T) -> (String, String),
    ) -> Result<(Vec<String>, bool), Halt> {
        let (mut keys, mut is_more) = (Vec::new(), false);
        if self.is_all || !self.errors.is_empty() {
            let mut after = Some(String::new());
            for _ in 0..PAGES_MAX {
                let Some(place) = after.take_if(|_| keys.len() <= MANY_MAX) else {
                    break;
                };
                let found: Paged<T> = visitor.get(&path(&place)).await?;
                let chosen = found.data.iter().map(&item);
                let chosen = chosen.filter(|(error, key)| self.has(error, key));
                keys.extend(chosen.map(|(_, key)| key));
                after = found.page.next;
            }
            is_more = after.is_some();
        }
        for key in &self.keys {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        is_more |= keys.len() > MANY_MAX;
        keys.truncate(MANY_MAX);
        Ok((keys, is_more))
    }
}

impl Choices {
    pub(super) fn new(address: String) -> Choices {
        Choices {
            address,
            groups: Vec::new(),
            is_all: false,
            reason: String::new(),
            after: String::new(),
            refused: Vec::new(),
            done: Vec::new(),
            refusal: None,
            confirm: None,
            sent: None,
        }
    }

    /// Shows these items from the place `after` on, by their errors. `count` is the text of their number.
    pub(super) fn listing(
        self,
        (items, after): (Vec<Item>, &str),
        choice: &Choice,
        count: &str,
        w: Words,
    ) -> Choices {
        let mut by_error: BTreeMap<String, Vec<Item>> = BTreeMap::new();
        for item in items {
            let is_chosen = choice.keys.contains(&item.key);
            let of_error = by_error.entry(item.error.clone()).or_default();
            of_error.push(Item { is_chosen, ..item });
        }
        let groups = by_error.into_iter().map(|(error, items)| Group {
            count: w.n(count, items.len()),
            is_chosen: choice.errors.contains(&error),
            error,
            items,
        });
        Choices {
            groups: groups.collect(),
            is_all: choice.is_all,
            reason: choice.reason.clone(),
            after: after.to_owned(),
            ..self
        }
    }

    /// Says how many were sent again, if the page does not follow all of them.
    pub(super) fn bounding(&mut self, sent: usize, w: Words) {
        if sent > FOLLOWED_MAX {
            self.done.push(w.n("sent-first", FOLLOWED_MAX));
        }
    }

    /// Asks to confirm that these are discarded. `effect` is the text of the effect.
    pub(super) fn asking(&mut self, keys: Vec<String>, choice: &Choice, effect: &str, w: Words) {
        let effects = vec![w.n(effect, keys.len())];
        let fixed = [("do", "discard".to_owned()), ("step", "confirm".to_owned())];
        let keys = keys.into_iter().map(|key| ("item", key));
        let page = self.address.clone();
        self.confirm = Some(Confirm {
            hidden: fixed.into_iter().chain(keys).collect(),
            effects,
            reason: Some(choice.reason.clone()),
            is_final: true,
            ..Confirm::new(
                w.t("choice-discard").into_owned(),
                format!("{page}#act"),
                page,
            )
        });
    }
}
