//! Assignments: who gets the work of a task state, and what happens when it is late.
//!
//! An assignment offers work. The host handles claims, delegation and exclusion, and finds
//! candidates if nobody else is eligible.

use crate::{
    Allocation, Assignment, Deadline, Due, Flow, Graph, Moment, Needed, Offer, OverdueAction,
    Principal, SignalSubscription, Since, Triggers, WorkingDays, WorkingTime,
};

impl Assignment {
    /// Creates one task for each offer; one decision is needed.
    pub fn new(offers: impl IntoIterator<Item = Offer>) -> Self {
        let offers = offers.into_iter().collect();
        Self {
            offers,
            needed: Needed::Count(1),
            exclude: vec![],
            fallback: None,
            priority: 0,
            deadlines: vec![],
            subscriptions: vec![],
            blind: false,
            extensions: vec![],
        }
    }

    /// One task, which any member of the group may claim.
    pub fn to_group(group: &str) -> Self {
        Self::new([Offer::new("").to_group(group)])
    }

    /// One task, for this person.
    pub fn to_user(user: &str) -> Self {
        Self::new([Offer::new("").to_user(user)])
    }

    /// One task, for the manager of this person.
    pub fn to_manager_of(user: &str) -> Self {
        Self::new([Offer::new("").to_manager_of(user)])
    }

    /// One task, for the person that the data names, or for the manager of `managed` if it names nobody.
    /// Never let data that a requester writes name an approver: requesters would choose their own
    /// approvers.
    pub fn to_user_or_manager_of(user: Option<&str>, managed: &str) -> Self {
        match user.map(str::trim).filter(|user| !user.is_empty()) {
            Some(user) => Self::to_user(user),
            None => Self::to_manager_of(managed),
        }
    }

    /// A task for each of these people. `needed` of them must decide for the same outcome.
    ///
    /// [`Event::quorum`](crate::Event::quorum) says in `transition` when the result is certain.
    pub fn any_of<U: AsRef<str>>(people: impl IntoIterator<Item = U>, needed: u32) -> Self {
        let offers = people.into_iter().map(|user| {
            let user = user.as_ref();
            Offer::new(user).to_user(user)
        });
        Self::new(offers).needed(needed)
    }

    /// A task for each member of this group, which only that member may do. `needed` is 1 unless another builder sets it.
    /// Excluded members get no task.
    ///
    /// The members are determined when the state is entered. Later members get no task until a plan offers the work anew. The
    /// task of a member who leaves the group is withdrawn, unless too few would be left.
    pub fn to_each_member(group: &str) -> Self {
        Self::new([Offer::new("").to_each_member(group)])
    }

    /// Removes the offers to these people. Otherwise a vote would count tasks that nobody can decide.
    pub fn without<U: AsRef<str>>(mut self, users: impl IntoIterator<Item = U>) -> Self {
        for user in users {
            let candidates = [Principal::User(user.as_ref().into())];
            self.offers.retain(|offer| offer.candidates != candidates);
        }
        self
    }

    /// Changes every offer so far, such as its form or its deadlines.
    pub fn each(mut self, of_one: impl FnMut(Offer) -> Offer) -> Self {
        self.offers = self.offers.into_iter().map(of_one).collect();
        self
    }

    /// No task. The host tries the fallbacks, and reports the state as unassignable if they fail.
    pub fn nobody() -> Self {
        Self::new([])
    }

    /// How many decisions with the same outcome are needed. People see this number; `transition` decides when the votes suffice.
    pub fn needed(mut self, decisions: u32) -> Self {
        self.needed = Needed::Count(decisions);
        self
    }

    /// At least this fraction of the tasks must be decided with the same outcome: `at_least(2, 3)` is four of five. Withdrawn
    /// tasks do not count.
    pub fn at_least(mut self, numerator: u32, denominator: u32) -> Self {
        self.needed = Needed::at_least(numerator, denominator);
        self
    }

    /// More than this fraction of the tasks must be decided with the same outcome: `more_than(1, 2)` is three of four.
    pub fn more_than(mut self, numerator: u32, denominator: u32) -> Self {
        self.needed = Needed::more_than(numerator, denominator);
        self
    }

    /// These people must not decide, neither themselves nor through a delegate.
    pub fn exclude<U: Into<String>>(mut self, users: impl IntoIterator<Item = U>) -> Self {
        self.exclude.extend(users.into_iter().map(Into::into));
        self
    }

    /// The group that gets the work when nobody else is left.
    pub fn fallback(mut self, group: &str) -> Self {
        self.fallback = Some(group.into());
        self
    }

    /// The higher, the more urgent.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Hides the decisions from other people until the state has ended. The flow gets them.
    pub fn blind(mut self) -> Self {
        self.blind = true;
        self
    }

    /// A deadline of the state as a whole.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadlines.push(deadline);
        self
    }

    /// How a signal reaches this state, besides being sent to its instance. This holds until the state ends; an escalation or a
    /// reoffer does not change it.
    pub fn subscribe(mut self, subscription: SignalSubscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    /// A task without a label gets the title of the state.
    pub(crate) fn labelled<F: Flow>(
        mut self,
        graph: &Graph<F::State, F::Trigger>,
        state: &str,
    ) -> Self {
        let title = graph.drawn(state).map_or(state, |drawn| &drawn.title);
        for offer in self
            .offers
            .iter_mut()
            .filter(|offer| offer.label.is_empty())
        {
            offer.label = title.into();
        }
        self
    }
}

impl Offer {
    /// A task. The label distinguishes it from others of the same state. If it is empty, the task gets the title of the state.
    pub fn new(label: &str) -> Self {
        Self {
            label: label.into(),
            candidates: vec![],
            owner: None,
            each_member: None,
            retain: false,
            allocation: Allocation::Offered,
            deadlines: vec![],
            extensions: vec![],
        }
    }

    /// Members of this group may claim it.
    pub fn to_group(self, group: &str) -> Self {
        self.to(Principal::Group(group.into()))
    }

    /// This person may claim it.
    pub fn to_user(self, user: &str) -> Self {
        self.to(Principal::User(user.into()))
    }

    /// The manager of this person may claim it.
    pub fn to_manager_of(self, user: &str) -> Self {
        self.to(Principal::ManagerOf(user.into()))
    }

    /// One such task for each member of this group, offered to that member alone.
    pub fn to_each_member(mut self, group: &str) -> Self {
        self.each_member = Some(group.into());
        self
    }

    /// This person owns it from the start, without a claim.
    pub fn owned_by(mut self, user: &str) -> Self {
        self.owner = Some(user.into());
        self
    }

    /// A candidate who is familiar with the instance owns it from the start: the last one who decided in it, or else one who owns
    /// another task of it. Without such a candidate, it is open to all.
    pub fn retain(mut self) -> Self {
        self.retain = true;
        self
    }

    /// The candidates get such tasks in turn. The owner is the candidate who got a task of this flow in this state longest ago, or
    /// never. They own it from the start, without a claim, and may release it. Excluded and absent people are skipped, and those
    /// who own another task of the state instance or lost one there because it was overdue. At most 100 people are considered. If
    /// nobody is left, it is open to all.
    pub fn round_robin(mut self) -> Self {
        self.allocation = Allocation::RoundRobin;
        self
    }

    /// The same, but the candidate with the fewest open tasks of all flows owns it; among equals, as by
    /// [`round_robin`](Self::round_robin).
    pub fn least_loaded(mut self) -> Self {
        self.allocation = Allocation::LeastLoaded;
        self
    }

    /// A deadline of this task alone.
    pub fn deadline(mut self, deadline: Deadline) -> Self {
        self.deadlines.push(deadline);
        self
    }

    fn to(mut self, principal: Principal) -> Self {
        self.candidates.push(principal);
        self
    }
}

impl Due {
    /// This many hours after the state was entered or the task created. For another time: `Due::After(days(7))`.
    pub fn after_hours(count: u32) -> Self {
        Self::After(hours(count))
    }

    /// After this many seconds of working time, by the tenant's calendar of this name.
    pub fn working(seconds: u32, calendar: &str) -> Self {
        Self::Working(WorkingTime {
            time: seconds,
            calendar: calendar.into(),
        })
    }

    /// At the end of the last of this many working days, by the tenant's calendar of this name. The day of the beginning does not
    /// count.
    pub fn working_days(days: u32, calendar: &str) -> Self {
        Self::WorkingDays(WorkingDays {
            days,
            calendar: calendar.into(),
        })
    }

    /// At this moment, whenever the state was entered or the task created.
    pub fn at(moment: Moment) -> Self {
        Self::At(moment.to_string())
    }

    /// Reminds the owner, or the candidates.
    pub fn remind(self) -> Deadline {
        self.acts(OverdueAction::Remind)
    }

    /// Calls [`Flow::escalate`].
    pub fn escalate(self) -> Deadline {
        self.acts(OverdueAction::Escalate)
    }

    /// Takes the task from its owner and offers it to its candidates again.
    pub fn release(self) -> Deadline {
        self.acts(OverdueAction::Release)
    }

    /// Fires a trigger of the state. The graph must allow it with `FiredBy::DEADLINE`.
    pub fn fire(self, trigger: impl Triggers) -> Deadline {
        self.acts(OverdueAction::Fire(trigger.name().into()))
    }

    /// Cancels the instance for this reason, with all its branches and children. Flow logic is not called.
    pub fn cancel(self, reason: &str) -> Deadline {
        self.acts(OverdueAction::Cancel(reason.into()))
    }

    fn acts(self, action: OverdueAction) -> Deadline {
        Deadline {
            when: self,
            since: Since::Created,
            repeat: None,
            action,
        }
    }
}

impl Deadline {
    /// Counts from each claim of the task, not from its creation. Only for deadlines of an offer. The count stops while nobody
    /// owns the task. It begins anew with the next owner, but not with a delegate.
    pub fn since_claim(mut self) -> Self {
        self.since = Since::Claimed;
        self
    }

    /// Repeats the action every `seconds`, until the work is done.
    pub fn every(mut self, seconds: u32) -> Self {
        self.repeat = Some(seconds);
        self
    }
}

/// This many minutes in seconds.
pub const fn minutes(count: u32) -> u32 {
    count.saturating_mul(60)
}

/// This many hours in seconds.
pub const fn hours(count: u32) -> u32 {
    minutes(count).saturating_mul(60)
}

/// This many days in seconds.
pub const fn days(count: u32) -> u32 {
    hours(count).saturating_mul(24)
}
