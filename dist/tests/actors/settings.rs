//! Settings that make no sense.

use std::net::TcpListener;
use std::time::Duration;

use gfn::Error;
use gfn_dist::actors::{Actor, ActorConfig, Learner, LearnerConfig};

use super::{env, policy, reward};

#[test]
fn settings_of_a_learner_that_make_no_sense_are_refused() {
    let refused = |config: LearnerConfig, words: &str| {
        let error = Learner::<gfn::testing::Words>::listen("127.0.0.1:0".parse().unwrap(), config).unwrap_err();
        assert!(matches!(error, Error::Config { .. }) && error.to_string().contains(words), "{error}");
    };
    let default = LearnerConfig::default;
    for most in [Duration::MAX, Duration::from_secs(11 * 365 * 24 * 3600)] {
        refused(LearnerConfig { timeout: most, ..default() }, "timeout and patience of a learner");
        refused(LearnerConfig { patience: most, ..default() }, "timeout and patience of a learner");
    }
    for least in [Duration::ZERO, Duration::from_millis(2)] {
        refused(LearnerConfig { timeout: least, ..default() }, "the timeout of a learner");
    }
    refused(LearnerConfig { queue: 0, ..default() }, "walks that may wait is 0");
    refused(LearnerConfig { max_actors: 0, ..default() }, "actors at once is 0");
    refused(LearnerConfig { max_message: 0, ..default() }, "bytes of a message is 0");
    for max_reuse in [0.0, 0.99, -1.0, f64::NAN, f64::NEG_INFINITY] {
        refused(LearnerConfig { max_reuse, ..default() }, "trained on for each that came");
    }
    // As far as they go.
    let (ten_years, most) = (Duration::from_secs(10 * 365 * 24 * 3600), usize::MAX);
    let config = LearnerConfig {
        queue: most,
        max_staleness: most,
        max_reuse: f64::INFINITY,
        max_actors: most,
        max_message: most,
        timeout: ten_years,
        patience: ten_years,
    };
    Learner::<gfn::testing::Words>::listen("127.0.0.1:0".parse().unwrap(), config).unwrap();
}

#[test]
fn settings_of_an_actor_that_make_no_sense_are_refused_before_it_connects() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    let refused = |config: ActorConfig, words: &str| {
        let error = Actor::connect(address, env(), reward, policy(), config).unwrap_err();
        assert!(matches!(error, Error::Config { .. }) && error.to_string().contains(words), "{error}");
    };
    refused(ActorConfig { batch: 0, ..ActorConfig::default() }, "batch is 0");
    for timeout in [Duration::ZERO, Duration::MAX] {
        refused(ActorConfig { timeout, ..ActorConfig::default() }, "the timeout of an actor");
    }
    nobody.set_nonblocking(true).unwrap();
    assert!(nobody.accept().is_err(), "nobody came");
}
