//! Charts: the points that a step can lead to, as images of a unit interval, square or cube.

use std::f64::consts::FRAC_PI_2;

use gfn::env::Direction;

use super::{BoxEnv, Geometry};

/// The distance by which a point may lie outside the set of points that a step can lead to, because of
/// rounding.
const TOLERANCE: f64 = 1e-9;
/// The distance of unit coordinates from 0 and 1, at which a Beta density may be infinite.
const MARGIN: f64 = 1e-9;
/// The smallest radius of a first step into the disk, in units of delta. Nearer to the source, rounding would
/// decide whether the next point is one step away from the source or two.
const RADIUS_MARGIN: f64 = 1e-3;

/// The actions that a state permits in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Support {
    /// `true` if the exit (forwards) or the step to the source (backwards) is permitted.
    pub(super) atom: bool,
    /// `true` if a step to another point is permitted.
    pub(super) points: bool,
}

impl Support {
    /// Returns `true` if both the exit (or the step to the source) and other points are permitted.
    pub(super) fn is_free(self) -> bool {
        self.atom && self.points
    }

    /// Returns `true` if no action is permitted.
    pub(super) fn is_empty(self) -> bool {
        !self.atom && !self.points
    }
}

/// Clamps a unit coordinate, so that it keeps away from 0 and 1.
pub(super) fn inner(u: f64) -> f64 {
    u.clamp(MARGIN, 1.0 - MARGIN)
}

/// The range of the unit coordinates in use: all of them, or on an arc only the second, which is the angle.
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
                // Only points of the first disk have a step back to the source in the polar box, and they
                // have no other.
                Geometry::Polar => {
                    let atom = self.in_disk(state);
                    Support { atom, points: !atom && self.reaches(direction, state) }
                }
            },
        }
    }

    /// Returns `true` if a step within the box leads from this state, which isn't the source, to a point that
    /// isn't the source.
    fn reaches(&self, direction: Direction, state: &[f64]) -> bool {
        let delta = self.delta();
        let room = |x: f64| if direction == Direction::Forward { 1.0 - x } else { x };
        match self.geometry() {
            // Unit coordinates are fractions of this length, so it must not round to 0 if a step is
            // permitted.
            Geometry::Cartesian => state.iter().all(|&x| room(x) - delta > 0.0),
            // The whole arc is short near a side of the box, so any positive length counts.
            Geometry::Polar => Arc::new(room(state[0]), room(state[1]), delta).length() > 0.0,
        }
    }

    /// Returns `true` if a point lies in the disk of the first step of a polar trajectory.
    fn in_disk(&self, point: &[f64]) -> bool {
        point[0].hypot(point[1]) <= self.delta() * (1.0 + TOLERANCE)
    }

    /// Returns the range of unit coordinates that parametrise the points reached from this state.
    pub(super) fn axes(&self, direction: Direction, state: &[f64]) -> Axes {
        match self.geometry() {
            Geometry::Polar if direction == Direction::Backward || !is_source(state) => 1..2,
            _ => 0..self.ndim(),
        }
    }

    /// Writes the point that these unit coordinates stand for, in a step from this state.
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

    /// Writes the unit coordinates of a point, and returns the log of the volume (on an arc: of the length)
    /// that they cover per unit at this point.
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
                    // Unit coordinates are counted from the nearest point that can be reached.
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
                // The error of an angle is at most that of a point divided by the radius; near a side of the
                // box it grows to the square root of that.
                let slack = 2.0 * (TOLERANCE / delta).sqrt();
                let (beyond_x, beyond_y) = (dx.atan2(dy) - arc.from_y, dy.atan2(dx) - arc.from_x);
                // A forward step must not lead to a point with a coordinate of 0 outside of the first
                // quarter-disk, because no backward step is possible from there.
                let returns = !forward || point.iter().all(|&x| x > 0.0) || self.in_disk(point);
                if !on_arc || !returns || beyond_x.max(beyond_y) > slack {
                    return None;
                }
                unit[0] = 0.5;
                unit[1] = arc.unit(dx, dy);
                log_volume = (arc.length() * delta).ln();
            }
        }
        unit.iter_mut().for_each(|u| *u = inner(*u));
        Some(log_volume)
    }
}

pub(super) fn is_source(state: &[f64]) -> bool {
    state.iter().all(|&x| x == 0.0)
}

/// The angles at which a step of length `delta` stays within the box.
///
/// Angles are measured from the nearer axis, because an arc near a side may be shorter than the rounding of
/// an angle near pi/2.
struct Arc {
    /// The largest angle from the first axis, limited by the room along the second axis.
    from_x: f64,
    /// The largest angle from the second axis, limited by the room along the first axis.
    from_y: f64,
}

impl Arc {
    fn new(room_x: f64, room_y: f64, delta: f64) -> Self {
        let angle = |room: f64| if room < delta { (room / delta).asin() } else { FRAC_PI_2 };
        Self { from_x: angle(room_y), from_y: angle(room_x) }
    }

    /// Returns the range of the angles, which is the length of an arc of radius 1; not positive if no step
    /// stays within the box.
    fn length(&self) -> f64 {
        match (self.from_x == FRAC_PI_2, self.from_y == FRAC_PI_2) {
            (_, true) => self.from_x,
            (true, _) => self.from_y,
            _ => self.from_x + self.from_y - FRAC_PI_2,
        }
    }

    /// Returns cosine and sine of the angle at a unit coordinate, counted from the first axis.
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

    /// Returns the unit coordinate of a step by `(dx, dy)`.
    fn unit(&self, dx: f64, dy: f64) -> f64 {
        if self.from_y == FRAC_PI_2 {
            dy.atan2(dx) / self.length()
        } else {
            (self.from_y - dx.atan2(dy)) / self.length()
        }
    }
}
