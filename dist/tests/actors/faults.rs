use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use gfn_dist::actors::{Actor, ActorConfig, LearnerConfig};

use super::{Limit, Process, env, learner, policy, reward, step_until, trainer};

/// Never waits, once there is something to replay.
fn unbounded() -> LearnerConfig {
    LearnerConfig { max_reuse: f64::INFINITY, ..LearnerConfig::default() }
}

#[test]
fn a_killed_actor_is_noticed_and_a_new_one_is_used_within_a_second() {
    let _limit = Limit::seconds(60);
    let learner = learner(unbounded());
    let (address, monitor) = (learner.address(), learner.monitor());
    let mut actor = Process::actor(address, 1);
    let mut trainer = trainer(learner, 16);
    step_until(&mut trainer, |trainer| trainer.steps_done() >= 20);
    let killed = Instant::now();
    actor.kill();
    step_until(&mut trainer, |_| monitor.counts().actors == 0);
    let noticed = killed.elapsed();
    assert!(noticed < Duration::from_secs(1), "{noticed:?}");
    // What it had sent is still used.
    step_until(&mut trainer, |_| monitor.counts().queued == 0);
    trainer.step().unwrap();
    let (before, steps) = (monitor.counts(), trainer.steps_done());
    let newcomer = Process::actor(address, 1);
    step_until(&mut trainer, |_| !newcomer.said.lock().unwrap().iter().all(|line| !line.contains("CONNECTED")));
    let used = step_until(&mut trainer, |_| monitor.counts().used > before.used);
    println!("noticed after {noticed:?}, a new one used {used:?} after it had connected");
    assert!(used < Duration::from_secs(1), "{used:?}");
    assert!(trainer.steps_done() > steps, "the run goes on meanwhile");
}

#[test]
fn a_stopped_actor_is_cut_off_at_the_timeout() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig { timeout: Duration::from_secs(1), ..unbounded() });
    let (address, monitor) = (learner.address(), learner.monitor());
    let (stopped, _other) = (Process::actor(address, 1), Process::actor(address, 1));
    let mut trainer = trainer(learner, 16);
    step_until(&mut trainer, |_| monitor.counts().actors == 2);
    stopped.signal("-STOP");
    let noticed = step_until(&mut trainer, |_| monitor.counts().actors == 1);
    println!("cut off after {noticed:?}");
    assert!(noticed > Duration::from_millis(200) && noticed < Duration::from_secs(5), "{noticed:?}");
    let before = monitor.counts().used;
    step_until(&mut trainer, |_| monitor.counts().used > before + 50);
    // It finds out when it goes on.
    stopped.signal("-CONT");
    stopped.says("LOST ");
}

/// Rewards may take longer than the timeout.
#[test]
fn an_actor_that_computes_is_not_taken_for_gone() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig { timeout: Duration::from_millis(300), ..unbounded() });
    let (address, monitor) = (learner.address(), learner.monitor());
    // Eight objects take 1.2 seconds.
    let _actor = Process::actor(address, 150);
    let mut trainer = trainer(learner, 8);
    trainer.step().unwrap();
    trainer.step().unwrap();
    let counts = monitor.counts();
    assert!((counts.actors, counts.joined, counts.received) == (1, 1, 16), "{counts:?}");
}

/// Those that wait for room hear of their learner as often as those that are served, however often others come and go meanwhile.
#[test]
fn actors_that_wait_for_long_are_not_lost() {
    let _limit = Limit::seconds(60);
    let learner = learner(LearnerConfig { timeout: Duration::from_millis(900), queue: 8, ..unbounded() });
    let (address, monitor) = (learner.address(), learner.monitor());
    let run = move || {
        let config = ActorConfig { batch: 8, ahead: false, ..ActorConfig::default() };
        Actor::connect(address, env(), reward, policy(), config)?.run()
    };
    let actors: Vec<_> = (0..12).map(|_| std::thread::spawn(run)).collect();
    let mut trainer = trainer(learner, 16);
    step_until(&mut trainer, |_| monitor.counts().actors == 12);
    // A step takes the walks of one: each waits for more than a second.
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(100));
        trainer.step().unwrap();
    }
    let counts = monitor.counts();
    assert!((counts.actors, counts.joined, counts.refused) == (12, 12, 0), "{counts:?}");
    drop(trainer);
    let taken: u64 = actors.into_iter().map(|actor| actor.join().unwrap().unwrap()).sum();
    assert_eq!(taken, monitor.counts().received);
}

/// A network that fails between the two: neither end has died.
#[test]
fn a_connection_that_is_cut_costs_its_actor_alone() {
    let _limit = Limit::seconds(60);
    let learner = learner(unbounded());
    let (address, monitor) = (learner.address(), learner.monitor());
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_other, cut) = (Process::actor(address, 1), Process::actor(between.local_addr().unwrap(), 1));
    let mut trainer = trainer(learner, 16);
    step_until(&mut trainer, |_| monitor.counts().actors == 1);
    let (actor, _) = between.accept().unwrap();
    let learner = TcpStream::connect(address).unwrap();
    let ways = [(&actor, &learner), (&learner, &actor)].map(|(from, to)| {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to))
    });
    step_until(&mut trainer, |_| !cut.acknowledged().is_empty());
    assert_eq!(monitor.counts().actors, 2);
    let at = Instant::now();
    [&actor, &learner].into_iter().for_each(|end| end.shutdown(Shutdown::Both).unwrap());
    step_until(&mut trainer, |_| monitor.counts().actors == 1);
    println!("`{}`, noticed after {:?}", cut.says("LOST "), at.elapsed());
    assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
    ways.into_iter().for_each(|way| drop(way.join().unwrap()));
    let before = monitor.counts();
    step_until(&mut trainer, |_| monitor.counts().used > before.used + 50);
    assert_eq!((monitor.counts().actors, monitor.counts().refused), (1, before.refused));
}

#[test]
fn a_learner_that_has_died_or_is_stopped_is_an_error_of_its_actors() {
    let _limit = Limit::seconds(60);
    for (signal, least, most) in [("-KILL", 0, 1_000), ("-STOP", 300, 5_000)] {
        let learner = Process::start("part_learner", &[("GFN_TEST_LEARNER", "1")]);
        let actor = Process::actor(learner.says("ADDRESS ").parse().unwrap(), 1);
        actor.says("TOOK ");
        learner.signal(signal);
        let sent = Instant::now();
        let problem = actor.says("LOST ");
        let waited = sent.elapsed();
        println!("{signal}: `{problem}` after {waited:?}");
        assert!(waited >= Duration::from_millis(least) && waited < Duration::from_millis(most), "{signal} {waited:?}");
    }
}
