//! The commands of an audit, and the instance before and after each.

use wrkflw_core::apply::{Stamp, apply, apply_to};
use wrkflw_core::event::Event;
use wrkflw_core::ids::{CommandId, InstanceId};
use wrkflw_core::instance::Instance;

use super::{Entry, Evidence};

/// A command with its entries.
pub(super) struct Issued {
    id: CommandId,
    pub(super) evidence: Evidence,
    entries: Vec<Entry>,
}

/// A command with the instance before and after it. Only one exists at a time, because an instance has its whole past.
pub(super) struct Recorded<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) events: Vec<&'a Event>,
    pub(super) before: Option<Instance>,
    pub(super) after: Instance,
}

impl Entry {
    fn stamp(&self, instance: InstanceId) -> Stamp<'_> {
        Stamp {
            instance,
            revision: self.revision,
            at: self.occurred_at,
            actor: self.actor.as_deref(),
        }
    }
}

impl Issued {
    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.entries.iter().map(|entry| &entry.payload)
    }

    /// The command with the instance before and after it.
    pub(super) fn recorded(
        &self,
        id: InstanceId,
        before: Option<Instance>,
    ) -> Result<Recorded<'_>, String> {
        let mut after = before.clone();
        for entry in &self.entries {
            let next = apply(after, &entry.payload, entry.stamp(id));
            after = Some(next.map_err(|error| error.to_string())?);
        }
        Ok(Recorded {
            evidence: &self.evidence,
            events: self.events().collect(),
            before,
            after: after.ok_or("a command has no entry")?,
        })
    }
}

impl<'a> Recorded<'a> {
    /// Goes on with the next command, which happens in the same step.
    pub(super) fn go_on(&mut self, id: InstanceId, next: &'a Issued) -> Result<(), String> {
        for entry in &next.entries {
            let applied = apply_to(&mut self.after, &entry.payload, entry.stamp(id));
            applied.map_err(|error| error.to_string())?;
        }
        self.events.extend(next.events());
        self.evidence = &next.evidence;
        Ok(())
    }
}

/// The commands of the entries. The error names the part that a scenario cannot express.
pub(super) fn commands(entries: Vec<Entry>) -> Result<Vec<Issued>, String> {
    let mut commands: Vec<Issued> = Vec::new();
    for mut entry in entries {
        let (id, evidence) = (entry.command_id, entry.evidence.take());
        let is_same = commands.last().is_some_and(|command| command.id == id);
        if let Some(command) = commands.last_mut().filter(|_| is_same) {
            command.entries.push(entry);
        } else {
            let evidence: Evidence = evidence.ok_or("an entry lacks its evidence")?;
            let mut lookups = evidence.lookups.iter();
            if lookups.any(|looked| looked.asked.workloads.is_some()) {
                let why = "the host allocated its tasks by the work that people had, which a scenario does not know";
                return Err(why.to_owned());
            }
            commands.push(Issued {
                id,
                evidence,
                entries: vec![entry],
            });
        }
    }
    Ok(commands)
}
