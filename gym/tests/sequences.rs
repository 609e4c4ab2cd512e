//! Tests of sequences of tokens, and of rewards from tables.

use gfn::Error;
use gfn::env::{Direction, Env, Reward, Slots, VectorStates};
use gfn_gym::sequence::{Alphabet, TableReward, TokenSequence};

#[test]
fn senseless_sizes_are_refused() {
    let message = |error: Error| error.to_string();
    assert!(message(TokenSequence::fixed(0, 3).unwrap_err()).contains("n_tokens is 0"));
    assert!(message(TokenSequence::fixed(65_536, 3).unwrap_err()).contains("65536"));
    assert!(message(TokenSequence::fixed(4, 0).unwrap_err()).contains("length"));
    assert!(message(TokenSequence::variable(4, 3, 2).unwrap_err()).contains("3 to 2"));
    let sequence = TokenSequence::variable(4, 0, 3).unwrap();
    assert!(sequence.states_of(&[[0, 1, 2, 3]]).is_err() && sequence.states_of(&[[4]]).is_err());
}

#[test]
fn sizes_do_not_overflow() {
    assert_eq!(TokenSequence::tf_bind_8().n_terminal(), Some(65_536));
    assert_eq!(TokenSequence::tf_bind_8().n_states(), Some(87_381));
    assert_eq!(TokenSequence::variable(4, 1, 2).unwrap().n_terminal(), Some(20));
    assert_eq!(TokenSequence::fixed(2, 63).unwrap().n_terminal(), Some(1 << 63));
    assert_eq!(TokenSequence::fixed(2, 64).unwrap().n_terminal(), None);
    assert_eq!(TokenSequence::variable(1 << 15, 0, usize::MAX).unwrap().n_terminal(), None);
}

#[test]
fn illegal_actions_are_refused() {
    let sequence = TokenSequence::variable(2, 1, 1).unwrap();
    let env = sequence.env();
    let mut empty = env.initial(&[0]);
    // These steps must be refused: the exit of a sequence that is too short, a slot that doesn't exist, and a
    // backward step from the initial state.
    for (direction, slot, detail) in [
        (Direction::Forward, 2, "exit"),
        (Direction::Forward, 3, "no forward slot 3"),
        (Direction::Backward, 0, "last token"),
    ] {
        let message = env.step(direction, &mut empty, &Slots(vec![slot])).unwrap_err().to_string();
        assert!(message.contains(detail), "{message}");
    }
    let mut full = sequence.states_of(&[[0]]).unwrap();
    let message = env.step(Direction::Forward, &mut full, &Slots(vec![1])).unwrap_err().to_string();
    assert!(message.contains("append token 1 to [0]"), "{message}");
    let mut wide = VectorStates::filled(2, 1, 0);
    assert!(matches!(env.step(Direction::Forward, &mut wide, &Slots(vec![0])), Err(Error::Shape { .. })));
}

#[test]
fn faulty_tables_are_refused_with_the_line() {
    let sequence = TokenSequence::fixed(2, 2).unwrap();
    let alphabet = Alphabet::new("ab").unwrap();
    for (table, problem) in [
        ("", "line 1: there is no header"),
        ("ab,1\n", "line 1: the header is \"ab,1\""),
        ("sequence,reward\nab;1", "line 2: \"ab;1\" has no comma"),
        ("sequence,reward\n\nac,1", "line 3: a character of a sequence is 'c'"),
        (
            "sequence,reward\nab,1\naba,1",
            "line 3: \"aba\" has 3 tokens, but sequences of this environment have 2..=2",
        ),
        ("sequence,reward\nab,0", "line 2: the reward \"0\""),
        ("sequence,reward\nab,NaN", "line 2: the reward \"NaN\""),
        ("sequence,reward\nab,inf", "line 2: the reward \"inf\""),
        ("sequence,reward\nab,1,2", "line 2: the reward \"1,2\""),
        ("sequence,reward\nab,1\nab,2", "line 3: \"ab\" is listed twice"),
        ("sequence,reward\nab,1", "the number of sequences in the table is 1 of 4"),
    ] {
        let message = TableReward::parse(&sequence, &alphabet, table, None).unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
    }
    let message =
        TableReward::parse(&sequence, &Alphabet::dna(), "sequence,reward", None).unwrap_err().to_string();
    assert!(message.contains("4 characters for 2 tokens"), "{message}");
    assert!(TableReward::parse(&sequence, &alphabet, "sequence,reward", Some(0.0)).is_err());
    let path = std::env::temp_dir().join("no such folder").join("table.csv");
    assert!(matches!(TableReward::read(&sequence, &alphabet, &path, None), Err(Error::Io { .. })));
}

#[test]
fn log_z_of_more_sequences_than_a_number_holds_is_finite() {
    let sequence = TokenSequence::fixed(20, 300).unwrap();
    let alphabet = Alphabet::new("ACDEFGHIKLMNPQRSTVWY").unwrap();
    let reward = TableReward::parse(&sequence, &alphabet, "sequence,reward\n", Some(2.0)).unwrap();
    let expected = 300.0 * 20f64.ln() + 2f64.ln();
    assert!((reward.log_z() - expected).abs() < 1e-12 * expected, "{}", reward.log_z());
}

#[test]
fn unfinished_sequences_have_no_reward() {
    let sequence = TokenSequence::fixed(2, 2).unwrap();
    let reward =
        TableReward::parse(&sequence, &Alphabet::new("ab").unwrap(), "sequence,reward", Some(1.0)).unwrap();
    assert!(reward.log_reward(&sequence.states_of(&[[1]]).unwrap(), None).is_err());
    assert!(matches!(reward.log_reward(&VectorStates::filled(3, 1, 1), None), Err(Error::Shape { .. })));
    assert!((reward.log_z() - 4f64.ln()).abs() < 1e-12);
}
