wrkflw_guest::states! { enum State { Draft, Review = "Draft" } }
wrkflw_guest::triggers! { enum Trigger { Retry, Again = "RETRY" } }

fn main() {}
