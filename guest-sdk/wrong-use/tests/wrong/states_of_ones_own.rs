use wrkflw_guest::{Flow, Graph, NoConfig};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Draft,
}

wrkflw_guest::triggers! { enum Trigger { Approve } }

struct Approval;

impl Flow for Approval {
    type Config = NoConfig;
    type Data = ();
    type State = State;
    type Trigger = Trigger;

    fn graph(_: &NoConfig) -> Graph<State, Trigger> {
        unreachable!()
    }
}

fn main() {}
