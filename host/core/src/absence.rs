//! The rules for absences: their periods, their substitutes, and the length of a chain of substitutes.
//!
//! A new absence is checked against the existing ones: no chain of substitutes may contain a person twice, or be longer
//! than [`LINKS_MAX`]. [`eligibility`](super::eligibility) checks what a substitute may do when they act.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::refusal::Refusal;

/// The longest chain of absences from an absent person to the one who acts for them.
pub const LINKS_MAX: usize = 3;
/// The longest absence.
pub(crate) const DAYS_MAX: i64 = 366;
/// The most absences of a person that are in force at a time, each for another definition. Every command of a substitute loads them.
pub(crate) const AT_A_TIME_MAX: usize = 20;
/// The most present and future absences of a person: each has rows of its own for its beginning and its end.
pub const OF_PERSON_MAX: i64 = 100;
/// The most present and future absences that name one substitute. Other people add them, so this bounds the cost that other
/// people may cause for the substitute.
pub const OF_SUBSTITUTE_MAX: i64 = 200;
/// The most of these for one absent person, so that no person alone reaches the limit of a substitute.
pub const OF_PAIR_MAX: i64 = 50;

/// The absence of a person, with their substitute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    pub person: String,
    pub substitute: String,
    /// Limits it to work of this definition; none for all work.
    pub definition: Option<String>,
    pub from: Timestamp,
    /// Exclusive.
    pub until: Timestamp,
}

impl Absence {
    /// Checks the absence alone, without the others.
    pub fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        if self.person == self.substitute {
            return Err(Refusal::OwnSubstitute);
        }
        if self.from >= self.until {
            return Err(Refusal::Backwards);
        }
        if self.until <= now {
            return Err(Refusal::Over);
        }
        if self.from.duration_until(self.until) > SignedDuration::from_hours(24 * DAYS_MAX) {
            return Err(Refusal::TooLong);
        }
        Ok(())
    }

    /// Checks the absence against the current and future ones.
    pub fn fits(&self, held: &[Absence]) -> Result<(), Refusal> {
        let double = held.iter().find(|other| {
            other.person == self.person
                && other.definition == self.definition
                && AbsenceScope::of(self).within(other).is_some()
        });
        if let Some(double) = double {
            return Err(Refusal::Overlap {
                substitute: double.substitute.clone(),
                from: double.from,
                until: double.until,
            });
        }
        if self.most_at_a_time(held) > AT_A_TIME_MAX {
            return Err(Refusal::TooManyAtATime);
        }
        let chain = Chain {
            people: vec![&self.person, &self.substitute],
            reach: AbsenceScope::of(self),
        };
        chain.extend_forward(held)
    }

    /// The most absences of the person that are in force at one moment of this one, with this one.
    fn most_at_a_time(&self, held: &[Absence]) -> usize {
        let own = held.iter().filter(|other| other.person == self.person);
        // The same absence may be among them twice, also as a link of a chain.
        let own: BTreeSet<_> = own
            .map(|other| (other.from, other.until, other.definition.as_deref()))
            .collect();
        let at = |moment: Timestamp| {
            let periods = own.iter();
            let in_force = periods.filter(|(from, until, _)| *from <= moment && moment < *until);
            in_force.count()
        };
        let begin = own.iter().map(|(from, _, _)| *from);
        let begin = begin.filter(|from| self.from < *from && *from < self.until);
        let most = std::iter::once(self.from).chain(begin).map(at).max();
        most.unwrap_or_default() + 1
    }
}

/// The period and the work for which all absences of a chain are in force.
#[derive(Clone, Copy)]
struct AbsenceScope<'a> {
    from: Timestamp,
    until: Timestamp,
    definition: Option<&'a str>,
}

impl<'a> AbsenceScope<'a> {
    fn of(absence: &'a Absence) -> AbsenceScope<'a> {
        AbsenceScope {
            from: absence.from,
            until: absence.until,
            definition: absence.definition.as_deref(),
        }
    }

    /// The intersection with the absence; none if they do not overlap.
    fn within(self, absence: &'a Absence) -> Option<AbsenceScope<'a>> {
        let other = AbsenceScope::of(absence);
        let (from, until) = (self.from.max(other.from), self.until.min(other.until));
        let definition = match (self.definition, other.definition) {
            (Some(one), Some(two)) if one != two => return None,
            (one, two) => one.or(two),
        };
        (from < until).then_some(AbsenceScope {
            from,
            until,
            definition,
        })
    }
}

/// A chain of absences. A chain of more than [`LINKS_MAX`] is refused, which also bounds the recursion.
struct Chain<'a> {
    /// From the absent person to the last substitute.
    people: Vec<&'a str>,
    reach: AbsenceScope<'a>,
}

impl<'a> Chain<'a> {
    fn extend_forward(&self, held: &'a [Absence]) -> Result<(), Refusal> {
        self.extend_backward(held)?;
        let last = self.people[self.people.len() - 1];
        for link in held.iter().filter(|link| link.person == last) {
            let Some(reach) = self.reach.within(link) else {
                continue;
            };
            let mut people = self.people.clone();
            people.push(&link.substitute);
            self.extended(&link.substitute, people, reach)?
                .extend_forward(held)?;
        }
        Ok(())
    }

    fn extend_backward(&self, held: &'a [Absence]) -> Result<(), Refusal> {
        for link in held.iter().filter(|link| link.substitute == self.people[0]) {
            let Some(reach) = self.reach.within(link) else {
                continue;
            };
            let mut people = vec![link.person.as_str()];
            people.extend(&self.people);
            self.extended(&link.person, people, reach)?
                .extend_backward(held)?;
        }
        Ok(())
    }

    fn extended(
        &self,
        new: &str,
        people: Vec<&'a str>,
        reach: AbsenceScope<'a>,
    ) -> Result<Chain<'a>, Refusal> {
        let names = || people.iter().map(ToString::to_string).collect();
        if self.people.contains(&new) {
            return Err(Refusal::Circle(names()));
        }
        if people.len() - 1 > LINKS_MAX {
            return Err(Refusal::Chain(names()));
        }
        Ok(Chain { people, reach })
    }
}

#[cfg(test)]
mod tests;
