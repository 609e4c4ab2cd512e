//! Tests of bit sequences: words, modes, and rewards by distance from modes.

use std::collections::HashSet;

use gfn::env::{Reward, VectorStates};
use gfn::{Error, Rng};
use gfn_gym::bit_sequence::{HammingReward, Words, motif_tilings, noisy_modes, standard_motifs};

#[test]
fn senseless_sizes_are_refused() {
    for (word_size, seq_size, setting) in
        [(0, 4, "word_size"), (16, 16, "word_size"), (4, 0, "seq_size"), (4, 6, "seq_size")]
    {
        assert!(Words::new(word_size, seq_size).unwrap_err().to_string().starts_with(setting));
    }
    assert!(Words::new(2, 4).unwrap().states_of(&[[true; 3]]).is_err());
}

#[test]
fn bits_and_words_are_inverse() {
    for (word_size, seq_size) in [(1, 5), (3, 9), (15, 30)] {
        let words = Words::new(word_size, seq_size).unwrap();
        let sequences: Vec<Vec<bool>> = (0..20usize)
            .map(|i| (0..seq_size).map(|place| (i * i + place * i).is_multiple_of(3)).collect())
            .collect();
        let states = words.states_of(&sequences).unwrap();
        assert!(states.rows().zip(&sequences).all(|(row, bits)| words.bits(row).as_ref() == Some(bits)));
    }
    assert_eq!(Words::new(15, 15).unwrap().states_of(&[[true; 15]]).unwrap().row(0), [32_768]);
    assert_eq!(Words::new(1, 2).unwrap().bits(&[1, 0]), None);
    assert_eq!(Words::new(8, 120).unwrap().n_terminal(), None);
    assert_eq!(Words::new(9, 63).unwrap().n_terminal(), Some(1 << 63));
}

#[test]
fn modes_are_distinct_rows_of_motifs() {
    let motifs = standard_motifs();
    // There are 25 ways to concatenate two of the five motifs. Each concatenation must occur once among 25
    // modes.
    let modes = motif_tilings(16, 25, &motifs, &mut Rng::seeded(3)).unwrap();
    assert_eq!(modes.iter().collect::<HashSet<_>>().len(), 25);
    assert!(modes.iter().all(|mode| mode.chunks(8).all(|tile| motifs.iter().any(|motif| motif == tile))));
    assert_eq!(modes, motif_tilings(16, 25, &motifs, &mut Rng::seeded(3)).unwrap());
    assert_ne!(modes, motif_tilings(16, 25, &motifs, &mut Rng::seeded(4)).unwrap());
}

#[test]
fn senseless_modes_are_refused() {
    let motifs = standard_motifs();
    let message = |seq_size, n_modes, motifs: &[Vec<bool>]| {
        motif_tilings(seq_size, n_modes, motifs, &mut Rng::seeded(0)).unwrap_err().to_string()
    };
    assert!(message(12, 1, &motifs).contains("12 bits for motifs of 8"));
    assert!(message(16, 26, &motifs).contains("26 modes, each a row of 2 out of 5 motifs"));
    assert!(message(16, 0, &motifs).contains("n_modes"));
    assert!(message(16, 1, &[]).contains("0 motifs"));
    assert!(message(4, 1, &[vec![true, false], vec![true]]).contains("the same width"));
    assert!(message(4, 1, &[vec![true], vec![true]]).contains("different motifs"));
}

#[test]
fn test_sets_lie_at_every_distance() {
    let modes = motif_tilings(8, 2, &standard_motifs(), &mut Rng::seeded(0)).unwrap();
    let set = noisy_modes(&modes, 500, &mut Rng::seeded(1));
    assert_eq!(set.len(), 1000);
    let mut counts = [0; 9];
    for (i, bits) in set.iter().enumerate() {
        counts[bits.iter().zip(&modes[i / 500]).filter(|(a, b)| a != b).count()] += 1;
    }
    // In each of the 1,000 sequences, 0 to 7 bits of a mode are flipped. These eight numbers are equally
    // probable, so each occurs about 125 times, with a standard deviation of 10.5. The bounds are five
    // standard deviations. All 8 bits are never flipped.
    assert!(counts[..8].iter().all(|count| (72..178).contains(count)) && counts[8] == 0, "{counts:?}");
}

/// Checks the number of sequences at each distance from the nearest mode. `distance_counts`, which doesn't
/// list sequences, must agree with a list of all sequences.
#[test]
fn counts_equal_enumeration() {
    let mut rng = Rng::seeded(5);
    for (n_modes, bits) in [(1, 10), (2, 12), (3, 9), (7, 11)] {
        let modes: Vec<Vec<bool>> =
            (0..n_modes).map(|_| (0..bits).map(|_| rng.below(2) == 1).collect()).collect();
        let words = Words::new(1, bits).unwrap();
        let reward = HammingReward::with_temperature(&words, &modes, 0.7).unwrap();
        let mut counts = vec![0.0; bits + 1];
        for sequence in 0..1usize << bits {
            let differ =
                |mode: &Vec<bool>| (0..bits).filter(|&i| mode[i] != (sequence >> i & 1 == 1)).count();
            counts[modes.iter().map(differ).min().unwrap()] += 1.0;
        }
        assert_eq!(reward.distance_counts().unwrap(), counts);
        let z: f64 = counts.iter().enumerate().map(|(d, count)| count * (-(d as f64) / 0.7).exp()).sum();
        assert!((reward.log_z().unwrap() - z.ln()).abs() < 1e-12);
    }
}

#[test]
fn log_z_of_long_sequences() {
    let words = Words::new(8, 120).unwrap();
    let rng = &mut Rng::seeded(0);
    let one = motif_tilings(120, 1, &standard_motifs(), rng).unwrap();
    let reward = HammingReward::with_temperature(&words, &one, 2.0).unwrap();
    assert!((reward.log_z().unwrap() - 120.0 * (1.0 + (-0.5f64).exp()).ln()).abs() < 1e-10);
    // If two modes are far apart, nearly twice as many sequences are near one of them as are near a single
    // mode.
    let opposite = [vec![false; 120], vec![true; 120]];
    let two = HammingReward::with_temperature(&words, &opposite, 0.25).unwrap();
    let expected = 2f64.ln() + 120.0 * (1.0 + (-4f64).exp()).ln();
    assert!((two.log_z().unwrap() - expected).abs() < 1e-10);
    let many = motif_tilings(120, 60, &standard_motifs(), rng).unwrap();
    assert_eq!(HammingReward::with_temperature(&words, &many, 1.0).unwrap().log_z(), None);
}

#[test]
fn senseless_rewards_are_refused() {
    let words = Words::new(2, 4).unwrap();
    let none: [[bool; 4]; 0] = [];
    assert!(HammingReward::with_temperature(&words, &none, 1.0).is_err());
    assert!(HammingReward::with_temperature(&words, &[[true; 4]], 0.0).is_err());
    assert!(HammingReward::with_exponent(&words, &[[true; 4]], f64::NAN).is_err());
    assert!(matches!(HammingReward::with_exponent(&words, &[[true; 3]], 1.0), Err(Error::Shape { .. })));
    let reward = HammingReward::with_exponent(&words, &[[true; 4]], 1.0).unwrap();
    let message = reward.log_reward(&VectorStates::from_rows([[4, 0]]), None).unwrap_err().to_string();
    assert!(message.contains("[4, 0]"), "{message}");
}
