//! Rankings of a buffer's entries by a number, and sums of the weights of ranks.

use std::cmp::Reverse;

/// The sort key of an entry in a [`Ranking`]: a number, and the serial number. Among entries with equal
/// numbers the newest entry comes first.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy, Debug)]
pub(super) struct Rank(u64, Reverse<u64>);

impl Rank {
    /// Creates the key of the entry with the serial number `serial`, which is ranked by `value`.
    pub(super) fn new(value: f64, serial: u64) -> Self {
        // The float is mapped to an integer so that integers have the same order as floats: all bits of a
        // negative number are flipped, and only the sign bit of any other number.
        let bits = value.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        Self(ordered, Reverse(serial))
    }

    pub(super) fn serial(self) -> u64 {
        self.1.0
    }
}

/// A sorted list of keys, the smallest first.
///
/// The list is cut into chunks (adjacent parts), so that an insertion moves few keys. [`nth`](Self::nth)
/// finds a key by subtracting the lengths of the chunks before it.
#[derive(Default)]
pub(super) struct Ranking {
    /// The adjacent parts of the sorted list, in ascending order. No part is empty.
    chunks: Vec<Vec<Rank>>,
}

/// Half of the maximum length of a chunk (a part of the sorted list). A chunk that exceeds the maximum is
/// split in two. In tests the value is small, so that tests cover many chunks.
const CHUNK: usize = if cfg!(test) { 8 } else { 512 };

impl Ranking {
    /// Returns the index of the chunk that holds the key `rank`, and the index of this key in the chunk. If
    /// the key isn't in the list, the two indices are the place where it would be inserted.
    fn position(&self, rank: Rank) -> (usize, usize) {
        let below = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| *last < rank));
        let chunk = below.min(self.chunks.len().saturating_sub(1));
        (chunk, self.chunks.get(chunk).map_or(0, |ranks| ranks.partition_point(|other| *other < rank)))
    }

    /// Adds a key that isn't in the list.
    pub(super) fn insert(&mut self, rank: Rank) {
        let (chunk, at) = self.position(rank);
        let Some(ranks) = self.chunks.get_mut(chunk) else { return self.chunks.push(vec![rank]) };
        ranks.insert(at, rank);
        if ranks.len() > 2 * CHUNK {
            let upper = ranks.split_off(CHUNK);
            self.chunks.insert(chunk + 1, upper);
        }
    }

    /// Removes a key, if it is in the list.
    pub(super) fn remove(&mut self, rank: Rank) {
        let (chunk, at) = self.position(rank);
        let Some(ranks) = self.chunks.get_mut(chunk).filter(|ranks| ranks.get(at) == Some(&rank)) else {
            return;
        };
        ranks.remove(at);
        if ranks.is_empty() {
            self.chunks.remove(chunk);
        }
    }

    /// Returns the key with exactly `k` smaller keys; `None` if the list has at most `k` keys.
    pub(super) fn nth(&self, mut k: usize) -> Option<Rank> {
        let chunk = self.chunks.iter().find(|chunk| {
            let here = k < chunk.len();
            k -= if here { 0 } else { chunk.len() };
            here
        });
        chunk?.get(k).copied()
    }
}

/// Returns the sum of `1 / (shift + rank)` over the ranks from 1 to `ranks`.
pub(super) fn harmonic(shift: f64, ranks: usize) -> f64 {
    const HEAD: usize = 16;
    let head: f64 = (1..=ranks.min(HEAD)).map(|rank| (shift + rank as f64).recip()).sum();
    if ranks <= HEAD {
        return head;
    }
    // The sum of the terms after the first `HEAD` terms is a difference of two values of the digamma function
    // psi. Both are computed by the expansion psi(x + 1/2) = ln x + tail(x), whose error is at most 1e-14.
    let tail = |x: f64| {
        let y = (x * x).recip();
        y * (1.0 / 24.0 - y * (7.0 / 960.0 - y * (31.0 / 8064.0 - y * 127.0 / 30_720.0)))
    };
    let from = shift + HEAD as f64 + 0.5;
    let more = (ranks - HEAD) as f64;
    head + (more / from).ln_1p() + tail(from + more) - tail(from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Checks that random insertions and removals give the same order as sorting a plain list.
        #[test]
        fn items_are_found_as_in_a_list(
            moves in prop::collection::vec((0u64..2_000, -40i32..40, prop::bool::weighted(0.7)), 0..4_000)
        ) {
            let mut ranking = Ranking::default();
            let mut list = Vec::<Rank>::new();
            for (serial, value, adds) in moves {
                let rank = Rank::new(f64::from(value) * 1e3, serial);
                match list.iter().position(|other| other.serial() == serial) {
                    None if adds => {
                        ranking.insert(rank);
                        list.push(rank);
                    }
                    None => ranking.remove(rank),
                    Some(at) => ranking.remove(list.swap_remove(at)),
                }
            }
            list.sort_unstable();
            prop_assert!(ranking.chunks.iter().all(|chunk| (1..=2 * CHUNK).contains(&chunk.len())));
            prop_assert!(ranking.chunks.iter().flatten().eq(&list));
            for k in 0..=list.len() {
                prop_assert_eq!(ranking.nth(k), list.get(k).copied());
            }
        }
    }

    #[test]
    fn ranks_go_by_value_and_of_equals_the_newest_is_the_least() {
        let sorted = [(-1e4, 7), (-1.0, 9), (-1.0, 3), (-0.0, 1), (0.0, 2), (2.5, 0), (f64::INFINITY, 4)];
        assert!(sorted.map(|(value, serial)| Rank::new(value, serial)).is_sorted());
    }

    #[test]
    fn harmonic_sums_are_those_of_the_terms_one_by_one() {
        for shift in [0.0, 0.3, 17.0, 1e4, 1e9, 1e17] {
            // The reference sum is compensated: it also adds up the rounding error of each addition, because
            // the errors of many similar terms would accumulate.
            let mut sum = 0.0f64;
            let mut lost = 0.0;
            for rank in 1..=200_000 {
                let term = (shift + f64::from(rank)).recip();
                let next = sum + term;
                lost += if sum >= term { sum - next + term } else { term - next + sum };
                sum = next;
                if rank < 40 || rank % 9_973 == 0 {
                    let got = harmonic(shift, rank as usize);
                    let sum = sum + lost;
                    assert!((got - sum).abs() < 1e-13 * sum, "{shift} {rank}: {got}, {sum}");
                }
            }
        }
    }
}
