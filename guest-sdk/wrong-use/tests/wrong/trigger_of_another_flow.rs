use wrkflw_guest::Graph;

wrkflw_guest::states! { enum State { Draft, Done } }
wrkflw_guest::triggers! { enum Trigger { Approve } }
wrkflw_guest::triggers! { enum Other { Approve } }

fn graph() -> Graph<State, Trigger> {
    Graph::start(State::Draft)
        .task(State::Draft, "Write")
        .on(Trigger::Approve, State::Done)
        .task(State::Done, "Read")
        .on(Other::Approve, State::Draft)
}

fn main() {
    graph();
}
