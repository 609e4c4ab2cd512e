use std::net::{TcpStream, ToSocketAddrs};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use gfn::condition::ConditionSource;
use gfn::distribution::Exploration;
use gfn::env::{Env, Reward, log_rewards};
use gfn::policy::Policy;
use gfn::rollout::{ReplayEnv, Sampler, Walks};
use gfn::{Error, Result, Rng};
use tch::Tensor;

use super::conditions::Form;
use super::config::MOST;
use super::frame::{Broken, Kind, read, write};
use super::heartbeat::Heartbeat;
use super::message::{Hello, MAX_GREETING, Submission, Welcome};
use super::weights::{load, model_of, size_of};

/// The settings of an [`Actor`].
#[derive(Clone, PartialEq, Debug)]
pub struct ActorConfig {
    /// Walks that are sampled, rewarded and sent at once. Few make for fresh parameters, many for few messages.
    pub batch: usize,
    /// `true` if it samples the next batch while the reward is asked about this one, in a thread of its own: no time is lost by it, but the
    /// parameters that draw a walk are a batch older.
    pub ahead: bool,
    /// Its exploration; `None` for that of the learner's [`TrainerConfig`](gfn::train::TrainerConfig) at its step.
    pub exploration: Option<Exploration>,
    /// Where its random stream begins, beside the number that the learner gives it: actors of one seed draw by different streams.
    pub seed: u64,
    /// The largest number of steps of a walk.
    pub max_steps: usize,
    /// The time in which it tries to reach the learner, and then waits for its first parameters without a sign of life.
    pub timeout: Duration,
}

impl Default for ActorConfig {
    /// 16 walks at once, the next ones meanwhile, explored as the learner says; 30 seconds.
    fn default() -> Self {
        Self {
            batch: 16,
            ahead: true,
            exploration: None,
            seed: 0,
            max_steps: 100_000,
            timeout: Duration::from_secs(30),
        }
    }
}

/// Samples with a [learner](super::Learner)'s parameters, asks the reward, and sends the walks.
///
/// It has the environment, the reward and a policy of the learner's model, with any parameters: those of the learner take their place.
/// Each submission brings the latest ones, so they are as old as one batch takes, and the learner's queue.
///
/// The [module](super) has an example.
pub struct Actor<E: Env, P, R> {
    env: E,
    reward: R,
    policy: P,
    conditions: Option<Box<dyn ConditionSource>>,
    config: ActorConfig,
    rng: Rng,
    who: String,
    stream: TcpStream,
    heartbeat: Heartbeat,
    max_message: usize,
    version: u64,
    exploration: Exploration,
    /// Sampled already.
    next: Option<Drawn<E>>,
    acknowledged: u64,
}

/// Walks that the reward wasn't asked about yet.
struct Drawn<E: Env> {
    walks: Walks<E>,
    version: u64,
}

impl<E: Env, P, R> std::fmt::Debug for Actor<E, P, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Actor");
        out.field("of", &self.who).field("version", &self.version).field("acknowledged", &self.acknowledged);
        out.finish_non_exhaustive()
    }
}

impl<E: ReplayEnv, P: Policy<E> + Send, R: Reward<E::States>> Actor<E, P, R> {
    /// An actor of the learner at this address, with its parameters.
    ///
    /// # Errors
    /// [`Error::Config`] for settings that make no sense; [`Error::Peer`] if no learner answers in time, and if it refuses this model or
    /// this environment.
    pub fn connect(
        address: impl ToSocketAddrs + std::fmt::Display,
        env: E,
        reward: R,
        policy: P,
        config: ActorConfig,
    ) -> Result<Self> {
        Self::open(address, env, reward, policy, None, config)
    }

    /// The same for a learner whose trainer has conditions ([`Trainer::with_conditions`](gfn::train::Trainer::with_conditions)): a condition is
    /// drawn for each walk, from the same source as there, and sent along.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect), and those of the source.
    pub fn connect_conditional(
        address: impl ToSocketAddrs + std::fmt::Display,
        env: E,
        reward: R,
        policy: P,
        conditions: impl ConditionSource + 'static,
        config: ActorConfig,
    ) -> Result<Self> {
        Self::open(address, env, reward, policy, Some(Box::new(conditions)), config)
    }

    fn open(
        address: impl ToSocketAddrs + std::fmt::Display,
        env: E,
        reward: R,
        policy: P,
        conditions: Option<Box<dyn ConditionSource>>,
        config: ActorConfig,
    ) -> Result<Self> {
        if config.batch == 0 {
            return Err(Error::config("batch", 0, "at least one walk"));
        }
        if !(Duration::from_millis(1)..=MOST).contains(&config.timeout) {
            return Err(Error::config(
                "the timeout of an actor",
                format!("{:?}", config.timeout),
                "at least a millisecond, at most ten years",
            ));
        }
        let who = format!("the learner at {address}");
        let refuse = |error: std::io::Error| {
            let remedy = "check the address, and whether the learner still runs and can be reached from here";
            Error::peer(&who, error.to_string(), remedy)
        };
        let mut stream = reach(&address, config.timeout).map_err(refuse)?;
        set_timeout(&stream, config.timeout).map_err(refuse)?;
        let hello = Hello {
            model: model_of(policy.parameters()),
            conditions: Form::of_source(conditions.as_deref())?,
            environment: env.fingerprint()?,
        };
        let greeted = greet(&mut stream, &hello, size_of(policy.parameters()));
        let (Welcome { ticket, timeout, max_message }, body) = greeted.map_err(|broken| broken.of_peer(&who))?;
        let (version, exploration) = load(&body, policy.parameters()).map_err(|broken| broken.of_peer(&who))?;
        set_timeout(&stream, timeout).map_err(refuse)?;
        let heartbeat = stream.try_clone().and_then(|copy| Heartbeat::start(copy, timeout / 3)).map_err(refuse)?;
        // A learner that goes on from a checkpoint gives its first actors the old numbers.
        let rng = Rng::seeded(Rng::mix64(config.seed ^ Rng::mix64(ticket ^ Rng::mix64(version))));
        let acknowledged = 0;
        Ok(Self {
            env,
            reward,
            policy,
            conditions,
            config,
            rng,
            who,
            stream,
            heartbeat,
            max_message,
            version,
            exploration,
            next: None,
            acknowledged,
        })
    }

    /// Samples and sends until the learner has enough; says how many walks it took.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit).
    pub fn run(mut self) -> Result<u64> {
        while self.submit()?.is_continue() {}
        Ok(self.acknowledged)
    }

    /// Samples and sends a batch, and takes the latest parameters. Waits while the learner has more walks than it can use; breaks off once
    /// it has enough for good.
    ///
    /// # Errors
    /// Those of sampler, policy and reward; [`Error::Peer`] for a learner that has ended before training was over, doesn't answer any
    /// more, or refuses the walks. The actor is of no use then: connect another one.
    ///
    /// # Panics
    /// Where environment, policy or reward do.
    pub fn submit(&mut self) -> Result<ControlFlow<()>> {
        let Drawn { walks, version } = match self.next.take() {
            Some(drawn) => drawn,
            None => self.draw()?,
        };
        let log_rewards = self.ask(&walks)?;
        let submission = Submission {
            version,
            instances: self.env.instances(&walks.terminal),
            actions: self.env.write_actions(&walks.actions),
            conditions: walks.conditions().map(Tensor::shallow_clone),
            offsets: walks.offsets,
            log_rewards,
        };
        let message = submission.encode()?;
        if message.len() > self.max_message {
            let (got, expected) = (
                format!("{} walks of {} bytes", self.config.batch, message.len()),
                "fewer bytes than the learner takes (`LearnerConfig::max_message`)",
            );
            return Err(Error::config("the batch of an actor", got, expected));
        }
        let sent = self.heartbeat.send(Kind::Walks, &message);
        let flow = self.answer(sent).map_err(|broken| broken.of_peer(&self.who))?;
        if flow.is_continue() {
            self.acknowledged += self.config.batch as u64;
        }
        Ok(flow)
    }

    fn draw(&mut self) -> Result<Drawn<E>> {
        let exploration = self.config.exploration.unwrap_or(self.exploration);
        let conditions = self.conditions.as_deref();
        draw(&self.env, &self.policy, conditions, &self.config, exploration, self.version, &mut self.rng)
    }

    /// Asks the reward about these objects, and samples the next ones meanwhile.
    fn ask(&mut self, walks: &Walks<E>) -> Result<Vec<f64>> {
        if !self.config.ahead {
            return log_rewards(&self.reward, &walks.terminal, walks.conditions());
        }
        let exploration = self.config.exploration.unwrap_or(self.exploration);
        let Self { env, reward, policy, conditions, rng, config, version, .. } = self;
        // libtorch counts them for each thread.
        let threads = tch::get_num_threads();
        let (rewards, next) = std::thread::scope(|scope| {
            let (env, config, version) = (&*env, &*config, *version);
            let sampling = scope.spawn(move || {
                tch::set_num_threads(threads);
                draw(env, &*policy, conditions.as_deref(), config, exploration, version, rng)
            });
            let rewards = log_rewards(&*reward, &walks.terminal, walks.conditions());
            match sampling.join() {
                Ok(next) => (rewards, next),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        let rewards = rewards?;
        self.next = Some(next?);
        Ok(rewards)
    }

    /// The learner's answer to walks. Where sending failed, what it has said before may say why.
    fn answer(&mut self, sent: std::result::Result<(), Broken>) -> std::result::Result<ControlFlow<()>, Broken> {
        let most = size_of(self.policy.parameters()).max(MAX_GREETING);
        loop {
            let (kind, body) = match (read(&mut self.stream, most), &sent) {
                (Err(_), Err(_)) => return sent.map(|()| ControlFlow::Continue(())),
                (said, _) => said?,
            };
            match kind {
                Kind::Alive => {}
                Kind::Done => return Ok(ControlFlow::Break(())),
                Kind::Refused => return Err(refusal(&body)),
                Kind::Receipt => {
                    if body == [1] {
                        let (kind, body) = read(&mut self.stream, most)?;
                        if kind != Kind::Weights {
                            return Err(Broken::Garbage(format!("{kind:?} in place of parameters")));
                        }
                        (self.version, self.exploration) = load(&body, self.policy.parameters())?;
                    }
                    return Ok(ControlFlow::Continue(()));
                }
                other => return Err(Broken::Garbage(format!("{other:?} in place of a receipt"))),
            }
        }
    }

    /// The policy, with the parameters that it has from the learner.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The learner's step that its parameters are of.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number of walks that the learner has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
}

impl<E: Env, P, R> Drop for Actor<E, P, R> {
    fn drop(&mut self) {
        // If it fails, the learner finds out by itself.
        let _ = self.heartbeat.send(Kind::Done, &[]);
    }
}

fn draw<E: ReplayEnv, P: Policy<E>>(
    env: &E,
    policy: &P,
    conditions: Option<&dyn ConditionSource>,
    config: &ActorConfig,
    exploration: Exploration,
    version: u64,
    rng: &mut Rng,
) -> Result<Drawn<E>> {
    if let Some(parameters) = policy.parameters() {
        // Draws nothing without noisy layers.
        parameters.reset_noise(rng);
    }
    let sampler = Sampler::new(env, policy).exploration(exploration).max_steps(config.max_steps);
    let walks = match conditions {
        Some(source) => sampler.walks_conditional(&source.draw(config.batch, rng)?, rng)?,
        None => sampler.walks(config.batch, rng)?,
    };
    Ok(Drawn { walks, version })
}

/// The first of the addresses that answers. A learner that is about to start is waited for.
fn reach(address: &impl ToSocketAddrs, timeout: Duration) -> std::io::Result<TcpStream> {
    let until = Instant::now() + timeout;
    loop {
        let mut failed = std::io::Error::other("a name that stands for no address");
        for one in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&one, timeout) {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        if Instant::now() >= until {
            return Err(failed);
        }
        std::thread::sleep(Duration::from_millis(50).min(timeout));
    }
}

fn set_timeout(stream: &TcpStream, timeout: Duration) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))
}

/// Says what this actor is; gives the learner's answer, and its parameters of `size` bytes.
fn greet(stream: &mut TcpStream, hello: &Hello, size: usize) -> std::result::Result<(Welcome, Vec<u8>), Broken> {
    write(stream, Kind::Hello, &hello.encode())?;
    let mut welcome = None;
    loop {
        let (kind, body) = read(stream, size.max(MAX_GREETING))?;
        match (kind, welcome) {
            (Kind::Alive, _) => {}
            (Kind::Welcome, None) => welcome = Some(Welcome::decode(&body)?),
            (Kind::Weights, Some(welcome)) => return Ok((welcome, body)),
            (Kind::Refused, _) => return Err(refusal(&body)),
            (Kind::Done, _) => return Err(Broken::Gone("its training is over".to_owned())),
            (other, _) => return Err(Broken::Garbage(format!("{other:?} in place of a greeting"))),
        }
    }
}

fn refusal(body: &[u8]) -> Broken {
    Broken::Garbage(format!("it refuses this actor: {}", String::from_utf8_lossy(body)))
}
