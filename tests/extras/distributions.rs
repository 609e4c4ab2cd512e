//! Tests of the distributions of reward exponents and preferences, and of the encodings of numbers.

use gfn::{Error, Rng};
use gfn_extras::condition::{Directions, Temperature, Thermometer};

fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

#[test]
fn betas_have_the_moments_of_their_laws() {
    let n = 20_000;
    let cases = [
        (Temperature::Constant(3.0), 3.0, 0.0),
        (Temperature::Uniform { least: 1.0, most: 5.0 }, 3.0, 16.0 / 12.0),
        (
            Temperature::LogUniform { least: 1.0, most: 8.0 },
            7.0 / 8f64.ln(),
            63.0 / 2.0 / 8f64.ln() - (7.0 / 8f64.ln()).powi(2),
        ),
        (Temperature::Gamma { shape: 2.0, scale: 0.5, most: 100.0 }, 1.0, 0.5),
    ];
    for (distribution, mean, variance) in cases {
        let mut rng = Rng::seeded(1);
        let (least, most) = distribution.range().unwrap();
        let drawn: Vec<f64> = (0..n).map(|_| distribution.draw(&mut rng)).collect();
        assert!(drawn.iter().all(|beta| (least..=most).contains(beta)));
        let (m, v) = moments(drawn.into_iter());
        assert!((m - mean).abs() < 5.0 * (variance / f64::from(n)).sqrt() + 1e-12, "{distribution:?}: {m}");
        assert!((v - variance).abs() < 0.05 * variance + 1e-12, "{distribution:?}: {v}");
    }
    let cut = Temperature::Gamma { shape: 2.0, scale: 0.5, most: 0.5 };
    assert!((0..100).all(|seed| cut.draw(&mut Rng::seeded(seed)) <= 0.5));
    for bad in [
        Temperature::Constant(-1.0),
        Temperature::Uniform { least: 2.0, most: 2.0 },
        Temperature::LogUniform { least: 0.0, most: 2.0 },
        Temperature::Gamma { shape: -1.0, scale: 1.0, most: 2.0 },
        Temperature::Uniform { least: 0.0, most: f64::INFINITY },
    ] {
        assert!(matches!(bad.range(), Err(Error::Config { .. })), "{bad:?}");
    }
}

#[test]
fn dirichlet_vectors_have_the_moments_of_their_law() {
    // Each entry of a Dirichlet vector with three entries follows the distribution Beta(a, 2 a), where a is
    // the concentration. The distribution has the mean 1/3 and the variance 2/9 / (3 a + 1).
    for concentration in [0.01, 0.5, 1.0, 4.0] {
        let mut rng = Rng::seeded(2);
        let distribution = Directions::Dirichlet { concentration };
        let first = (0..20_000).map(|_| {
            let vector = distribution.draw(3, &mut rng);
            assert!(vector.iter().all(|x| x.is_finite()) && vector.iter().sum::<f64>() > 0.0);
            vector[0] / vector.iter().sum::<f64>()
        });
        let (mean, variance) = moments(first);
        let exact = 2.0 / 9.0 / (3.0 * concentration + 1.0);
        assert!((mean - 1.0 / 3.0).abs() < 5.0 * (exact / 20_000.0).sqrt(), "{concentration}: {mean}");
        assert!((variance / exact - 1.0).abs() < 0.05, "{concentration}: {variance}, {exact}");
    }
}

#[test]
fn a_number_comes_back_from_its_row() {
    let mut rng = Rng::seeded(0);
    for bins in [2, 3, 32] {
        let thermometer = Thermometer::new(bins, -1.5, 64.0).unwrap();
        for _ in 0..100 {
            let value = -1.5 + 65.5 * rng.uniform();
            let row = thermometer.encode(value);
            assert!(
                row.windows(2).all(|pair| pair[0] >= pair[1]) && row.len() == bins && row[bins - 1] == 0.0
            );
            assert!((thermometer.decode(&row) - value).abs() < 1e-12);
        }
        assert_eq!(thermometer.decode(&thermometer.encode(1e9)), 64.0);
        assert_eq!(thermometer.decode(&thermometer.encode(-3.0)), -1.5);
    }
    assert!(Thermometer::new(1, 0.0, 1.0).is_err());
    for (least, most) in [(1.0, 1.0), (0.0, f64::INFINITY), (f64::NAN, 1.0)] {
        assert!(matches!(Thermometer::new(4, least, most), Err(Error::Config { .. })));
    }
}
