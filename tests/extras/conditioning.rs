//! Tests of conditions and of the vectors that encode them.

use gfn::condition::ConditionSource;
use gfn::{Error, Rng};
use gfn_extras::condition::{Condition, Conditioning, Directions, Encoding, Focus, Temperature};
use tch::{Device, Tensor};

fn all(encoding: Encoding) -> Conditioning {
    let distribution = Temperature::LogUniform { least: 0.5, most: 64.0 };
    let conditioning = Conditioning::new(3).unwrap().temperature(distribution, encoding).unwrap();
    let conditioning =
        conditioning.preferences(Directions::Dirichlet { concentration: 1.0 }, encoding).unwrap();
    conditioning
        .focus(Focus::new(Directions::OneOf(vec![vec![1.0, 2.0, 2.0], vec![0.0, 0.0, 5.0]])), encoding)
        .unwrap()
}

/// Tests reward exponents that are drawn at the upper end of their range. After encoding and decoding they
/// must still lie within the range, in single and double precision.
#[test]
fn the_ends_of_a_range_are_written_again() {
    for (encoding, most) in [(Encoding::Thermometer { bins: 8 }, 7.7), (Encoding::Number, 0.1)] {
        let distribution = Temperature::Gamma { shape: 2.0, scale: 10.0, most };
        let conditioning = Conditioning::new(1).unwrap().temperature(distribution, encoding).unwrap();
        let drawn = conditioning.conditions(50, &mut Rng::seeded(3));
        assert!(drawn.iter().any(|condition| condition.beta == most));
        let vectors = conditioning.encode(&drawn).unwrap();
        for kind in [tch::Kind::Double, tch::Kind::Float] {
            let read = conditioning.decode(&vectors.to_kind(kind)).unwrap();
            assert!(conditioning.encode(&read).is_ok(), "{kind:?} {encoding:?}");
        }
    }
}

#[test]
fn conditions_come_back_from_their_vectors() {
    for encoding in [Encoding::Number, Encoding::Thermometer { bins: 8 }] {
        let conditioning = all(encoding);
        let drawn = conditioning.conditions(50, &mut Rng::seeded(3));
        let vectors = conditioning.encode(&drawn).unwrap();
        assert_eq!(vectors.size(), [50, conditioning.width() as i64]);
        assert!(vectors.equal(&conditioning.draw(50, &mut Rng::seeded(3)).unwrap()));
        // Networks, files and buffers may store condition vectors in single precision.
        for (kind, bound) in [(tch::Kind::Double, 1e-12), (tch::Kind::Float, 1e-4)] {
            for (read, meant) in conditioning.decode(&vectors.to_kind(kind)).unwrap().iter().zip(&drawn) {
                assert!((read.beta - meant.beta).abs() < bound);
                let pairs = read.preferences.iter().zip(&meant.preferences);
                assert!(
                    pairs
                        .chain(read.focus.iter().flatten().zip(meant.focus.iter().flatten()))
                        .all(|(a, b)| (a - b).abs() < bound)
                );
                assert!((read.preferences.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!((read.focus.iter().flatten().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
    }
    // Constant parts of a condition must have no entries in the vector.
    let constant =
        Conditioning::new(2).unwrap().temperature(Temperature::Constant(4.0), Encoding::Number).unwrap();
    let constant = constant.preferences(Directions::Constant(vec![1.0, 3.0]), Encoding::Number).unwrap();
    assert_eq!(constant.width(), 0);
    let decoded = constant.decode(&constant.draw(1, &mut Rng::seeded(0)).unwrap()).unwrap();
    assert_eq!(decoded, [Condition { beta: 4.0, preferences: vec![0.25, 0.75], focus: None }]);
}

#[test]
fn vectors_that_encode_no_condition_are_refused() {
    for encoding in [Encoding::Number, Encoding::Thermometer { bins: 8 }] {
        let conditioning = all(encoding);
        let drawn = conditioning.draw(50, &mut Rng::seeded(3)).unwrap();
        for kind in [tch::Kind::Double, tch::Kind::Float] {
            conditioning.check(&drawn.to_kind(kind)).unwrap();
        }
        // Two entries of the last vector are changed: the first entry of beta, and the last entry of the
        // goal direction.
        for place in [0, conditioning.width() as i64 - 1] {
            let other = drawn.copy();
            let _ = other.get(49).get(place).fill_(1.5e6);
            assert!(matches!(conditioning.check(&other), Err(Error::Config { .. })), "{encoding:?}, {place}");
        }
        let none = Tensor::zeros([1, conditioning.width() as i64], (tch::Kind::Double, Device::Cpu));
        assert!(conditioning.check(&none).is_err(), "no preference at all");
        assert!(matches!(conditioning.check(&drawn.narrow(1, 1, 3)), Err(Error::Shape { .. })));
    }
}

#[test]
fn invalid_settings_are_refused() {
    let plain = || Conditioning::new(2).unwrap();
    let number = Encoding::Number;
    assert!(matches!(Conditioning::new(0), Err(Error::Config { .. })));
    assert!(plain().temperature(Temperature::Constant(f64::NAN), number).is_err());
    for distribution in [
        Directions::Constant(vec![1.0]),
        Directions::Constant(vec![0.0, 0.0]),
        Directions::OneOf(vec![]),
        Directions::OneOf(vec![vec![1.0, -1.0]]),
        Directions::Dirichlet { concentration: 0.0 },
    ] {
        assert!(
            matches!(plain().preferences(distribution.clone(), number), Err(Error::Config { .. })),
            "{distribution:?}"
        );
        assert!(plain().focus(Focus::new(distribution), number).is_err());
    }
    let focus = || Focus::new(Directions::Dirichlet { concentration: 1.0 });
    for bad in [
        Focus { cosine: 1.0, ..focus() },
        Focus { limit: 0.0, ..focus() },
        Focus { outside: f64::NEG_INFINITY, ..focus() },
    ] {
        assert!(matches!(plain().focus(bad, number), Err(Error::Config { .. })));
    }
    assert!(plain().preferences(focus().directions, Encoding::Thermometer { bins: 1 }).is_err());
    let conditioning = all(number);
    let fine = conditioning.conditions(1, &mut Rng::seeded(0)).remove(0);
    for bad in [
        Condition { beta: 65.0, ..fine.clone() },
        Condition { preferences: vec![1.0], ..fine.clone() },
        Condition { focus: None, ..fine.clone() },
        Condition { focus: Some(vec![0.0; 3]), ..fine },
    ] {
        assert!(matches!(conditioning.encode(&[bad]), Err(Error::Config { .. })));
    }
    let narrow = Tensor::zeros([2, 3], (tch::Kind::Double, Device::Cpu));
    assert!(matches!(conditioning.decode(&narrow), Err(Error::Shape { .. })));
}
