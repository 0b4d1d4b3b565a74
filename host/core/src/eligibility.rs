//! Explains who may act on a task and in which way, and who is excluded and why. Its input is the work and the directory as
//! of one moment, now or in the past.
//!
//! A person may not act on work that they requested or are excluded from. The same holds if they act for such a person. A
//! person decides, or is acted for, at most once in one state instance. Own work is for the initiator alone. An owner keeps
//! a task that was assigned to them. Any other owner keeps it as long as they could claim it again, for themselves or for
//! the absent person for whom they claimed it. A substitute of an absent owner may act, too.
//!
//! A [`Judge`] examines a bounded number of claims and absences. Beyond that, [`Eligibility::cut`] says that the answer may be
//! incomplete.

pub mod directory;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use self::directory::Directory;
use super::absence::LINKS_MAX;
use super::instance::{Candidate, Instance, Ownership, StateInstance, Task, TaskStatus};

/// Claims and absences that are examined for one task.
pub const EXAMINED_MAX: usize = 5_000;
/// Claims and absences that one [`Judge`] examines.
pub const EXAMINED_IN_ALL_MAX: usize = 200_000;
/// How many excluded people a message names.
const NAMED_MAX: usize = 5;

/// The facts of one task that determine who may act on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Work {
    /// The key of its definition.
    pub definition: String,
    pub candidates: Vec<Candidate>,
    pub owner: Option<Owner>,
    pub exclude: Vec<String>,
    pub requesters: Vec<String>,
    pub initiator: String,
    /// Only the initiator may do it.
    pub own_work: bool,
    /// Who has decided in this state instance, or was acted for.
    pub decided: Vec<String>,
}

/// The owner of the task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    pub id: String,
    /// Whether they got it by assignment, from an operator or by delegation, so that they need not be a candidate.
    pub assigned: bool,
    /// The people on whose behalf they own it. The work belongs to the first.
    pub represented: Vec<String>,
}

/// Why a person may act.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "how", rename_all = "camelCase")]
pub enum Way {
    Candidate,
    Group {
        group: String,
    },
    Owner,
    /// As the substitute of an absent person.
    Substitute {
        of: String,
        /// The substitutes between the two people. They are absent, too.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        via: Vec<String>,
    },
}

/// Why a candidate or owner may not act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, PartialOrd, Ord)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Exclusion {
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
    /// Somebody else owns the task.
    Owned {
        by: String,
    },
    /// They own the task and are no longer a candidate.
    LostEligibility,
}

/// Who may act on one task, and who may not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Eligibility {
    pub eligible: BTreeMap<String, Vec<Way>>,
    pub excluded: BTreeMap<String, Vec<Exclusion>>,
    /// The answer may be incomplete: a group was too large to read, or a limit of the judge was reached.
    pub cut: bool,
}

/// One way by which a person may act on a task.
struct Claim<'a> {
    /// From the person whose work it is to the person who would act.
    line: Vec<&'a str>,
    way: Way,
}

impl Work {
    /// A task of an instance; the instance may be one as of a past moment.
    pub fn of(
        instance: &Instance,
        state_instance: &StateInstance,
        task: &Task,
        own_work: bool,
    ) -> Work {
        let decided = state_instance.tasks.iter().flat_map(Task::deciders);
        Work {
            definition: instance.definition.key.clone(),
            candidates: task.candidates.clone(),
            owner: Owner::of(task),
            exclude: state_instance.exclude.clone(),
            requesters: instance.requesters.clone(),
            initiator: instance.initiator.clone(),
            own_work,
            decided: decided.map(str::to_owned).collect(),
        }
    }
}

impl Owner {
    /// An owner who got the task in this way.
    pub fn with(id: &str, ownership: &Ownership) -> Owner {
        Owner {
            id: id.to_owned(),
            assigned: ownership.assigned || !ownership.delegations.is_empty(),
            represented: ownership.represented().map(str::to_owned).collect(),
        }
    }

    /// Why an owner by assignment may not act. They need no claim as a candidate, but nobody whom they represent may be excluded.
    fn exclusion(&self, rules: &Rules<'_>) -> Option<Exclusion> {
        let others = || {
            let represented = self.represented.iter().map(String::as_str);
            represented.filter(|person| *person != self.id)
        };
        let claim = Claim {
            line: others().chain([self.id.as_str()]).collect(),
            way: Way::Owner,
        };
        claim.exclusion(rules).or_else(|| {
            let decided = others().find(|person| rules.decided.contains(person));
            decided.map(|person| Exclusion::ForDecided {
                of: person.to_owned(),
            })
        })
    }

    fn of(task: &Task) -> Option<Owner> {
        match &task.status {
            TaskStatus::Claimed {
                owner, ownership, ..
            } => Some(Owner::with(owner, ownership)),
            TaskStatus::Pending | TaskStatus::Completed { .. } | TaskStatus::Cancelled { .. } => {
                None
            }
        }
    }
}

impl Directory {
    /// The people whom a candidate covers, each with the way by which they may act: a person, or the members of a group.
    fn roots<'a>(&'a self, candidate: &'a Candidate) -> Vec<(&'a str, Way)> {
        match candidate {
            Candidate::User(id) => vec![(id, Way::Candidate)],
            Candidate::Group(group) => {
                let way = || Way::Group {
                    group: group.clone(),
                };
                let members = self.members.get(group).into_iter().flatten();
                members.map(|person| (person.as_str(), way())).collect()
            }
            Candidate::Member { person, group } => {
                let members = self.members.get(group);
                let is_member = members.is_some_and(|members| members.contains(person));
                let way = || Way::Group {
                    group: group.clone(),
                };
                is_member
                    .then(|| (person.as_str(), way()))
                    .into_iter()
                    .collect()
            }
        }
    }

    /// The claim and those of all substitutes of its person. Examines at most `budget` claims and absences.
    fn with_substitutes<'a>(
        &'a self,
        definition: &str,
        claim: Claim<'a>,
        budget: &mut usize,
    ) -> Vec<Claim<'a>> {
        let (mut claims, mut next) = (vec![claim], 0);
        while let Some(Claim { line, .. }) = claims.get(next).filter(|_| *budget > 0) {
            let line = line.clone();
            (next, *budget) = (next + 1, *budget - 1);
            if line.len() > LINKS_MAX {
                continue;
            }
            let absences = self.substitutions.get(line[line.len() - 1]);
            for absence in absences.into_iter().flatten() {
                let Some(rest) = budget.checked_sub(1) else {
                    break;
                };
                *budget = rest;
                let only = absence.definition.as_ref();
                let holds = only.is_none_or(|key| key == definition);
                if holds && !line.contains(&absence.substitute.as_str()) {
                    let way = Way::Substitute {
                        of: line[0].to_owned(),
                        via: line[1..].iter().map(ToString::to_string).collect(),
                    };
                    let mut line = line.clone();
                    line.push(&absence.substitute);
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

    /// Why the claim does not count; none if it does.
    fn exclusion(&self, rules: &Rules<'_>) -> Option<Exclusion> {
        let (work, actor) = (rules.work, self.actor());
        let others = || self.line[..self.line.len() - 1].iter().copied();
        let of = |id: &str| id.to_owned();
        if work.own_work && (actor != work.initiator || self.line.len() > 1) {
            return Some(Exclusion::NotInitiator);
        }
        let is_requester = |id: &str| !work.own_work && rules.requesters.contains(id);
        if is_requester(actor) {
            return Some(Exclusion::Requester);
        }
        if rules.exclude.contains(actor) {
            return Some(Exclusion::Excluded);
        }
        if rules.decided.contains(actor) {
            return Some(Exclusion::AlreadyDecided);
        }
        if let Some(id) = others().find(|id| is_requester(id)) {
            return Some(Exclusion::ForRequester { of: of(id) });
        }
        if let Some(id) = others().find(|id| rules.exclude.contains(id)) {
            return Some(Exclusion::ForExcluded { of: of(id) });
        }
        // The work is that of the first person alone, so the substitutes in between may have decided.
        let first = self.line[0];
        (self.line.len() > 1 && rules.decided.contains(first))
            .then(|| Exclusion::ForDecided { of: of(first) })
    }
}

/// The people whom the rules of one task exclude.
struct Rules<'a> {
    work: &'a Work,
    requesters: HashSet<&'a str>,
    exclude: HashSet<&'a str>,
    decided: HashSet<&'a str>,
}

impl<'a> Rules<'a> {
    fn of(work: &'a Work) -> Rules<'a> {
        let people = |people: &'a [String]| people.iter().map(String::as_str).collect();
        Rules {
            work,
            requesters: people(&work.requesters),
            exclude: people(&work.exclude),
            decided: people(&work.decided),
        }
    }
}

/// Judges tasks against one directory, with a bound on the total work.
pub struct Judge<'a> {
    directory: &'a Directory,
    /// How many claims and absences it may still examine.
    budget: usize,
    /// Results by work: many tasks are offered to the same people.
    known: HashMap<Work, Eligibility>,
}

impl<'a> Judge<'a> {
    pub fn of(directory: &'a Directory) -> Judge<'a> {
        Judge {
            directory,
            budget: EXAMINED_IN_ALL_MAX,
            known: HashMap::new(),
        }
    }

    /// Who may act on the work.
    pub fn judge(&mut self, work: &Work) -> Eligibility {
        if let Some(known) = self.known.get(work) {
            return known.clone();
        }
        let mut budget = self.budget.min(EXAMINED_MAX);
        let had = budget;
        let eligibility = judged(work, self.directory, &mut budget);
        self.budget -= had - budget;
        self.known.insert(work.clone(), eligibility.clone());
        eligibility
    }
}

fn judged(work: &Work, directory: &Directory, budget: &mut usize) -> Eligibility {
    let mut claims: Vec<Claim<'_>> = Vec::new();
    let candidates = work.candidates.iter();
    for (person, way) in candidates.flat_map(|candidate| directory.roots(candidate)) {
        if *budget == 0 {
            break;
        }
        let line = vec![person];
        claims.extend(directory.with_substitutes(&work.definition, Claim { line, way }, budget));
    }
    let mut eligibility = Eligibility {
        cut: directory.lacks_absences
            || work.candidates.iter().any(|candidate| match candidate {
                Candidate::User(_) => false,
                Candidate::Group(group) | Candidate::Member { group, .. } => {
                    directory.cut.contains(group)
                }
            }),
        ..Eligibility::default()
    };
    let rules = Rules::of(work);
    match &work.owner {
        None => eligibility.settle(&rules, claims),
        Some(owner) => eligibility.settle_owned(&rules, directory, owner, &claims, budget),
    }
    eligibility.cut |= *budget == 0;
    let eligible = &eligibility.eligible;
    eligibility
        .excluded
        .retain(|person, _| !eligible.contains_key(person));
    for exclusions in eligibility.excluded.values_mut() {
        exclusions.sort();
        exclusions.dedup();
    }
    eligibility
}

impl Eligibility {
    fn settle(&mut self, rules: &Rules<'_>, claims: Vec<Claim<'_>>) {
        let mut seen = HashSet::new();
        for claim in claims {
            if let Some(exclusion) = claim.exclusion(rules) {
                self.exclusion(claim.actor(), exclusion);
                continue;
            }
            let actor = claim.actor().to_owned();
            if seen.insert((actor.clone(), claim.way.clone())) {
                self.eligible.entry(actor).or_default().push(claim.way);
            }
        }
    }

    fn settle_owned(
        &mut self,
        rules: &Rules<'_>,
        directory: &Directory,
        owner: &Owner,
        claims: &[Claim<'_>],
        budget: &mut usize,
    ) {
        let (own, others): (Vec<_>, Vec<_>) =
            claims.iter().partition(|claim| claim.actor() == owner.id);
        for claim in others {
            let taken = || Exclusion::Owned {
                by: owner.id.clone(),
            };
            self.exclusion(claim.actor(), claim.exclusion(rules).unwrap_or_else(taken));
        }
        let is_right = |claim: &&Claim<'_>| {
            let mut represented = owner.represented.iter();
            claim.line.len() == 1 || represented.any(|person| person == claim.line[0])
        };
        let own: Vec<_> = own.into_iter().filter(is_right).collect();
        let exclusions: Vec<_> = if owner.assigned {
            owner.exclusion(rules).into_iter().collect()
        } else if own.iter().any(|claim| claim.exclusion(rules).is_none()) {
            Vec::new()
        } else if own.is_empty() {
            vec![Exclusion::LostEligibility]
        } else {
            own.iter()
                .filter_map(|claim| claim.exclusion(rules))
                .collect()
        };
        if exclusions.is_empty() {
            let line = vec![owner.id.as_str()];
            let way = Way::Owner;
            let claim = Claim { line, way };
            let with_substitutes =
                directory.with_substitutes(&rules.work.definition, claim, budget);
            self.settle(rules, with_substitutes);
        }
        for exclusion in exclusions {
            self.exclusion(&owner.id, exclusion);
        }
    }

    fn exclusion(&mut self, person: &str, exclusion: Exclusion) {
        self.excluded
            .entry(person.to_owned())
            .or_default()
            .push(exclusion);
    }

    /// Whether nobody may act and the answer is complete.
    pub fn is_nobody(&self) -> bool {
        self.eligible.is_empty() && !self.cut
    }

    /// Why nobody may act, for people to read.
    pub fn why_nobody(&self) -> String {
        if self.excluded.is_empty() {
            return "nobody is among its candidates".to_owned();
        }
        let named = self.excluded.iter().take(NAMED_MAX);
        let mut reasons: Vec<_> = named
            .map(|(person, exclusions)| {
                let exclusions: Vec<_> = exclusions.iter().map(ToString::to_string).collect();
                format!("{person} {}", exclusions.join(" and "))
            })
            .collect();
        if self.excluded.len() > NAMED_MAX {
            reasons.push(format!(
                "{} more are excluded",
                self.excluded.len() - NAMED_MAX
            ));
        }
        reasons.join("; ")
    }
}

impl std::fmt::Display for Exclusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exclusion::Requester => f.write_str("requested the instance"),
            Exclusion::Excluded => f.write_str("is excluded"),
            Exclusion::AlreadyDecided => f.write_str("has already decided or was acted for"),
            Exclusion::NotInitiator => f.write_str("is not the initiator acting in person"),
            Exclusion::ForRequester { of } => write!(f, "would act for the requester {of}"),
            Exclusion::ForExcluded { of } => write!(f, "would act for {of}, who is excluded"),
            Exclusion::ForDecided { of } => write!(f, "would act for {of}, whose decision is made"),
            Exclusion::Owned { by } => write!(f, "would have to claim what {by} has"),
            Exclusion::LostEligibility => f.write_str("has the task and is no longer a candidate"),
        }
    }
}

#[cfg(test)]
mod tests;
