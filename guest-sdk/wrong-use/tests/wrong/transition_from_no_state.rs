use wrkflw_guest::Graph;

wrkflw_guest::states! { enum State { Draft, Review, Done } }
wrkflw_guest::triggers! { enum Trigger { Approve, Reject } }

fn graph() -> Graph<State, Trigger> {
    Graph::start(State::Draft)
        .on(Trigger::Approve, State::Done)
        .terminal(State::Done, "DONE")
}

fn main() {
    graph();
}
