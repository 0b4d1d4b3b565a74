use wrkflw_guest::{Due, days};

fn main() {
    let _ = Due::After(days(1)).fire("APPROVE");
}
