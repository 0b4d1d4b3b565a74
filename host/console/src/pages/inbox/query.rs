//! The parameters in the address of an inbox: the view, filters, order, columns, and the place in the list.

use crate::ROOT;
use crate::api::with_query;
use crate::posted::Fields;
use crate::zone::{self, Zone};

/// The views, by their names in the API and in the address.
pub(super) const VIEWS: [&str; 4] = ["mine", "available", "groups", "all"];
/// The columns besides the title, in their order.
pub(super) const COLUMNS: [&str; 7] = [
    "state",
    "priority",
    "due",
    "created",
    "holder",
    "initiator",
    "flow",
];
/// The default columns.
const USUAL: [&str; 3] = ["state", "due", "holder"];
/// The rows of a page.
pub(super) const PAGE_ROWS: &str = "25";

/// The parameters of an inbox from an address or a form. Empty values count as missing, because forms send them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InboxQuery {
    pub(super) view: String,
    pub(super) q: String,
    pub(super) definition_key: String,
    pub(super) state: String,
    pub(super) min_priority: String,
    pub(super) due_before: String,
    pub(super) sort: String,
    pub(super) after: String,
    /// Whether the last task of the view was just decided.
    pub(super) is_worked_off: bool,
    /// The chosen columns; empty: the default columns.
    chosen: Vec<&'static str>,
}

impl InboxQuery {
    /// Parses the query of an address.
    pub(crate) fn parse(query: &str) -> InboxQuery {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        InboxQuery::of(&Fields(pairs.into_owned().collect()))
    }

    /// Parses a form. Columns come as several fields, or as one with commas.
    pub(super) fn of(fields: &Fields) -> InboxQuery {
        let text = |name: &str| fields.get(name).to_owned();
        let named: Vec<_> = fields
            .all("columns")
            .flat_map(|all| all.split(','))
            .collect();
        let mut chosen: Vec<_> = COLUMNS.into_iter().collect();
        chosen.retain(|column| named.contains(column));
        if chosen == USUAL {
            chosen.clear();
        }
        InboxQuery {
            view: text("view"),
            q: text("q"),
            definition_key: text("definitionKey"),
            state: text("state"),
            min_priority: text("minPriority"),
            due_before: text("dueBefore"),
            sort: text("sort"),
            after: text("after"),
            is_worked_off: fields.get("done") == "queue",
            chosen,
        }
    }

    /// The view, if the address names one.
    pub(super) fn named_view(&self) -> Option<&'static str> {
        VIEWS.into_iter().find(|view| *view == self.view)
    }

    /// The view.
    pub(crate) fn view(&self) -> &'static str {
        self.named_view().unwrap_or(VIEWS[0])
    }

    pub(super) fn columns(&self) -> Vec<&'static str> {
        if self.chosen.is_empty() {
            USUAL.to_vec()
        } else {
            self.chosen.clone()
        }
    }

    /// The parameters but the view, the columns and the page.
    fn filter(&self) -> [(&'static str, &str); 6] {
        [
            ("q", &self.q),
            ("definitionKey", &self.definition_key),
            ("state", &self.state),
            ("minPriority", &self.min_priority),
            ("dueBefore", &self.due_before),
            ("sort", &self.sort),
        ]
    }

    /// Whether it has more than words.
    pub(super) fn has_more(&self) -> bool {
        let mut filter = self.filter().into_iter();
        filter.any(|(name, value)| name != "q" && !value.is_empty()) || !self.chosen.is_empty()
    }

    pub(super) fn is_filtered(&self) -> bool {
        self.filter()
            .iter()
            .any(|(name, value)| *name != "sort" && !value.is_empty())
    }

    /// The parameters of a page of this inbox. Those without a value are left out.
    pub(super) fn parameters(&self, view: &str, after: &str) -> Vec<(&'static str, String)> {
        let filter = self.filter().into_iter();
        let parameters = [("view", view)].into_iter().chain(filter);
        let parameters = parameters.chain([("after", after)]);
        let columns = ("columns", self.chosen.join(","));
        let parameters = parameters.map(|(name, value)| (name, value.to_owned()));
        let mut parameters: Vec<_> = parameters.chain([columns]).collect();
        parameters.retain(|(_, value)| !value.is_empty());
        parameters
    }

    /// The query of the first page of this inbox.
    pub(super) fn query_string(&self, view: &str) -> String {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(self.parameters(view, ""));
        pairs.finish()
    }

    /// The address of a page of this inbox.
    pub(super) fn address(&self, view: &str, after: &str) -> String {
        self.address_with(view, &[("after", after)])
    }

    /// The address of this inbox with further parameters.
    pub(crate) fn address_with(&self, view: &str, further: &[(&str, &str)]) -> String {
        let own = self.parameters(view, "");
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        with_query(
            ROOT,
            &own.chain(further.iter().copied()).collect::<Vec<_>>(),
        )
    }

    /// The path of the list in the API, with these further parameters. Days are those of the zone.
    pub(crate) fn list(&self, view: &str, further: &[(&str, &str)], zone: Option<Zone>) -> String {
        // A date field gives a day; the API takes moments.
        let due = zone::day(&self.due_before, zone);
        let filter = self.filter().into_iter().map(|(name, value)| match name {
            "dueBefore" => (name, due.as_str()),
            _ => (name, value),
        });
        let parameters = [("view", view)].into_iter().chain(filter);
        let parameters: Vec<_> = parameters.chain(further.iter().copied()).collect();
        with_query("/v1/tasks", &parameters)
    }

    /// The path of a page of the list, as the inbox shows it.
    pub(super) fn page(&self, view: &str, after: &str, zone: Option<Zone>) -> String {
        let further = [
            ("include", "actions,people"),
            ("limit", PAGE_ROWS),
            ("after", after),
        ];
        self.list(view, &further, zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_it_was_made_of() {
        let parsed =
            InboxQuery::parse("view=all&q=a%26b&columns=flow&columns=state,nonsense&sort=dueAt");
        assert_eq!(parsed.columns(), ["state", "flow"]);
        assert_eq!(
            parsed.query_string("all"),
            "view=all&q=a%26b&sort=dueAt&columns=state%2Cflow"
        );
        assert_eq!(InboxQuery::parse(&parsed.query_string("all")), parsed);
        assert!(parsed.is_filtered() && parsed.has_more());
    }

    #[test]
    fn whoever_chose_no_column_has_the_usual_ones() {
        for query in [
            "",
            "columns=",
            "columns=state,due,holder",
            "columns=nonsense",
        ] {
            let parsed = InboxQuery::parse(query);
            assert_eq!(parsed.columns(), USUAL, "{query}");
            assert_eq!(parsed.query_string("mine"), "view=mine");
        }
    }

    #[test]
    fn a_day_begins_in_the_zone_of_the_reader() {
        let parsed = InboxQuery::parse("dueBefore=2026-01-02");
        let list = |zone: Option<&str>| parsed.list("mine", &[], zone.and_then(Zone::named));
        let due = |moment| format!("/v1/tasks?view=mine&dueBefore={moment}");
        assert_eq!(list(None), due("2026-01-02T00%3A00%3A00Z"));
        assert_eq!(list(Some("Asia/Bangkok")), due("2026-01-01T17%3A00%3A00Z"));
        let none = InboxQuery::parse("").list("mine", &[], None);
        assert_eq!(none, "/v1/tasks?view=mine");
    }

    #[test]
    fn a_view_that_there_is_not_is_the_first() {
        assert_eq!(InboxQuery::parse("view=theirs").view(), "mine");
        assert_eq!(InboxQuery::parse("view=all").view(), "all");
    }
}
