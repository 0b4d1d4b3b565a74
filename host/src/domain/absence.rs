//! When somebody may stand in for an absent person, and how far that may be handed on.
//!
//! Absences are judged when they are made, against those that hold already: nobody stands in for themselves by way of
//! others, and no chain of substitutes grows longer than [`LINKS_MAX`]. What a person may do as a substitute is judged
//! in [`standing`](super::standing) when they act.

use jiff::{SignedDuration, Timestamp};

use super::refusal::Refusal;

/// How many absences in a row may lead from an absent person to the one who acts for them.
pub const LINKS_MAX: usize = 3;
/// The longest absence.
pub const DAYS_MAX: i64 = 366;

/// A person who is away, and who stands in for them meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    pub person: String,
    pub substitute: String,
    /// For work of this definition alone; none for all.
    pub definition: Option<String>,
    pub from: Timestamp,
    /// No longer at this moment.
    pub until: Timestamp,
}

impl Absence {
    /// Whether the absence makes sense by itself.
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

    /// Whether it can be added to those that hold or will hold.
    pub fn fits(&self, held: &[Absence]) -> Result<(), Refusal> {
        let double = held.iter().find(|other| {
            other.person == self.person
                && other.definition == self.definition
                && Reach::of(self).within(other).is_some()
        });
        if let Some(double) = double {
            return Err(Refusal::Overlap {
                substitute: double.substitute.clone(),
                from: double.from,
                until: double.until,
            });
        }
        let chain = Chain {
            people: vec![&self.person, &self.substitute],
            reach: Reach::of(self),
        };
        chain.ahead(held)
    }
}

/// When, and for which work, all links of a chain hold.
#[derive(Clone, Copy)]
struct Reach<'a> {
    from: Timestamp,
    until: Timestamp,
    definition: Option<&'a str>,
}

impl<'a> Reach<'a> {
    fn of(absence: &'a Absence) -> Reach<'a> {
        Reach {
            from: absence.from,
            until: absence.until,
            definition: absence.definition.as_deref(),
        }
    }

    /// What is left of it where the absence holds, too.
    fn within(self, absence: &'a Absence) -> Option<Reach<'a>> {
        let other = Reach::of(absence);
        let (from, until) = (self.from.max(other.from), self.until.min(other.until));
        let definition = match (self.definition, other.definition) {
            (Some(one), Some(two)) if one != two => return None,
            (one, two) => one.or(two),
        };
        (from < until).then_some(Reach {
            from,
            until,
            definition,
        })
    }
}

/// Absences in a row. Its depth is bounded by [`LINKS_MAX`], which it is refused for passing.
struct Chain<'a> {
    /// From the absent person to the last substitute.
    people: Vec<&'a str>,
    reach: Reach<'a>,
}

impl<'a> Chain<'a> {
    fn ahead(&self, held: &'a [Absence]) -> Result<(), Refusal> {
        self.behind(held)?;
        let last = self.people[self.people.len() - 1];
        for link in held.iter().filter(|link| link.person == last) {
            let Some(reach) = self.reach.within(link) else {
                continue;
            };
            let mut people = self.people.clone();
            people.push(&link.substitute);
            self.joined(&link.substitute, people, reach)?.ahead(held)?;
        }
        Ok(())
    }

    fn behind(&self, held: &'a [Absence]) -> Result<(), Refusal> {
        for link in held.iter().filter(|link| link.substitute == self.people[0]) {
            let Some(reach) = self.reach.within(link) else {
                continue;
            };
            let mut people = vec![link.person.as_str()];
            people.extend(&self.people);
            self.joined(&link.person, people, reach)?.behind(held)?;
        }
        Ok(())
    }

    fn joined(
        &self,
        new: &str,
        people: Vec<&'a str>,
        reach: Reach<'a>,
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
