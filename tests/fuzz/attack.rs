//! The engine of the fuzz tests. An attack executes a function on many edited copies of valid inputs, and
//! watches time, memory and panics. Only memory that Rust allocates is watched, so libtorch's tensors aren't.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::MEMORY;
use gfn::Rng;

/// The longest time of one execution, on a machine that also does other work.
const MAX_TIME: Duration = Duration::from_secs(20);
/// The largest length of an edited input, in bytes.
const MAX_BYTES: usize = 1 << 16;
/// The number of bytes that an execution may use in addition to a multiple of its input's length.
const BASE_MEMORY: usize = 64 << 20;

/// The lock that an attack holds. Attacks run one after another, because memory is counted for the whole
/// process.
static TURN: Mutex<()> = Mutex::new(());

/// The description of an attack. `seeds` are valid inputs, `words` are texts that have a meaning in these
/// inputs, and `bytes_per_byte` is the memory that is allowed per byte of an input.
pub(crate) struct Target<'a> {
    pub(crate) name: &'a str,
    pub(crate) seeds: Vec<Vec<u8>>,
    pub(crate) words: &'a [&'a str],
    pub(crate) bytes_per_byte: usize,
}

/// Waits until no other attack runs, and returns the lock.
pub(crate) fn wait_for_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number in an environment variable; `None` if the variable isn't set.
fn number_of_variable(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}

/// A counter of the executions of an attack. Their number is fixed, so that every machine does the same work.
pub(crate) struct Runs {
    executions: u64,
    seed: u64,
    pub(crate) done: u64,
}

impl Runs {
    /// Starts an attack with `executions` executions. The environment variable `GFN_FUZZ_EXECUTIONS`
    /// overrides this number.
    pub(crate) fn begin(executions: u64) -> Self {
        let executions = number_of_variable("GFN_FUZZ_EXECUTIONS").unwrap_or(executions);
        Self { executions, seed: number_of_variable("GFN_FUZZ_SEED").unwrap_or(0), done: 0 }
    }

    /// Returns the random numbers for the next execution; `None` after the last one.
    pub(crate) fn next(&mut self) -> Option<Rng> {
        let is_left = self.done < self.executions;
        self.done += 1;
        is_left.then(|| Rng::seeded(Rng::mix64(self.seed ^ Rng::mix64(self.done))))
    }
}

impl Target<'_> {
    /// Runs `execute` on `executions` edited inputs. Every execution must end in time, stay within the
    /// memory limit and not panic.
    pub(crate) fn attack(&self, executions: u64, mut execute: impl FnMut(&[u8])) {
        let _turn = wait_for_turn();
        // Valid inputs are executed first. This also builds the tables that are created at their first use,
        // so that their memory isn't counted for an edited input.
        for seed in &self.seeds {
            execute(seed);
        }
        let last = std::env::var_os("GFN_FUZZ_LAST");
        let mut runs = Runs::begin(executions);
        while let Some(mut rng) = runs.next() {
            let input = self.edit_seed(&mut rng);
            if let Some(path) = &last {
                std::fs::write(path, &input).unwrap();
            }
            MEMORY.reset_peak_usage();
            let before = MEMORY.current_usage();
            let began = Instant::now();
            let ended = catch_unwind(AssertUnwindSafe(|| execute(&input)));
            let took = began.elapsed();
            let memory = MEMORY.peak_usage().saturating_sub(before);
            let context =
                || format!("{}, execution {}: {:?}", self.name, runs.done, String::from_utf8_lossy(&input));
            assert!(ended.is_ok(), "a panic; {}", context());
            assert!(took < MAX_TIME, "{took:?}; {}", context());
            let most = BASE_MEMORY + self.bytes_per_byte * input.len();
            assert!(memory <= most, "{memory} bytes of memory for {} of input; {}", input.len(), context());
        }
        println!("{}: {} executions", self.name, runs.done - 1);
    }

    fn edit_seed(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.seeds[rng.below(self.seeds.len())].clone();
        for _ in 0..1 + rng.below(4) {
            self.edit(&mut bytes, rng);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    fn edit(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        let at = rng.below(bytes.len() + 1);
        let range = |bytes: &[u8], rng: &mut Rng| {
            let from = rng.below(bytes.len() + 1);
            from..bytes.len().min(from + 1 + rng.below(24))
        };
        let insert = |bytes: &mut Vec<u8>, piece: &[u8]| drop(bytes.splice(at..at, piece.iter().copied()));
        match rng.below(10) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => bytes[at] = rng.below(256) as u8,
            2 => drop(bytes.drain(range(bytes, rng))),
            3 => {
                let piece = bytes[range(bytes, rng)].to_vec();
                insert(bytes, &piece);
            }
            4 | 5 if !self.words.is_empty() => {
                insert(bytes, self.words[rng.below(self.words.len())].as_bytes())
            }
            6 => {
                let other = &self.seeds[rng.below(self.seeds.len())];
                insert(bytes, &other[range(other, rng)]);
            }
            7 => replace_number(bytes, at, rng),
            8 if rng.below(8) == 0 => {
                let piece = bytes[range(bytes, rng)].to_vec();
                insert(bytes, &piece.repeat(1 << rng.below(13)));
            }
            9 if rng.below(4) == 0 => bytes.truncate(at),
            _ => insert(bytes, &[rng.below(128) as u8]),
        }
    }
}

/// Replaces the first number after position `at` by one that a reader may handle wrongly, such as 0, a limit
/// of an integer type, or NaN.
fn replace_number(bytes: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    const EDGES: [&str; 14] = [
        "0",
        "-1",
        "1",
        "127",
        "256",
        "65535",
        "65536",
        "2147483648",
        "4294967295",
        "18446744073709551615",
        "1e308",
        "-1e-320",
        "nan",
        "99999999999999999999999",
    ];
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    if let Some(from) = bytes[at..].iter().position(is_digit).map(|found| at + found) {
        let length = bytes[from..].iter().take_while(|byte| is_digit(byte)).count();
        bytes.splice(from..from + length, EDGES[rng.below(EDGES.len())].bytes());
    }
}

/// Tests the engine itself, as a control. The engine must detect a reader that rarely panics, and a reader
/// that allocates as much memory as a number in its input says.
#[test]
fn attacks_find_what_is_wrong() {
    let target = || Target {
        name: "wrong",
        seeds: vec![b"size 16\n".to_vec()],
        words: &["size ", "\n"],
        bytes_per_byte: 1,
    };
    let found = |execute: fn(&[u8])| {
        let panic = catch_unwind(|| target().attack(200_000, execute)).unwrap_err();
        *panic.downcast::<String>().unwrap()
    };
    assert!(found(|text| assert!(!text.ends_with(b"size size \n"))).starts_with("a panic; wrong, execution"));
    let greedy = |text: &[u8]| {
        let number = text
            .split(|byte| *byte == b' ')
            .nth(1)
            .and_then(|word| std::str::from_utf8(word).ok()?.trim().parse().ok());
        drop(vec![1u8; number.unwrap_or(0usize).min(1 << 27)]);
    };
    assert!(found(greedy).contains("bytes of memory for"));
}
