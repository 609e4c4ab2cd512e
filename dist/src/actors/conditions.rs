//! Conditions of walks on the wire: how they are written, and their numbers.

use std::fmt;

use gfn::Rng;
use gfn::condition::ConditionSource;
use tch::{Kind, Tensor};

use super::frame::{Broken, Fields};

const NONE: u8 = 0;
const SINGLE: u8 = 1;
const DOUBLE: u8 = 2;

/// The condition of each walk: none, or so many numbers of a precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    kind: u8,
    width: u32,
}

impl Form {
    /// How conditions of a source are written; a source is asked for one, by a stream that nobody else draws from.
    pub(super) fn of_source(source: Option<&dyn ConditionSource>) -> gfn::Result<Self> {
        let one = source.map(|source| source.draw(1, &mut Rng::seeded(0))).transpose()?;
        Ok(Self::of(one.as_ref()))
    }

    /// Other kinds than floats of 32 and 64 bits are written in double precision.
    pub(super) fn of(conditions: Option<&Tensor>) -> Self {
        let Some(conditions) = conditions else { return Self { kind: NONE, width: 0 } };
        let kind = if conditions.kind() == Kind::Float { SINGLE } else { DOUBLE };
        Self { kind, width: conditions.size().get(1).map_or(0, |&width| width as u32) }
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.push(self.kind);
        out.extend(self.width.to_le_bytes());
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, Broken> {
        match (fields.u8()?, fields.u32()?) {
            (NONE, width @ 1..) => Err(Broken::Garbage(format!("no conditions, of {width} numbers"))),
            (kind @ NONE..=DOUBLE, width) => Ok(Self { kind, width }),
            (kind, _) => Err(Broken::Garbage(format!("conditions of unknown form {kind}"))),
        }
    }

    /// The numbers of conditions of this form.
    pub(super) fn write(self, conditions: Option<&Tensor>, out: &mut Vec<u8>) -> Result<(), tch::TchError> {
        let Some(conditions) = conditions else { return Ok(()) };
        let flat = conditions.f_to_device(tch::Device::Cpu)?.f_reshape([-1])?;
        match self.kind {
            SINGLE => out.extend(Vec::<f32>::try_from(flat)?.into_iter().flat_map(f32::to_le_bytes)),
            _ => {
                let wide = flat.f_to_kind(Kind::Double)?;
                out.extend(Vec::<f64>::try_from(wide)?.into_iter().flat_map(f64::to_le_bytes));
            }
        }
        Ok(())
    }

    /// The conditions of `n` walks, whose length is held against what is there before anything is made of them.
    pub(super) fn read(self, n: usize, fields: &mut Fields<'_>) -> Result<Option<Tensor>, Broken> {
        let each = match self.kind {
            NONE => return Ok(None),
            SINGLE => 4,
            _ => 8,
        };
        let bytes = n.checked_mul(self.width as usize).and_then(|numbers| numbers.checked_mul(each));
        let bytes = fields.take(bytes.unwrap_or(usize::MAX))?;
        let odd = |value: f64| Broken::Garbage(format!("a condition with a number of {value}"));
        let flat = if self.kind == SINGLE {
            let numbers: Vec<f32> = bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            if let Some(value) = numbers.iter().find(|value| !value.is_finite()) {
                return Err(odd(f64::from(*value)));
            }
            Tensor::from_slice(&numbers)
        } else {
            let numbers: Vec<f64> = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
            if let Some(value) = numbers.iter().find(|value| !value.is_finite()) {
                return Err(odd(*value));
            }
            Tensor::from_slice(&numbers)
        };
        let shaped = flat.f_reshape([n as i64, i64::from(self.width)]);
        shaped.map(Some).map_err(|error| Broken::Garbage(error.to_string()))
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            NONE => f.write_str("none"),
            SINGLE => write!(f, "{} numbers in single precision", self.width),
            _ => write!(f, "{} numbers in double precision", self.width),
        }
    }
}
