//! What stands in front of each message: a private part of gfn-dist, compiled into this program.

#![allow(dead_code, reason = "tests call less of it than gfn-dist does")]

use gfn::Rng;
use tch::Kind;

use header::{HEADER, KINDS, MOST_ELEMENTS, SUM, read_header};

#[path = "../src/header.rs"]
mod header;

/// A member can only take another's header for what it is: any other bytes are an error.
#[test]
fn headers_that_nobody_wrote_are_refused() {
    let (rng, place) = (&mut Rng::seeded(0), [SUM, 3]);
    let right: Vec<u8> = [SUM, 3, Kind::Double as u64, 17].into_iter().flat_map(u64::to_le_bytes).collect();
    assert_eq!(read_header(place, 0, 0, &right).unwrap(), Some((Kind::Double, 17)));
    let (mut taken, n) = (0, 100_000);
    for _ in 0..n {
        let mut row = right.clone();
        (0..1 + rng.below(3)).for_each(|_| row[rng.below(HEADER)] = rng.below(256) as u8);
        row.truncate(if rng.below(8) == 0 { rng.below(HEADER) } else { HEADER });
        if let Ok(Some((kind, length))) = read_header(place, 0, 0, &row) {
            taken += 1;
            assert!(KINDS.contains(&kind) && length <= MOST_ELEMENTS);
            assert!(row.len() < HEADER || row[..16] == right[..16]);
        }
    }
    // Another kind or length is a message, too.
    assert!(0 < taken && taken < n / 2, "{taken}");
}
