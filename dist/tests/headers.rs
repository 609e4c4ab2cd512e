//! Tests of message headers. The module of headers is private to gfn-dist, and is therefore compiled into
//! this program.

#![allow(dead_code, reason = "tests call less of it than gfn-dist does")]

use gfn::Rng;
use tch::Kind;

use header::{HEADER, KINDS, MAX_ELEMENTS, SUM, read_header};

#[path = "../src/header.rs"]
mod header;

/// Tests that a header with random bytes is accepted only if its operation is the expected one, and its dtype
/// and length are valid.
#[test]
fn random_headers_are_refused() {
    let rng = &mut Rng::seeded(0);
    let place = [SUM, 3];
    let right: Vec<u8> = [SUM, 3, Kind::Double as u64, 17].into_iter().flat_map(u64::to_le_bytes).collect();
    assert_eq!(read_header(place, 0, 0, &right).unwrap(), Some((Kind::Double, 17)));
    let mut n_accepted = 0;
    let n = 100_000;
    for _ in 0..n {
        let mut row = right.clone();
        for _ in 0..1 + rng.below(3) {
            row[rng.below(HEADER)] = rng.below(256) as u8;
        }
        row.truncate(if rng.below(8) == 0 { rng.below(HEADER) } else { HEADER });
        if let Ok(Some((kind, length))) = read_header(place, 0, 0, &row) {
            n_accepted += 1;
            assert!(KINDS.contains(&kind) && length <= MAX_ELEMENTS);
            assert!(row.len() < HEADER || row[..16] == right[..16]);
        }
    }
    // Some headers are accepted, because only their dtype or length differs from the expected header and is
    // still valid.
    assert!(0 < n_accepted && n_accepted < n / 2, "{n_accepted}");
}
