wrkflw_guest::states! { enum State { Draft = "in review" } }
wrkflw_guest::triggers! { enum Trigger { Prüfen } }

fn main() {}
