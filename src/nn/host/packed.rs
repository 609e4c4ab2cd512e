//! A cache of packed parameters for a roll-out.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tch::Tensor;

use super::Mirror;

/// A cache of copies of parameters, arranged for fast products (packed), for one roll-out, during which the
/// parameters don't change. A copy is built when it is first requested. The key of an entry consists of the
/// addresses, shapes and strides of the parameters and the type of the copy.
#[derive(Debug, Default)]
pub(in crate::nn) struct Packed {
    /// The values of the parameters, from which copies are built.
    pub(in crate::nn) mirror: Mirror,
    copies: RefCell<HashMap<(Vec<i64>, TypeId), Entry>>,
}

#[derive(Debug)]
struct Entry {
    packed: Rc<dyn Any>,
    /// The parameters from which the copy was made. The entry holds them so that their addresses, which are
    /// part of its key, aren't reused for other tensors.
    _parameters: Vec<Tensor>,
}

impl Packed {
    /// Creates an empty cache of copies, which will be built from the values in `mirror`.
    pub(in crate::nn) fn new(mirror: Mirror) -> Self {
        Self { mirror, copies: RefCell::default() }
    }

    /// Returns the copy of type `T` for these parameters. The function `pack` builds the copy on the first
    /// call. For a layer, `parameters` needs to contain only its weight.
    pub(in crate::nn) fn get_or_pack<T: 'static>(
        &self,
        parameters: &[&Tensor],
        pack: impl FnOnce() -> T,
    ) -> Rc<T> {
        // The address of a tensor isn't enough to identify it: a slice of a table may start at the same
        // address as the table.
        let identify =
            |tensor: &&Tensor| [vec![tensor.data_ptr() as i64], tensor.size(), tensor.stride()].concat();
        let key = (parameters.iter().flat_map(identify).collect(), TypeId::of::<T>());
        let cached = self.copies.borrow().get(&key).map(|entry| Rc::clone(&entry.packed));
        if let Some(cached) = cached.and_then(|packed| packed.downcast().ok()) {
            return cached;
        }
        let packed = Rc::new(pack());
        let parameters = parameters.iter().map(|tensor| tensor.shallow_clone()).collect();
        self.copies.borrow_mut().insert(key, Entry { packed: packed.clone(), _parameters: parameters });
        packed
    }
}

#[cfg(test)]
mod tests {
    use tch::Kind;

    use super::*;

    #[test]
    fn slices_and_groups_of_parameters_have_separate_copies() {
        let packed = Packed::default();
        let table = Tensor::arange(6, (Kind::Float, tch::Device::Cpu)).view([3, 2]);
        let numels = |tensors: &[&Tensor]| {
            *packed.get_or_pack(tensors, || tensors.iter().map(|tensor| tensor.numel()).sum::<usize>())
        };
        let part = table.narrow(0, 0, 2);
        assert_eq!(
            [numels(&[&table]), numels(&[&part]), numels(&[&table]), numels(&[&table, &part])],
            [6, 4, 6, 10]
        );
        // The second request for a copy of `table` must return the copy of the first request, without calling
        // `pack` again.
        assert!(Rc::ptr_eq(
            &packed.get_or_pack(&[&table], || 0_usize),
            &packed.get_or_pack(&[&table], || 1_usize)
        ));
        let column = |tensor: &Tensor| *packed.get_or_pack(&[tensor], || tensor.double_value(&[1]));
        assert_eq!([column(&table.select(1, 0)), column(&table.select(0, 0))], [2.0, 1.0]);
    }
}
