use super::*;

const BYTES_MAX: usize = 1 << 20;

fn refused(bytes: &[u8]) -> Vec<(&'static str, String)> {
    scan(bytes, BYTES_MAX)
        .expect_err("refused")
        .into_iter()
        .map(|problem| (problem.code, problem.message))
        .collect()
}
