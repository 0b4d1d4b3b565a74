struct Approval;

wrkflw_guest::export!(Approval);

fn main() {}
