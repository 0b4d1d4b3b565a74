//! Reproducible random numbers: the same seed gives the same numbers.

/// The generator `SplitMix64`.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The seed of a run: that of `WRKFLW_SEED`, or a new one. It is printed, so that it is known after a failure.
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment sets the seed of a failure to repeat"
    )]
    pub(super) fn seed() -> u64 {
        let given = std::env::var("WRKFLW_SEED").ok();
        let given = given.map(|seed| seed.parse().expect("WRKFLW_SEED is a number"));
        let seed = given.unwrap_or_else(|| wrkflw_runtime::clock::new_id().as_u64_pair().1);
        eprintln!("WRKFLW_SEED={seed}");
        seed
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to less than `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).expect("a count");
        usize::try_from(self.next() % count).expect("less than the count")
    }

    /// Whether something happens that has this probability in per cent.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
