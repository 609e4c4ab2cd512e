//! Points in the plane. Coordinates are in bond lengths, with x to the right and y upwards.

/// A point in the plane, or the difference of two points.
pub(super) type Place = (f64, f64);

pub(super) fn minus(p: Place, q: Place) -> Place {
    (p.0 - q.0, p.1 - q.1)
}

/// Returns the point `p` moved by the vector `direction` times `by`.
pub(super) fn plus(p: Place, by: f64, direction: Place) -> Place {
    (p.0 + by * direction.0, p.1 + by * direction.1)
}

pub(super) fn distance(p: Place, q: Place) -> f64 {
    (p.0 - q.0).hypot(p.1 - q.1)
}

/// Returns the unit vector whose direction is given by an angle in radians.
pub(super) fn towards(angle: f64) -> Place {
    (angle.cos(), angle.sin())
}

/// Returns the angle of the direction from `p` to `q`, in radians.
pub(super) fn angle(p: Place, q: Place) -> f64 {
    (q.1 - p.1).atan2(q.0 - p.0)
}

/// Rotates the point `p` about the point `about`. The angle `by` is in radians, counterclockwise.
pub(super) fn turned(p: Place, about: Place, by: f64) -> Place {
    let (x, y) = minus(p, about);
    let (sin, cos) = by.sin_cos();
    (about.0 + x * cos - y * sin, about.1 + x * sin + y * cos)
}

/// Reflects the point `p` in the line through `a` and `b`.
pub(super) fn mirrored(p: Place, a: Place, b: Place) -> Place {
    let along = minus(b, a);
    let from = minus(p, a);
    let square = (along.0 * along.0 + along.1 * along.1).max(1e-12);
    let foot = plus(a, (from.0 * along.0 + from.1 * along.1) / square, along);
    (2.0 * foot.0 - p.0, 2.0 * foot.1 - p.1)
}

/// Returns a positive number if the point `c` is to the left of the line from `a` to `b`, and a negative
/// number if it is to the right.
pub(super) fn side(a: Place, b: Place, c: Place) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}
