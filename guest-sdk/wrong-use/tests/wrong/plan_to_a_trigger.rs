use wrkflw_guest::Plan;

wrkflw_guest::triggers! { enum Trigger { Approve } }

fn main() {
    let _ = Plan::to(Trigger::Approve);
}
