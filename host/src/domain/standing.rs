//! Who may act on a task, how they come to it, and who may not though they seem to: judged from the work and from the
//! directory of one moment, now or long ago.
//!
//! Nobody acts on what they or those they act for requested or are excluded from; nobody acts, or is acted for, twice
//! in one stay. Own work is the initiator's alone. An owned task is its owner's, for as long as the owner could claim
//! it again or was given it; while the owner is absent, their substitute may act, too.

pub mod directory;

use std::collections::BTreeMap;

use serde::Serialize;

use self::directory::Directory;
use super::absence::LINKS_MAX;
use super::answer::Principal;
use super::instance::{Holding, Instance, StateInstance, Task, TaskStatus};

/// How many of the barred a sentence names.
const NAMED_MAX: usize = 5;

/// One open task, as far as it decides who may act on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The key of its definition.
    pub definition: String,
    pub candidates: Vec<Principal>,
    pub owner: Option<Owner>,
    pub exclude: Vec<String>,
    pub requesters: Vec<String>,
    pub initiator: String,
    /// Work that the initiator does on their own request.
    pub own_work: bool,
    /// Who has decided in this stay, or was acted for.
    pub decided: Vec<String>,
}

/// Who has the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub id: String,
    /// It was given to them, by an assignment, an operator or a delegation: they need not be a candidate.
    pub assigned: bool,
    /// For whom they have it, if not for themselves.
    pub principal: Option<String>,
}

/// How somebody comes to act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "camelCase")]
pub enum Way {
    Candidate,
    Group {
        group: String,
    },
    /// As the manager of somebody.
    Manager {
        of: String,
    },
    Owner,
    /// For an absent person.
    Substitute {
        of: String,
        /// The substitutes between them who are absent, too.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        via: Vec<String>,
    },
}

/// Why somebody may not act who otherwise might.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, PartialOrd, Ord)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Bar {
    Requester,
    Excluded,
    AlreadyDecided,
    NotInitiator,
    /// They would act for somebody who requested the instance.
    ForRequester {
        of: String,
    },
    /// They would act for somebody who is excluded.
    ForExcluded {
        of: String,
    },
    /// They would act for somebody who has decided already, or was acted for.
    ForDecided {
        of: String,
    },
    /// Somebody else has the task.
    Owned {
        by: String,
    },
    /// They have the task, and are no longer among those who may.
    LostStanding,
}

/// The answer for one task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    pub able: BTreeMap<String, Vec<Way>>,
    pub barred: BTreeMap<String, Vec<Bar>>,
    /// A group was too large to know all its members.
    pub cut: bool,
}

/// One way of one person to a task.
struct Claim<'a> {
    /// From the one whose work it is to the one who would act.
    line: Vec<&'a str>,
    way: Way,
}

impl Work {
    /// A task of an instance, which may be one of the past.
    pub fn of(instance: &Instance, stay: &StateInstance, task: &Task, own_work: bool) -> Work {
        let decisions = stay.tasks.iter().filter_map(Task::decision);
        Work {
            definition: instance.definition.key.clone(),
            candidates: task.candidates.clone(),
            owner: Owner::of(task),
            exclude: stay.exclude.clone(),
            requesters: instance.requesters.clone(),
            initiator: instance.initiator.clone(),
            own_work,
            decided: decisions
                .flat_map(|decision| [Some(&decision.actor), decision.on_behalf_of.as_ref()])
                .flatten()
                .cloned()
                .collect(),
        }
    }
}

impl Owner {
    /// Somebody who holds a task in this way.
    pub fn holding(id: &str, holding: &Holding) -> Owner {
        Owner {
            id: id.to_owned(),
            assigned: holding.assigned || !holding.delegations.is_empty(),
            principal: holding.principal().map(str::to_owned),
        }
    }

    fn of(task: &Task) -> Option<Owner> {
        match &task.status {
            TaskStatus::Claimed { owner, holding, .. } => Some(Owner::holding(owner, holding)),
            TaskStatus::Pending | TaskStatus::Completed { .. } | TaskStatus::Cancelled { .. } => {
                None
            }
        }
    }
}

impl Directory {
    /// The people whom a candidate stands for, each with the way that they come to it by.
    fn roots<'a>(&'a self, candidate: &'a Principal) -> Vec<(&'a str, Way)> {
        match candidate {
            Principal::User(id) => vec![(id, Way::Candidate)],
            Principal::Group(group) => {
                let way = || Way::Group {
                    group: group.clone(),
                };
                let members = self.members.get(group).into_iter().flatten();
                members.map(|person| (person.as_str(), way())).collect()
            }
            Principal::ManagerOf(of) => {
                let way = || Way::Manager { of: of.clone() };
                let manager = self.managers.get(of);
                manager.map(|id| (id.as_str(), way())).into_iter().collect()
            }
        }
    }

    /// The claim itself, and those of all who stand in for its person.
    fn handed_on<'a>(&'a self, definition: &str, claim: Claim<'a>) -> Vec<Claim<'a>> {
        let (mut claims, mut next) = (vec![claim], 0);
        while let Some(Claim { line, .. }) = claims.get(next) {
            let line = line.clone();
            next += 1;
            if line.len() > LINKS_MAX {
                continue;
            }
            let theirs = self.substitutions.get(line[line.len() - 1]);
            for one in theirs.into_iter().flatten() {
                let holds = one.definition.as_ref().is_none_or(|key| key == definition);
                if holds && !line.contains(&one.substitute.as_str()) {
                    let way = Way::Substitute {
                        of: line[0].to_owned(),
                        via: line[1..].iter().map(ToString::to_string).collect(),
                    };
                    let mut line = line.clone();
                    line.push(&one.substitute);
                    claims.push(Claim { line, way });
                }
            }
        }
        claims
    }
}

impl Claim<'_> {
    fn actor(&self) -> &str {
        self.line[self.line.len() - 1]
    }

    /// What keeps the claim from counting.
    fn bar(&self, work: &Work) -> Option<Bar> {
        let actor = self.actor();
        let others = || self.line[..self.line.len() - 1].iter().copied();
        let of = |id: &str| id.to_owned();
        let among = |people: &[String], id: &str| people.iter().any(|one| one == id);
        if work.own_work && (actor != work.initiator || self.line.len() > 1) {
            return Some(Bar::NotInitiator);
        }
        let is_requester = |id: &str| !work.own_work && among(&work.requesters, id);
        if is_requester(actor) {
            return Some(Bar::Requester);
        }
        if among(&work.exclude, actor) {
            return Some(Bar::Excluded);
        }
        if among(&work.decided, actor) {
            return Some(Bar::AlreadyDecided);
        }
        if let Some(id) = others().find(|id| is_requester(id)) {
            return Some(Bar::ForRequester { of: of(id) });
        }
        if let Some(id) = others().find(|id| among(&work.exclude, id)) {
            return Some(Bar::ForExcluded { of: of(id) });
        }
        // Those in between only hand on; the work is that of the first.
        let first = self.line[0];
        (self.line.len() > 1 && among(&work.decided, first))
            .then(|| Bar::ForDecided { of: of(first) })
    }
}

/// Who may act on the work.
pub fn judge(work: &Work, directory: &Directory) -> Standing {
    let roots = work
        .candidates
        .iter()
        .flat_map(|candidate| directory.roots(candidate));
    let claims: Vec<Claim<'_>> = roots
        .flat_map(|(person, way)| {
            let line = vec![person];
            directory.handed_on(&work.definition, Claim { line, way })
        })
        .collect();
    let mut standing = Standing {
        cut: work.candidates.iter().any(
            |candidate| matches!(candidate, Principal::Group(group) if directory.cut.contains(group)),
        ),
        ..Standing::default()
    };
    match &work.owner {
        None => standing.settle(work, claims),
        Some(owner) => standing.settle_owned(work, directory, owner, &claims),
    }
    let able = &standing.able;
    standing
        .barred
        .retain(|person, _| !able.contains_key(person));
    for bars in standing.barred.values_mut() {
        bars.sort();
        bars.dedup();
    }
    standing
}

impl Standing {
    fn settle(&mut self, work: &Work, claims: Vec<Claim<'_>>) {
        for claim in claims {
            if let Some(bar) = claim.bar(work) {
                self.bar(claim.actor(), bar);
                continue;
            }
            let ways = self.able.entry(claim.actor().to_owned()).or_default();
            if !ways.contains(&claim.way) {
                ways.push(claim.way);
            }
        }
    }

    fn settle_owned(
        &mut self,
        work: &Work,
        directory: &Directory,
        owner: &Owner,
        claims: &[Claim<'_>],
    ) {
        let (theirs, others): (Vec<_>, Vec<_>) =
            claims.iter().partition(|claim| claim.actor() == owner.id);
        for claim in others {
            let taken = || Bar::Owned {
                by: owner.id.clone(),
            };
            self.bar(claim.actor(), claim.bar(work).unwrap_or_else(taken));
        }
        // The owner's own claims stand behind what was given to them.
        let given = Claim {
            line: owner
                .principal
                .iter()
                .map(String::as_str)
                .filter(|principal| owner.assigned && *principal != owner.id)
                .chain([owner.id.as_str()])
                .collect(),
            way: Way::Owner,
        };
        let bars: Vec<_> = if owner.assigned {
            given.bar(work).into_iter().collect()
        } else if theirs.iter().any(|claim| claim.bar(work).is_none()) {
            Vec::new()
        } else if theirs.is_empty() {
            vec![Bar::LostStanding]
        } else {
            theirs.iter().filter_map(|claim| claim.bar(work)).collect()
        };
        if bars.is_empty() {
            let line = vec![owner.id.as_str()];
            let way = Way::Owner;
            self.settle(
                work,
                directory.handed_on(&work.definition, Claim { line, way }),
            );
        }
        for bar in bars {
            self.bar(&owner.id, bar);
        }
    }

    fn bar(&mut self, person: &str, bar: Bar) {
        self.barred.entry(person.to_owned()).or_default().push(bar);
    }

    /// Whether it is certain that nobody may act.
    pub fn is_nobody(&self) -> bool {
        self.able.is_empty() && !self.cut
    }

    /// Why nobody may act, for people to read.
    pub fn why_nobody(&self) -> String {
        if self.barred.is_empty() {
            return "nobody is among its candidates".to_owned();
        }
        let named = self.barred.iter().take(NAMED_MAX);
        let mut reasons: Vec<_> = named
            .map(|(person, bars)| {
                let bars: Vec<_> = bars.iter().map(ToString::to_string).collect();
                format!("{person} {}", bars.join(" and "))
            })
            .collect();
        if self.barred.len() > NAMED_MAX {
            reasons.push(format!("{} more are barred", self.barred.len() - NAMED_MAX));
        }
        reasons.join("; ")
    }
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bar::Requester => f.write_str("requested the instance"),
            Bar::Excluded => f.write_str("is excluded"),
            Bar::AlreadyDecided => f.write_str("has already decided or was acted for"),
            Bar::NotInitiator => f.write_str("is not the initiator acting in person"),
            Bar::ForRequester { of } => write!(f, "would act for the requester {of}"),
            Bar::ForExcluded { of } => write!(f, "would act for {of}, who is excluded"),
            Bar::ForDecided { of } => write!(f, "would act for {of}, whose decision is made"),
            Bar::Owned { by } => write!(f, "would have to claim what {by} has"),
            Bar::LostStanding => f.write_str("has the task and is no longer a candidate"),
        }
    }
}

#[cfg(test)]
mod tests;
