use wrkflw_guest::Graph;

wrkflw_guest::states! { enum State { Draft, Review, Done } }
wrkflw_guest::triggers! { enum Trigger { Approve } }
wrkflw_guest::triggers! { enum Other { Approve } }

fn graph() -> Graph<State, Trigger> {
    Graph::start(State::Draft)
        .task(State::Draft, "Write", |s| s.on(Trigger::Approve, State::Review))
        .task(State::Review, "Read", |s| s.on(Other::Approve, State::Done))
        .terminal(State::Done, "DONE")
}

fn main() {
    graph();
}
