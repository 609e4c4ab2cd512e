//! Points of the plane: to the right and up, in bond lengths.

/// A point or a difference of two.
pub(super) type Place = (f64, f64);

pub(super) fn minus(p: Place, q: Place) -> Place {
    (p.0 - q.0, p.1 - q.1)
}

/// `p` and `by` times `direction`.
pub(super) fn plus(p: Place, by: f64, direction: Place) -> Place {
    (p.0 + by * direction.0, p.1 + by * direction.1)
}

pub(super) fn distance(p: Place, q: Place) -> f64 {
    (p.0 - q.0).hypot(p.1 - q.1)
}

/// The direction of an angle.
pub(super) fn towards(angle: f64) -> Place {
    (angle.cos(), angle.sin())
}

/// The angle of the way from `p` to `q`.
pub(super) fn angle(p: Place, q: Place) -> f64 {
    (q.1 - p.1).atan2(q.0 - p.0)
}

/// `p` turned about `about`.
pub(super) fn turned(p: Place, about: Place, by: f64) -> Place {
    let ((x, y), (sin, cos)) = (minus(p, about), by.sin_cos());
    (about.0 + x * cos - y * sin, about.1 + x * sin + y * cos)
}

/// `p` on the other side of the line through `a` and `b`.
pub(super) fn mirrored(p: Place, a: Place, b: Place) -> Place {
    let (along, from) = (minus(b, a), minus(p, a));
    let square = (along.0 * along.0 + along.1 * along.1).max(1e-12);
    let share = (from.0 * along.0 + from.1 * along.1) / square;
    let foot = plus(a, share, along);
    (2.0 * foot.0 - p.0, 2.0 * foot.1 - p.1)
}

/// Positive where `c` is to the left of the way from `a` to `b`.
pub(super) fn side(a: Place, b: Place, c: Place) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

/// `true` if the inner parts of two segments meet.
pub(super) fn cross(a: Place, b: Place, c: Place, d: Place) -> bool {
    side(a, b, c) * side(a, b, d) < -1e-9 && side(c, d, a) * side(c, d, b) < -1e-9
}

/// The distance of a point from a segment.
pub(super) fn gap(p: Place, a: Place, b: Place) -> f64 {
    let (along, from) = (minus(b, a), minus(p, a));
    let square = (along.0 * along.0 + along.1 * along.1).max(1e-12);
    let share = ((from.0 * along.0 + from.1 * along.1) / square).clamp(0.0, 1.0);
    distance(p, plus(a, share, along))
}

/// The mean of points; the origin if there is none.
pub(super) fn middle(places: impl Iterator<Item = Place>) -> Place {
    let (sum, n) = places.fold(((0.0, 0.0), 0.0), |(sum, n), p| (plus(sum, 1.0, p), n + 1.0));
    (sum.0 / f64::max(n, 1.0), sum.1 / f64::max(n, 1.0))
}
