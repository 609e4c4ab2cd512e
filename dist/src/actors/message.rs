//! What is in frames: greetings, and walks, whose numbers are held against the message's length before anything is made of them.

use std::time::Duration;

use tch::{Kind, Tensor};

use super::conditions::Form;
use super::frame::{Broken, Fields};

/// The longest greeting.
pub(super) const MAX_GREETING: usize = 1 << 12;

/// Which model and which environment an actor has, and under which conditions it draws.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub(super) model: u64,
    pub(super) conditions: Form,
    pub(super) environment: String,
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = self.model.to_le_bytes().to_vec();
        self.conditions.encode(&mut out);
        out.extend(self.environment.bytes());
        out
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, Broken> {
        let mut fields = Fields(body);
        let (model, conditions, text) = (fields.u64()?, Form::decode(&mut fields)?, fields.0);
        let environment = str::from_utf8(text).map_err(|_| Broken::garbage("the name of an environment isn't text"))?;
        Ok(Self { model, conditions, environment: environment.to_owned() })
    }
}

/// What a learner says to an actor that it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Welcome {
    /// The actor's number, which no other actor of this learner has, nor of others that train as one with it.
    pub(super) ticket: u64,
    /// After how long a silence each takes the other for gone.
    pub(super) timeout: Duration,
    /// The longest message with walks, in bytes.
    pub(super) max_message: usize,
}

impl Welcome {
    pub(super) fn encode(&self) -> Vec<u8> {
        let timeout = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        [self.ticket, timeout, self.max_message as u64].into_iter().flat_map(u64::to_le_bytes).collect()
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, Broken> {
        let mut fields = Fields(body);
        let (ticket, timeout, most) = (fields.u64()?, fields.u64()?, fields.u64()?);
        fields.end()?;
        let timeout = Duration::from_millis(timeout.max(1));
        Ok(Self { ticket, timeout, max_message: usize::try_from(most).unwrap_or(usize::MAX) })
    }
}

/// Walks with their conditions and log-rewards, and the step that made the parameters which drew them.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) version: u64,
    /// The first action of each walk, and the number of actions.
    pub(super) offsets: Vec<usize>,
    pub(super) instances: Vec<u32>,
    pub(super) log_rewards: Vec<f64>,
    /// The condition of each walk, `[n, C]`, if there are any.
    pub(super) conditions: Option<Tensor>,
    /// As the environment writes them: one row each, numbers of 64 bits.
    pub(super) actions: Tensor,
}

/// How actions are written.
const SLOTS: u8 = 0;
const INTEGERS: u8 = 1;
const REALS: u8 = 2;

impl Submission {
    pub(super) fn len(&self) -> usize {
        self.log_rewards.len()
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, tch::TchError> {
        let size = self.actions.size();
        let width = size.get(1).copied().unwrap_or(0) as u32;
        let flat = self.actions.f_reshape([-1])?;
        let (form, actions): (u8, Vec<u8>) = match flat.kind() {
            Kind::Double => (REALS, Vec::<f64>::try_from(flat)?.into_iter().flat_map(f64::to_le_bytes).collect()),
            _ => {
                let numbers = Vec::<i64>::try_from(flat)?;
                // Slots, mostly: half the bytes.
                match numbers.iter().map(|&number| u32::try_from(number)).collect::<Result<Vec<_>, _>>() {
                    Ok(slots) => (SLOTS, slots.into_iter().flat_map(u32::to_le_bytes).collect()),
                    Err(_) => (INTEGERS, numbers.into_iter().flat_map(i64::to_le_bytes).collect()),
                }
            }
        };
        let mut out = self.version.to_le_bytes().to_vec();
        out.extend((self.len() as u32).to_le_bytes());
        out.push(form);
        out.extend(width.to_le_bytes());
        let conditions = Form::of(self.conditions.as_ref());
        conditions.encode(&mut out);
        out.extend(self.offsets.windows(2).flat_map(|ends| ((ends[1] - ends[0]) as u32).to_le_bytes()));
        out.extend(self.instances.iter().flat_map(|instance| instance.to_le_bytes()));
        out.extend(self.log_rewards.iter().flat_map(|log_reward| log_reward.to_le_bytes()));
        conditions.write(self.conditions.as_ref(), &mut out)?;
        out.extend(actions);
        Ok(out)
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, Broken> {
        let mut fields = Fields(body);
        let (version, n) = (fields.u64()?, fields.u32()? as usize);
        let (form, width) = (fields.u8()?, fields.u32()? as usize);
        let conditions = Form::decode(&mut fields)?;
        // Sixteen bytes a walk beside its actions.
        if n == 0 || n > fields.0.len() / 16 {
            return Err(Broken::Garbage(format!("{n} walks in a message of {} bytes", body.len())));
        }
        let numbers =
            |bytes: &[u8]| -> Vec<u32> { bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect() };
        let lengths = numbers(fields.take(4 * n)?);
        let instances = numbers(fields.take(4 * n)?);
        let log_rewards: Vec<f64> = fields.take(8 * n)?.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        if let Some(odd) = log_rewards.iter().find(|value| !value.is_finite()) {
            return Err(Broken::Garbage(format!("a log-reward of {odd}")));
        }
        let conditions = conditions.read(n, &mut fields)?;
        let each = match form {
            SLOTS => 4,
            INTEGERS | REALS => 8,
            _ => return Err(Broken::Garbage(format!("actions of unknown form {form}"))),
        };
        // The sum of 2^32 numbers of 32 bits fits.
        let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let bytes = total.checked_mul(width.max(1) as u64).and_then(|numbers| numbers.checked_mul(each));
        if lengths.contains(&0) || bytes != Some(fields.0.len() as u64) {
            return Err(Broken::Garbage(format!("{total} actions in {} bytes", fields.0.len())));
        }
        let flat = match form {
            REALS => {
                Tensor::from_slice(&fields.0.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect::<Vec<_>>())
            }
            INTEGERS => {
                Tensor::from_slice(&fields.0.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect::<Vec<_>>())
            }
            _ => Tensor::from_slice(&numbers(fields.0).into_iter().map(i64::from).collect::<Vec<_>>()),
        };
        let actions = match width {
            0 => flat,
            _ => flat.f_reshape([-1, width as i64]).map_err(|error| Broken::Garbage(error.to_string()))?,
        };
        let ends = lengths.iter().scan(0, |end, &length| {
            *end += length as usize;
            Some(*end)
        });
        Ok(Self {
            version,
            offsets: [0].into_iter().chain(ends).collect(),
            instances,
            log_rewards,
            conditions,
            actions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(actions: Tensor) -> Submission {
        let (offsets, instances, log_rewards) = (vec![0, 1, 3], vec![0, 9], vec![0.5, -2.0]);
        Submission { version: 3, offsets, instances, log_rewards, conditions: None, actions }
    }

    #[test]
    fn walks_come_out_as_they_went_in() {
        let kinds = [
            Tensor::from_slice(&[0i64, 5, 7]),
            Tensor::from_slice(&[0i64, -5, 1 << 40]),
            Tensor::from_slice(&[0.5f64, -1e300, 3.0]),
            Tensor::from_slice(&[0.5f64, 0.1, 1.0, 1.1, 2.0, 2.1]).reshape([3, 2]),
        ];
        for actions in kinds {
            let sent = submission(actions);
            let come = Submission::decode(&sent.encode().unwrap()).unwrap();
            assert_eq!((come.version, come.offsets, come.instances), (3, sent.offsets, sent.instances));
            assert_eq!((come.log_rewards, come.actions), (sent.log_rewards, sent.actions));
        }
    }

    #[test]
    fn numbers_that_a_message_can_not_hold_are_refused() {
        let whole = submission(Tensor::from_slice(&[0i64, 5, 7])).encode().unwrap();
        for length in 0..whole.len() {
            assert!(Submission::decode(&whole[..length]).is_err(), "{length} bytes");
        }
        assert!(Submission::decode(&[whole.clone(), vec![0]].concat()).is_err());
        // The number of walks, the form, the width, the form and the width of conditions, the length of a walk, a log-reward.
        for (place, byte) in [
            (8, 0),
            (8, 1),
            (11, 255),
            (12, 1),
            (12, 9),
            (13, 2),
            (16, 255),
            (17, 3),
            (17, 9),
            (18, 1),
            (22, 0),
            (22, 2),
            (45, 0xff),
        ] {
            let mut other = whole.clone();
            other[place] = byte;
            if place == 45 {
                other[38..46].copy_from_slice(&f64::INFINITY.to_le_bytes());
            }
            assert!(Submission::decode(&other).is_err(), "byte {place} as {byte}");
        }
    }

    #[test]
    fn conditions_come_out_as_they_went_in_and_what_they_can_not_be_is_refused() {
        for kind in [Kind::Float, Kind::Double] {
            let conditions =
                Tensor::from_slice(&[0.1f64, -2.5, 1e30, 0.0, 7.0, 1.0 / 3.0]).to_kind(kind).reshape([2, 3]);
            let sent = Submission {
                conditions: Some(conditions.shallow_clone()),
                ..submission(Tensor::from_slice(&[0i64, 5, 7]))
            };
            let whole = sent.encode().unwrap();
            let come = Submission::decode(&whole).unwrap();
            let come_conditions = come.conditions.unwrap();
            assert!(come_conditions == conditions && come_conditions.kind() == kind && come.actions == sent.actions);
            for length in 0..whole.len() {
                assert!(Submission::decode(&whole[..length]).is_err(), "{length} bytes");
            }
            // The form, the width, and the last byte of the first number: an exponent of all ones.
            let at = 54 + kind.elt_size_in_bytes() - 1;
            for (place, byte) in [(17, 0), (17, 3), (18, 2), (18, 4), (21, 255), (at, 0x7f)] {
                let mut other = whole.clone();
                (other[place], other[at - 1]) = (byte, if place == at { 0xff } else { other[at - 1] });
                assert!(Submission::decode(&other).is_err(), "{kind:?}: byte {place} as {byte}");
            }
        }
        let odd = Submission {
            conditions: Some(Tensor::zeros([2, 0], (Kind::Float, tch::Device::Cpu))),
            ..submission(Tensor::from_slice(&[0i64, 5, 7]))
        };
        let come = Submission::decode(&odd.encode().unwrap()).unwrap();
        assert_eq!(come.conditions.map(|conditions| conditions.size()), Some(vec![2, 0]), "constant conditions");
    }

    #[test]
    fn greetings_come_out_as_they_went_in() {
        let conditions = Form::of(Some(&Tensor::zeros([1, 3], (Kind::Float, tch::Device::Cpu))));
        let hello = Hello { model: 7, conditions, environment: "abc".to_owned() };
        assert_eq!(Hello::decode(&hello.encode()).unwrap(), hello);
        assert!(
            Hello::decode(&[1, 2]).is_err() && Hello::decode(&[255; 9]).is_err() && Hello::decode(&[0; 12]).is_err()
        );
        let welcome = Welcome { ticket: 5, timeout: Duration::from_millis(1500), max_message: 99 };
        assert_eq!(Welcome::decode(&welcome.encode()).unwrap(), welcome);
        assert!(Welcome::decode(&[0; 25]).is_err());
    }
}
