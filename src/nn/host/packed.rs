//! A network's parameters as a roll-out reads them, packed once.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tch::Tensor;

/// Copies of layers for one roll-out, in which parameters stay as they are. Each is made when it is first
/// asked for.
#[derive(Debug, Default)]
pub(in crate::nn) struct Packed(RefCell<HashMap<(Vec<i64>, TypeId), Kept>>);

#[derive(Debug)]
struct Kept {
    packed: Rc<dyn Any>,
    /// Keeps the addresses from being given to other tensors.
    _of: Vec<Tensor>,
}

impl Packed {
    /// The copy of this type that belongs to parameters: of a layer to its weight.
    pub(in crate::nn) fn of<T: 'static>(&self, parameters: &[&Tensor], pack: impl FnOnce() -> T) -> Rc<T> {
        // A part of a table may start where the table does.
        let of = |tensor: &&Tensor| [vec![tensor.data_ptr() as i64], tensor.size(), tensor.stride()].concat();
        let at = (parameters.iter().flat_map(of).collect(), TypeId::of::<T>());
        let known = self.0.borrow().get(&at).map(|kept| Rc::clone(&kept.packed));
        if let Some(known) = known.and_then(|packed| packed.downcast().ok()) {
            return known;
        }
        let packed = Rc::new(pack());
        self.0.borrow_mut().insert(
            at,
            Kept { packed: packed.clone(), _of: parameters.iter().map(|tensor| tensor.shallow_clone()).collect() },
        );
        packed
    }
}

#[cfg(test)]
mod tests {
    use tch::Kind;

    use super::*;

    #[test]
    fn parts_and_groups_of_parameters_have_copies_of_their_own() {
        let packed = Packed::default();
        let table = Tensor::arange(6, (Kind::Float, tch::Device::Cpu)).view([3, 2]);
        let numels =
            |tensors: &[&Tensor]| *packed.of(tensors, || tensors.iter().map(|tensor| tensor.numel()).sum::<usize>());
        let part = table.narrow(0, 0, 2);
        assert_eq!([numels(&[&table]), numels(&[&part]), numels(&[&table]), numels(&[&table, &part])], [6, 4, 6, 10]);
        // Once for the same.
        assert!(Rc::ptr_eq(&packed.of(&[&table], || 0_usize), &packed.of(&[&table], || 1_usize)));
        let column = |tensor: &Tensor| *packed.of(&[tensor], || tensor.double_value(&[1]));
        assert_eq!([column(&table.select(1, 0)), column(&table.select(0, 0))], [2.0, 1.0]);
    }
}
