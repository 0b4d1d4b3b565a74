//! Suggests the known name that is most similar to an unknown one.

/// The candidate that differs least from `name`, if it is similar enough.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let close_enough = 1 + name.len() / 3;
    let scored = candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate));
    scored
        .min()
        .filter(|(distance, _)| *distance <= close_enough)
        .map(|(_, candidate)| candidate)
}

/// The Levenshtein distance: how many letters must be added, removed or replaced.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_nonsense_is_not() {
        let known = ["kafka_topic", "kafka_brokers", "listen"];
        assert_eq!(nearest("kafka_tpoic", known), Some("kafka_topic"));
        assert_eq!(nearest("kafka_broker", known), Some("kafka_brokers"));
        assert_eq!(nearest("zzz", known), None);
    }
}
