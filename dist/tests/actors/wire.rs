//! Peers that aren't what they should be, and bytes that aren't what was sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use gfn::testing::Words;
use gfn::{Error, Result};
use gfn_dist::actors::{Actor, ActorConfig, LearnerConfig};

use super::{Limit, Process, env, learner, policy, policy_of, reward, step_until, trainer};

/// The head of a frame: four letters, version, kind, length.
pub(super) const HEAD: usize = 16;
pub(super) const WALKS: u16 = 4;

/// Passes one connection on to the learner, frame by frame; what the actor says passes through `alter`.
pub(super) fn through(learner: SocketAddr, alter: impl Fn(u16, &mut Vec<u8>) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut actor, _) = listener.accept().unwrap();
        let mut learner = TcpStream::connect(learner).unwrap();
        let (mut back, mut to) = (learner.try_clone().unwrap(), actor.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut back, &mut to));
        let mut head = [0; HEAD];
        while actor.read_exact(&mut head).is_ok() {
            let mut frame = head.to_vec();
            frame.resize(HEAD + u64::from_le_bytes(head[8..].try_into().unwrap()) as usize, 0);
            actor.read_exact(&mut frame[HEAD..]).unwrap();
            alter(u16::from_le_bytes([head[6], head[7]]), &mut frame);
            if learner.write_all(&frame).is_err() {
                break;
            }
        }
    });
    address
}

/// Sends walks until it is refused, and says with which words.
fn refused(
    connect: impl FnOnce() -> Result<Words> + Send + 'static,
    address: SocketAddr,
    width: i64,
) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let config = ActorConfig { batch: 4, timeout: Duration::from_secs(5), ..ActorConfig::default() };
        let run = || Actor::connect(address, connect()?, reward, policy_of(width)?, config)?.run();
        match run() {
            Err(Error::Peer { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn peers_and_walks_that_make_no_sense_are_refused_counted_and_told_why() {
    let _limit = Limit::seconds(120);
    let learner = learner(LearnerConfig { max_reuse: f64::INFINITY, max_message: 1 << 16, ..LearnerConfig::default() });
    let (address, monitor) = (learner.address(), learner.monitor());
    let good = Process::actor(address, 1);
    let mut trainer = trainer(learner, 16);
    step_until(&mut trainer, |trainer| trainer.steps_done() > 20);

    let altered = |change: fn(&mut Vec<u8>)| {
        through(address, move |kind, frame| {
            if kind == WALKS {
                change(frame);
            }
        })
    };
    let of_env = |address| refused(|| Ok(env()), address, 32);
    let cases: Vec<(JoinHandle<String>, &str)> = vec![
        (refused(|| Ok(env()), address, 16), "another model"),
        (refused(|| Ok(Words::new(2, 4)), address, 32), "another environment"),
        (of_env(through(address, |_, frame| frame[4] = 3)), "version 3 of the protocol"),
        (of_env(through(address, |_, frame| frame[6] = 77)), "unknown kind 77"),
        (of_env(through(address, |_, frame| frame[0] = b'x')), "no messages of actors"),
        (of_env(altered(|frame| frame[14] = 1)), "at most 65536 are taken"),
        // The step that made the parameters, the number of walks, the form of actions, their width, a walk's length, a log-reward.
        (of_env(altered(|frame| frame[HEAD + 7] = 1)), "it was sent those of"),
        (of_env(altered(|frame| frame[HEAD + 11] = 1)), "walks in a message"),
        (of_env(altered(|frame| frame[HEAD + 12] = 9)), "unknown form"),
        (of_env(altered(|frame| frame[HEAD + 13] = 9)), "actions in"),
        (of_env(altered(|frame| frame[HEAD + 22] += 1)), "actions in"),
        (of_env(altered(|frame| frame[HEAD + 54..HEAD + 62].fill(255))), "a log-reward of"),
        // An instance that isn't there, and an action.
        (of_env(altered(|frame| frame[HEAD + 38] = 1)), "can't be replayed"),
        (
            of_env(altered(|frame| {
                let last = frame.len() - 4;
                frame[last] = 0;
            })),
            "can't be replayed",
        ),
    ];
    let n = cases.len() as u64;
    step_until(&mut trainer, |_| cases.iter().all(|(thread, _)| thread.is_finished()));
    for (thread, words) in cases {
        let problem = thread.join().unwrap();
        assert!(problem.contains(words), "`{problem}` has no `{words}`");
    }
    let counts = monitor.counts();
    assert!(counts.refused >= n && counts.actors == 1 && monitor.last_refusal().is_some(), "{counts:?}");

    // Bytes that nobody asked for, and connections that end in the midst of a message.
    for bytes in [vec![0; 5], vec![255; 100_000], b"GET / HTTP/1.1\r\n\r\n".to_vec(), b"gfna\x02\0\x01\0".to_vec()] {
        let mut stream = TcpStream::connect(address).unwrap();
        // It may be cut off while it still writes.
        let _ = stream.write_all(&bytes);
    }
    step_until(&mut trainer, |_| monitor.counts().refused >= counts.refused + 2);
    let before = monitor.counts();
    step_until(&mut trainer, |_| monitor.counts().used > before.used + 50);
    assert_eq!(monitor.counts().actors, 1);
    drop(trainer);
    good.says("DONE ");
}

/// Not that nothing came: what became of it.
#[test]
fn a_learner_that_can_use_nothing_that_comes_says_why() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig { patience: Duration::from_secs(1), ..LearnerConfig::default() });
    let address = learner.address();
    // Walks whose last action is another one.
    let altered = through(address, |kind, frame| {
        if kind == WALKS {
            let last = frame.len() - 4;
            frame[last] = 0;
        }
    });
    let actor = refused(|| Ok(env()), altered, 32);
    let error = trainer(learner, 16).step().unwrap_err();
    assert!(actor.join().unwrap().contains("can't be replayed"));
    let Error::Peer { problem, .. } = error else { panic!("{error}") };
    // A slow learner may have refused more than one by then.
    for words in ["has come in 1s", "1 ever came", "0 walks were too old", " peers or messages were refused, the last"]
    {
        assert!(problem.contains(words), "`{problem}` has no `{words}`");
    }
    assert!(problem.contains("walks that can't be replayed"), "{problem}");
}

#[test]
fn as_many_actors_are_taken_as_were_asked_for() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig { max_actors: 1, ..LearnerConfig::default() });
    let (address, monitor) = (learner.address(), learner.monitor());
    let _first = Process::actor(address, 1);
    let mut trainer = trainer(learner, 16);
    step_until(&mut trainer, |_| monitor.counts().actors == 1);
    let second = refused(|| Ok(env()), address, 32);
    step_until(&mut trainer, |_| second.is_finished());
    assert!(second.join().unwrap().contains("as many actors as it takes"));
}

#[test]
fn a_learner_that_nobody_serves_is_an_error_at_the_timeout() {
    let _limit = Limit::seconds(30);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = ActorConfig { timeout: Duration::from_millis(300), ..ActorConfig::default() };
    let error = Actor::connect(closed, env(), reward, policy(), config).unwrap_err();
    assert!(matches!(error, Error::Peer { .. }) && error.to_string().contains(&closed.to_string()), "{error}");
}
