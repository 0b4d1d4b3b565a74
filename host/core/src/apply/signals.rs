//! Signals: those that are buffered, and those that leave the buffer.

use super::Stamp;
use crate::event::Event;
use crate::instance::{BufferedSignal, Instance};

pub(super) fn receive(instance: &mut Instance, event: &Event, stamp: Stamp<'_>) {
    let Event::SignalReceived {
        id,
        trigger,
        state,
        input,
        sender,
    } = event
    else {
        unreachable!("called only for a signal")
    };
    if state.is_none() {
        instance.buffered.push(BufferedSignal {
            id: id.clone(),
            trigger: trigger.clone(),
            input: input.clone(),
            sender: sender.clone(),
            at: stamp.at,
        });
    }
}

/// Removes a buffered signal: of those with this id, the one after `older` others.
pub(super) fn take(buffered: &mut Vec<BufferedSignal>, id: &str, older: u32) {
    let mut places = buffered
        .iter()
        .enumerate()
        .filter(|(_, signal)| signal.id == id);
    let place = places.nth(older as usize).map(|(place, _)| place);
    if let Some(place) = place {
        buffered.remove(place);
    }
}
