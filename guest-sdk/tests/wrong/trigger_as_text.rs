use wrkflw_guest::{Deadline, Due, days};

fn main() {
    let _ = Deadline::fire(Due::After(days(1)), "APPROVE");
}
