//! Random numbers that are the same on every machine: integers only, seeded by what they are for.

/// A stream of random numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub(super) struct Dice {
    state: u64,
}

impl Dice {
    /// A stream for one purpose; other purposes with the same seed get other numbers.
    pub(super) fn new(seed: u64, purpose: &str, number: u64) -> Self {
        // FNV-1a over all that tells the streams apart.
        let mut state = 0xcbf2_9ce4_8422_2325_u64;
        for byte in seed.to_le_bytes().into_iter().chain(number.to_le_bytes()).chain(purpose.bytes()) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self { state }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `limit - 1`; 0 where `limit` is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        // The high word of a 128-bit product: no division, and a bias far below what a simulation could show.
        let product = u128::from(self.next()) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number from `from` to `to`, both included.
    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from) + 1)
    }

    /// True in `percent` of a hundred cases.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A number between two powers of two, spread evenly over the powers.
    pub(super) fn magnitude(&mut self, from: u64, to: u64) -> u64 {
        let power = self.between(from, to.saturating_sub(1)).min(62);
        let whole = 1_u64 << power;
        whole + self.below(whole)
    }

    /// An item of a list; `None` where it is empty.
    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let limit = u64::try_from(items.len()).ok()?;
        items.get(usize::try_from(self.below(limit)).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn purposes_do_not_share_numbers() {
        let first = |seed, purpose, number| Dice::new(seed, purpose, number).next();
        assert_eq!(first(1, "a", 0), first(1, "a", 0));
        assert_ne!(first(1, "a", 0), first(2, "a", 0));
        assert_ne!(first(1, "a", 0), first(1, "b", 0));
        assert_ne!(first(1, "a", 0), first(1, "a", 1));
    }

    #[test]
    fn ranges_are_kept_and_reached() {
        let mut dice = Dice::new(7, "test", 0);
        let mut seen = [false; 6];
        for _ in 0..1000 {
            let number = dice.between(10, 15);
            seen[usize::try_from(number - 10).unwrap()] = true;
            assert!((1 << 9..1 << 12).contains(&dice.magnitude(9, 12)));
        }
        assert_eq!(seen, [true; 6]);
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.pick::<u8>(&[]), None);
    }
}
