//! Charts, which map unit coordinates to the points that a step can lead to. Unit coordinates are one, two or
//! more numbers between 0 and 1. In the polar box, the first step ends in a quarter-disk of radius delta
//! around the source (the origin), and later steps of length delta end on an arc around the state.

use std::f64::consts::FRAC_PI_2;

use gfn::env::Direction;

use super::{BoxEnv, Geometry};

/// The largest distance between a point and the set of reachable points at which the point still counts as
/// reachable. Rounding can move a reachable point this far.
const TOLERANCE: f64 = 1e-9;
/// The smallest distance from 0 and 1 of the unit coordinates (numbers in [0, 1] that determine the point
/// that a step leads to), because a Beta density may be infinite there.
const MARGIN: f64 = 1e-9;
/// The smallest length of a first step in the polar box, in units of delta. If a second step, of length
/// delta, started too near the source, rounding would decide whether it ends inside the quarter-disk of
/// radius delta around the source.
const RADIUS_MARGIN: f64 = 1e-3;

/// The classes of actions that a state permits in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Support {
    /// `true` if the exit (forwards) or the step to the source, which is the origin (backwards), is
    /// permitted.
    pub(super) atom: bool,
    /// `true` if a step to another point is permitted.
    pub(super) points: bool,
}

impl Support {
    /// Returns `true` if both the exit (or the step to the source) and other points are permitted.
    pub(super) fn is_free(self) -> bool {
        self.atom && self.points
    }

    /// Returns `true` if neither the exit (or the step to the source) nor other points are permitted.
    pub(super) fn is_empty(self) -> bool {
        !self.atom && !self.points
    }
}

/// Clamps a unit coordinate, which is a number in [0, 1], to the range from `MARGIN` to `1 - MARGIN`.
pub(super) fn inner(u: f64) -> f64 {
    u.clamp(MARGIN, 1.0 - MARGIN)
}

/// The indices of the unit coordinates (numbers in [0, 1]) that determine the point that a step leads to. A
/// step of fixed length uses only the second unit coordinate, which gives its angle. All other steps use all
/// unit coordinates.
pub(super) type Axes = std::ops::Range<usize>;

impl BoxEnv {
    pub(super) fn support(&self, direction: Direction, state: &[f64]) -> Support {
        let source = is_source(state);
        match direction {
            Direction::Forward if source => Support { atom: false, points: true },
            Direction::Backward if source => Support { atom: false, points: false },
            Direction::Forward => Support { atom: true, points: self.reaches(direction, state) },
            Direction::Backward => match self.geometry() {
                Geometry::Cartesian => Support { atom: true, points: self.reaches(direction, state) },
                // In the polar box the first step leads into a quarter-disk around the source. Only points of
                // this disk have a backward step to the source, and they have no other backward step.
                Geometry::Polar => {
                    let atom = self.in_disk(state);
                    Support { atom, points: !atom && self.reaches(direction, state) }
                }
            },
        }
    }

    /// Returns `true` if a step within the box leads from this state to another point. Neither the state nor
    /// the point is the source.
    fn reaches(&self, direction: Direction, state: &[f64]) -> bool {
        let delta = self.delta();
        let room = |x: f64| if direction == Direction::Forward { 1.0 - x } else { x };
        match self.geometry() {
            // Unit coordinates are fractions of the length `room(x) - delta`, with `room(x)` the distance
            // from the side that the step approaches. If a step is permitted, this length must not round to
            // 0.
            Geometry::Cartesian => state.iter().all(|&x| room(x) - delta > 0.0),
            // Near a side of the box the whole arc may be very short, so any positive length counts.
            Geometry::Polar => Arc::new(room(state[0]), room(state[1]), delta).length() > 0.0,
        }
    }

    /// Returns `true` if a point lies in the quarter-disk of radius delta around the source, into which the
    /// first step of a polar trajectory leads.
    fn in_disk(&self, point: &[f64]) -> bool {
        point[0].hypot(point[1]) <= self.delta() * (1.0 + TOLERANCE)
    }

    /// Returns the indices of the unit coordinates (numbers in [0, 1]) that determine the points to which
    /// steps from this state lead.
    pub(super) fn axes(&self, direction: Direction, state: &[f64]) -> Axes {
        match self.geometry() {
            Geometry::Polar if direction == Direction::Backward || !is_source(state) => 1..2,
            _ => 0..self.ndim(),
        }
    }

    /// Computes the point that a step from this state with these unit coordinates (numbers in [0, 1]) leads
    /// to, and writes it to `point`.
    pub(super) fn place(&self, direction: Direction, state: &[f64], unit: &[f64], point: &mut [f64]) {
        let delta = self.delta();
        match (self.geometry(), direction) {
            (Geometry::Cartesian, Direction::Forward) if is_source(state) => point.copy_from_slice(unit),
            (Geometry::Cartesian, Direction::Forward) => {
                for ((p, &s), &u) in point.iter_mut().zip(state).zip(unit) {
                    *p = (s + delta + u * (1.0 - s - delta)).min(1.0);
                }
            }
            (Geometry::Cartesian, Direction::Backward) => {
                for ((p, &s), &u) in point.iter_mut().zip(state).zip(unit) {
                    *p = (1.0 - u) * (s - delta);
                }
            }
            (Geometry::Polar, Direction::Forward) if is_source(state) => {
                let (sin, cos) = (unit[1] * FRAC_PI_2).sin_cos();
                let radius = delta * unit[0].max(RADIUS_MARGIN);
                point.copy_from_slice(&[radius * cos, radius * sin]);
            }
            (Geometry::Polar, _) => {
                let sign = if direction == Direction::Forward { 1.0 } else { -1.0 };
                let room = |x: f64| if sign > 0.0 { 1.0 - x } else { x };
                let (cos, sin) = Arc::new(room(state[0]), room(state[1]), delta).at(unit[1]);
                point[0] = (state[0] + sign * delta * cos).clamp(0.0, 1.0);
                point[1] = (state[1] + sign * delta * sin).clamp(0.0, 1.0);
            }
        }
    }

    /// Writes the unit coordinates of a point (numbers in [0, 1] that determine the step to it) to `unit`.
    /// Returns the log of the volume element at this point: the volume (on an arc, the length) per unit
    /// volume of the unit coordinates.
    ///
    /// Returns `None` for a point that no step from this state leads to.
    pub(super) fn unit(
        &self,
        direction: Direction,
        state: &[f64],
        point: &[f64],
        unit: &mut [f64],
    ) -> Option<f64> {
        if !point.iter().all(|x| (0.0..=1.0).contains(x)) {
            return None;
        }
        let delta = self.delta();
        let mut log_volume = 0.0;
        match (self.geometry(), direction) {
            (Geometry::Cartesian, _) => {
                let from_source = direction == Direction::Forward && is_source(state);
                for ((u, &s), &p) in unit.iter_mut().zip(state).zip(point) {
                    // A unit coordinate is a number in [0, 1]. The number 0 means the nearest point that can
                    // be reached along its axis.
                    let (room, step) = match direction {
                        Direction::Forward if from_source => (1.0, p),
                        Direction::Forward => (1.0 - s - delta, p - s - delta),
                        Direction::Backward => (s - delta, s - p - delta),
                    };
                    if !(-TOLERANCE..=room + TOLERANCE).contains(&step) {
                        return None;
                    }
                    *u = step / room;
                    log_volume += room.ln();
                }
            }
            (Geometry::Polar, Direction::Forward) if is_source(state) => {
                let radius = point[0].hypot(point[1]);
                if !self.in_disk(point) || radius == 0.0 {
                    return None;
                }
                unit[0] = radius / delta;
                unit[1] = point[1].atan2(point[0]) / FRAC_PI_2;
                log_volume = (delta * FRAC_PI_2 * radius).ln();
            }
            (Geometry::Polar, _) => {
                let forward = direction == Direction::Forward;
                let (dx, dy) = if forward {
                    (point[0] - state[0], point[1] - state[1])
                } else {
                    (state[0] - point[0], state[1] - point[1])
                };
                let room = |x: f64| if forward { 1.0 - x } else { x };
                let arc = Arc::new(room(state[0]), room(state[1]), delta);
                let on_arc = (dx.hypot(dy) - delta).abs() <= TOLERANCE;
                // Relative to delta, a point may be off by `TOLERANCE / delta`. The ends of the arc are
                // arcsines. Near an argument of 1, the error of an arcsine is about the square root of the
                // error of its argument.
                let slack = 2.0 * (TOLERANCE / delta).sqrt();
                let beyond_x = dx.atan2(dy) - arc.from_y;
                let beyond_y = dy.atan2(dx) - arc.from_x;
                // A forward step must not lead to a point that has a coordinate of 0 and is farther than
                // delta from the source, because no backward step leaves such a point.
                let returns = !forward || point.iter().all(|&x| x > 0.0) || self.in_disk(point);
                if !on_arc || !returns || beyond_x.max(beyond_y) > slack {
                    return None;
                }
                unit[0] = 0.5;
                unit[1] = arc.unit(dx, dy);
                log_volume = (arc.length() * delta).ln();
            }
        }
        for u in unit.iter_mut() {
            *u = inner(*u);
        }
        Some(log_volume)
    }
}

pub(super) fn is_source(state: &[f64]) -> bool {
    state.iter().all(|&x| x == 0.0)
}

/// The angles at which a step of length `delta` stays within the box.
///
/// Angles are measured from the nearer axis. An angle measured from the other axis would be near pi/2, and
/// its rounding error may be larger than a short arc near a side.
struct Arc {
    /// The largest angle from the first axis at which a step stays within the box. The space along the second
    /// axis limits it.
    from_x: f64,
    /// The largest angle from the second axis at which a step stays within the box. The space along the first
    /// axis limits it.
    from_y: f64,
}

impl Arc {
    fn new(room_x: f64, room_y: f64, delta: f64) -> Self {
        let angle = |room: f64| if room < delta { (room / delta).asin() } else { FRAC_PI_2 };
        Self { from_x: angle(room_y), from_y: angle(room_x) }
    }

    /// Returns the range of the angles in radians, which is the length of the arc in units of its radius. The
    /// result is 0 or negative if no step stays within the box.
    fn length(&self) -> f64 {
        match (self.from_x == FRAC_PI_2, self.from_y == FRAC_PI_2) {
            (_, true) => self.from_x,
            (true, _) => self.from_y,
            _ => self.from_x + self.from_y - FRAC_PI_2,
        }
    }

    /// Returns the cosine and the sine of the angle, measured from the first axis, that a unit coordinate (a
    /// number in [0, 1]) gives.
    fn at(&self, unit: f64) -> (f64, f64) {
        if self.from_y == FRAC_PI_2 {
            let (sin, cos) = (unit * self.length()).sin_cos();
            (cos, sin)
        } else if self.from_x == FRAC_PI_2 {
            ((1.0 - unit) * self.length()).sin_cos()
        } else {
            (self.from_y - unit * self.length()).sin_cos()
        }
    }

    /// Returns the unit coordinate (a number in [0, 1]) of the angle of a step by `(dx, dy)`.
    fn unit(&self, dx: f64, dy: f64) -> f64 {
        if self.from_y == FRAC_PI_2 {
            dy.atan2(dx) / self.length()
        } else {
            (self.from_y - dx.atan2(dy)) / self.length()
        }
    }
}
